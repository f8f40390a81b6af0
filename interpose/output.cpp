#include "interpose/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/version.hpp"

namespace papaya::output {

namespace {

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A folder that is not to be moved away: the program stands in it or below it, it is somebody's home, or others mount
// theirs there.
bool must_stay(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  if (error) return false;
  std::vector<std::filesystem::path> bases = {std::filesystem::current_path(error)};
  for (const char* name : {"HOME", "TMPDIR"})
    if (const char* const base = std::getenv(name); base != nullptr && *base != '\0')
      bases.push_back(std::filesystem::weakly_canonical(base, error));
  bases.push_back("/tmp");
  for (std::filesystem::path base : bases)
    for (; !base.empty(); base = base.parent_path()) {
      if (base == path) return true;
      if (base == base.parent_path()) break;
    }
  struct stat self {};
  struct stat parent {};
  return stat(path.c_str(), &self) == 0 && stat(path.parent_path().c_str(), &parent) == 0 &&
         self.st_dev != parent.st_dev;
}

// Like rename(2), but never over something that exists.
int rename_anew(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system that cannot.
  struct stat there {};
  if (lstat(to.c_str(), &there) == 0) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// Whatever has this name gets another. The error number, or 0.
int move_away(const std::string& folder) {
  struct stat there {};
  if (stat(folder.c_str(), &there) == 0 && !S_ISDIR(there.st_mode)) return ENOTDIR;
  if (must_stay(folder)) return EBUSY;
  for (int number = 1;; ++number) {
    const int failure = rename_anew(folder, fmt::format("{}.{}", folder, number));
    if (failure != EEXIST) return failure == ENOENT ? 0 : failure;
  }
}

// A file system that does not tell its size, as some that are not on a disk, has room.
bool has_room(const std::filesystem::path& folder, std::uint64_t bytes) {
  struct statvfs there {};
  if (statvfs(folder.empty() ? "." : folder.c_str(), &there) != 0 || there.f_blocks == 0) return true;
  return std::uint64_t{there.f_bavail} * there.f_frsize >= bytes;
}

// mkdir -p, then an empty folder of this name, opened. It gets its name last: another job that starts at the
// same time with the same name never meets one that is not yet somebody's. The error number, or 0.
int make_empty(const std::string& folder, std::uint64_t least_bytes, int& descriptor) {
  std::error_code error;
  const std::filesystem::path path(folder);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return error.value();
  if (!has_room(path.parent_path(), least_bytes)) return ENOSPC;
  std::string unnamed;
  for (int number = 0;; ++number) {
    unnamed = fmt::format("{}.new{}-{}", folder, getpid(), number);
    if (mkdir(unnamed.c_str(), 0755) == 0) break;
    if (errno != EEXIST) return errno;
  }
  descriptor = open(unnamed.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int failure = descriptor < 0 ? errno : EEXIST;
  for (int attempt = 0; failure == EEXIST && attempt < 100; ++attempt) {
    failure = rename_anew(unnamed, folder);
    if (failure != EEXIST) break;
    if (const int cannot = move_away(folder); cannot != 0) failure = cannot;
  }
  if (failure == 0) return 0;
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
  rmdir(unnamed.c_str());
  return failure;
}

// Whether the folder is the one in which rank 0 wrote this number.
bool is_of_run(int folder, std::string_view run) {
  const int file = openat(folder, "README", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  char text[4096];
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  return length > 0 && std::string_view(text, static_cast<std::size_t>(length)).find(run) != std::string_view::npos;
}

}  // namespace

std::string program_path() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "unknown";
}

std::string command_line() {
  std::string command = read_file("/proc/self/cmdline");
  while (!command.empty() && command.back() == '\0') command.pop_back();
  for (char& c : command)
    if (c == '\0' || c == '\n') c = ' ';
  return command;
}

std::string_view base_name(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::string default_folder(std::string_view program, int ranks) {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
    if (const char* job = std::getenv(name); job != nullptr && *job != '\0')
      return fmt::format("papaya.{}.{}.{}", program, ranks, job);
  char date[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  if (localtime_r(&now, &local) != nullptr) std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local);
  return fmt::format("papaya.{}.{}.{}-{}", program, ranks, date, getpid());
}

std::string make_folder(std::string wanted, std::string_view otherwise, std::uint64_t least_bytes, int& descriptor,
                        std::string& sentence) {
  while (wanted.size() > 1 && wanted.back() == '/') wanted.pop_back();
  const int failure = make_empty(wanted, least_bytes, descriptor);
  if (failure == 0) {
    std::error_code error;
    const auto path = std::filesystem::absolute(wanted, error);
    return error ? wanted : path.string();
  }
  const char* temporary = std::getenv("TMPDIR");
  const std::string other =
      fmt::format("{}/{}", temporary != nullptr && *temporary != '\0' ? temporary : "/tmp", otherwise);
  const char* const why = failure == EBUSY ? "it exists, and is in use by more than this job" : std::strerror(failure);
  if (make_empty(other, least_bytes, descriptor) == 0) {
    sentence = fmt::format("cannot make the output folder {} ({}); the records go to {}.", wanted, why, other);
    return other;
  }
  sentence = fmt::format(
      "cannot make the output folder {} ({}), nor {}; nothing is recorded. Set PAPAYA_OUTPUT to a "
      "folder that can be written.",
      wanted, why, other);
  return "";
}

std::string new_run() {
  std::uint64_t words[2] = {0, 0};
  if (getrandom(words, sizeof words, GRND_NONBLOCK) != sizeof words)
    words[0] = static_cast<std::uint64_t>(std::time(nullptr)) << 32 | static_cast<std::uint32_t>(getpid());
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

void write_start_files(const std::string& folder, const Settings& settings, std::string_view program, int ranks,
                       std::string_view mpi, std::string_view run) {
  std::ofstream(folder + "/papaya.cfg") << settings.serialize();
  std::ofstream(folder + "/README") << fmt::format(
      "Records of papaya {} for {} on {} ranks, {}.\n\n"
      "papaya.cfg       every setting in force, one NAME=VALUE a line\n"
      "rank-NNNNN.pap   what each rank recorded, written as it runs: readable even if the job was killed\n"
      "rank-NNNNN.papz  with PAPAYA_PROFILE=trace: its older calls, compressed\n"
      "rank-NNNNN.papw  its calls of weakly consistent collectives, if the program uses any\n"
      "rank-NNNNN.papx  with PAPAYA_APPROX: what has become of its rules\n"
      "report.txt       the report, written when the job ends; `papaya report FOLDER` makes it anew\n"
      "report.json      the same for programs\n\n"
      "Run {}\n",
      PAPAYA_VERSION, program, ranks, mpi, run);
}

std::string find_folder(const std::string& wanted, int node, std::string_view run, int& descriptor,
                        std::string& sentence) {
  const std::filesystem::path path(wanted);
  std::error_code error;
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path(), error);
    // NFS may remember for half a minute what the name meant before rank 0 renamed it; opening the parent asks the
    // server.
    if (const int parent = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); parent >= 0)
      close(parent);
  }
  const bool made = mkdir(wanted.c_str(), 0755) == 0;
  if (!made && errno != EEXIST) return wanted;  // ranks will not be able to write, and that is said
  descriptor = open(wanted.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (made || (descriptor >= 0 && is_of_run(descriptor, run))) return wanted;
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
  std::string other = fmt::format("{}.node{}", wanted, node);
  const int failure = make_empty(other, 0, descriptor);
  sentence =
      failure == 0
          ? fmt::format("{} exists on node {} and is not this job's; the records of the node's ranks go to {} there.",
                        wanted, node, other)
          : fmt::format("{} exists on node {} and is not this job's, and {} cannot be made ({}).", wanted, node, other,
                        std::strerror(failure));
  return other;
}

std::string rank_file(const std::string& folder, int rank) {
  return fmt::format("{}/rank-{:05}.pap", folder, rank);
}
std::string spill_file(const std::string& folder, int rank) {
  return rank_file(folder, rank) + "z";
}
std::string weak_file(const std::string& folder, int rank) {
  return rank_file(folder, rank) + "w";
}
std::string approx_file(const std::string& folder, int rank) {
  return rank_file(folder, rank) + "x";
}

}  // namespace papaya::output
