#include "interpose/presence.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include "algorithms/transport/shared_out_of_band.hpp"
#include "base/version.hpp"

namespace papaya::presence {

namespace {

constexpr char folder[] = "/dev/shm";
constexpr std::size_t page_bytes = 4096;
constexpr std::uint32_t most_ranks = 65536;  // of a node: what a launcher says beyond that is not believed

const char* first_of(std::initializer_list<const char*> names) noexcept {
  for (const char* name : names)
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return nullptr;
}

std::uint64_t hash(std::uint64_t seed, const char* text) noexcept {
  for (; *text != '\0'; ++text) seed = (seed ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;  // FNV-1a
  return seed;
}

// Seconds by which the boot time that this process sees in /proc is ahead of the machine's (time_namespaces(7)).
long long boot_offset_s() noexcept {
  std::FILE* const file = std::fopen("/proc/self/timens_offsets", "re");
  if (file == nullptr) return 0;
  char name[32];
  long long seconds = 0;
  long long nanoseconds = 0;
  long long offset = 0;
  while (std::fscanf(file, "%31s %lld %lld", name, &seconds, &nanoseconds) == 3)
    if (std::strcmp(name, "boottime") == 0) offset = seconds;
  std::fclose(file);
  return offset;
}

// When a process was started, in ticks since boot: process numbers come back, these pairs do not. The same for ranks in
// different time namespaces.
unsigned long long start_of(pid_t process) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%ld/stat", static_cast<long>(process));
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const ssize_t length = read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  // The 22nd field; the second is the name in parentheses, which may hold anything.
  const char* field = std::strrchr(text, ')');
  for (int number = 2; field != nullptr && number < 22; ++number) {
    field = std::strchr(field, ' ');
    if (field != nullptr) ++field;
  }
  if (field == nullptr) return 0;
  return std::strtoull(field, nullptr, 10) - static_cast<unsigned long long>(boot_offset_s() * sysconf(_SC_CLK_TCK));
}

constexpr std::uint64_t seed = 0xcbf29ce484222325u;

// Open MPI's launchers, and Slurm's of that kind.
std::uint64_t pmix_key() noexcept {
  const char* const job = first_of({"PMIX_NAMESPACE"});
  if (job == nullptr) return 0;
  const char* const server =
      first_of({"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"});
  return hash(hash(seed, job), server == nullptr ? "" : server);
}

// Hydra and its kind: each rank has a socket of its own, made by the one process that starts the node's ranks.
std::uint64_t pmi_key() noexcept {
  if (const char* const text = first_of({"PMI_FD"})) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(static_cast<int>(std::strtol(text, nullptr, 10)), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
        peer.pid > 0) {
      char proxy[64];
      std::snprintf(proxy, sizeof proxy, "proxy %ld %llu", static_cast<long>(peer.pid), start_of(peer.pid));
      return hash(seed, proxy);
    }
  }
  if (const char* const port = first_of({"PMI_PORT"})) return hash(hash(seed, "port "), port);
  if (const char* const job = first_of({"PALS_APID"})) return hash(hash(seed, "pals "), job);
  return 0;
}

// A number that this job's ranks on this node share and no other job's have; 0 if the launcher gives none.
std::uint64_t job_key(Launcher launcher) noexcept {
  const bool pmi = launcher == Launcher::pmi;
  if (const std::uint64_t key = pmi ? pmi_key() : pmix_key(); key != 0) return key;
  if (const std::uint64_t key = pmi ? pmix_key() : pmi_key(); key != 0) return key;
  if (const char* const job = first_of({"SLURM_JOB_ID"}))
    if (const char* const step = first_of({"SLURM_STEP_ID"})) return hash(hash(hash(seed, job), "."), step);
  return 0;
}

int rank_of_process(Launcher launcher) noexcept {
  const char* const rank = launcher == Launcher::pmi
                               ? first_of({"PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
                               : first_of({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"});
  return rank == nullptr ? -1 : static_cast<int>(std::strtol(rank, nullptr, 10));
}

std::uint32_t believed(unsigned long ranks) noexcept {
  return ranks <= most_ranks ? static_cast<std::uint32_t>(ranks) : 0;
}

}  // namespace

std::uint32_t tasks_of_each_node(const char* text) noexcept {
  char* end = nullptr;
  const unsigned long tasks = std::strtoul(text, &end, 10);
  if (end == text) return 0;
  if (end[0] == '(' && end[1] == 'x') {
    std::strtoul(end + 2, &end, 10);
    if (*end++ != ')') return 0;
  }
  return *end == '\0' ? believed(tasks) : 0;
}

namespace {

std::uint32_t ranks_of_node(Launcher launcher) noexcept {
  if (const char* const ranks = launcher == Launcher::pmi
                                    ? first_of({"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"})
                                    : first_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}))
    return believed(std::strtoul(ranks, nullptr, 10));
  if (const char* const tasks = first_of({"SLURM_STEP_TASKS_PER_NODE"})) return tasks_of_each_node(tasks);
  return 0;
}

// Of boards of this user.
int prefix(char* text, std::size_t bytes) noexcept {
  return std::snprintf(text, bytes, "papaya-%lu-", static_cast<unsigned long>(geteuid()));
}

// A rank that dies in or before MPI_Init takes its job with it, and nobody removes the roster's name. Whoever has a
// roster open holds a shared lock, which the kernel takes from the dead; so a name that is not quite new and that
// nobody holds is such a one.
void remove_left_behind() noexcept {
  constexpr time_t new_seconds = 10;  // it may have been made and not locked yet
  char mine[32];
  const auto length = static_cast<std::size_t>(prefix(mine, sizeof mine));
  DIR* const entries = opendir(folder);
  if (entries == nullptr) return;
  while (const dirent* const entry = readdir(entries)) {
    if (std::strncmp(entry->d_name, mine, length) != 0) continue;
    const int file = openat(dirfd(entries), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    struct stat status {};
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        std::time(nullptr) - status.st_mtime > new_seconds && flock(file, LOCK_EX | LOCK_NB) == 0)
      unlinkat(dirfd(entries), entry->d_name, 0);
    ::close(file);
  }
  closedir(entries);
}

void open(Node& node) noexcept {
  node.rank = rank_of_process(node.launcher);
  node.ranks = ranks_of_node(node.launcher);
  const std::uint64_t key = job_key(node.launcher);
  if (node.rank < 0 || node.ranks < 2 || key == 0) return;
  const std::size_t roster_bytes =
      (sizeof(Roster) + node.ranks * sizeof(Entry) + page_bytes - 1) / page_bytes * page_bytes;
  node.bytes = roster_bytes +
               (node.ranks <= SharedOutOfBand::most_ranks ? SharedOutOfBand::bytes_for(node.ranks) : std::size_t{0});
  node.bytes = (node.bytes + page_bytes - 1) / page_bytes * page_bytes;
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < node.bytes) return;  // it would be SIGXFSZ
  char start[32];
  prefix(start, sizeof start);
  std::snprintf(node.path, sizeof node.path, "%s/%s%016llx", folder, start, static_cast<unsigned long long>(key));
  const int file = ::open(node.path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  // New memory is zero, which is an empty roster. What is not to be had now would be SIGBUS later.
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      flock(file, LOCK_SH | LOCK_NB) == 0 && posix_fallocate(file, 0, static_cast<off_t>(node.bytes)) == 0)
    if (void* const memory = mmap(nullptr, node.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        memory != MAP_FAILED)
      node.roster = static_cast<Roster*>(memory);
  if (node.roster == nullptr) {
    ::close(file);
    return;
  }
  node.file = file;
  node.file_identity.note(file);
  if (node.bytes > roster_bytes) node.out_of_band = reinterpret_cast<std::byte*>(node.roster) + roster_bytes;
}

void close_file(Node& node) noexcept {
  if (node.file_identity.is_of(node.file)) ::close(node.file);
  node.file = -1;
}

void unlink_name(Node& node) noexcept {
  if (node.path[0] != '\0') unlink(node.path);
  node.path[0] = '\0';
}

}  // namespace

void announce(Node& node, Part part) noexcept {
  if (node.rank >= 0 || node.mine != nullptr) return;
  open(node);
  if (node.roster == nullptr) return;
  const std::uint32_t number = node.roster->arrived.fetch_add(1, std::memory_order_relaxed);
  if (number == 0) remove_left_behind();         // one rank of a job is enough
  if (number >= node.ranks) return close(node);  // the launcher started more than it said
  node.mine = node.roster->entries() + number;
  node.mine->rank = node.rank;
  node.mine->build = node.build;
  std::snprintf(node.mine->version, sizeof node.mine->version, "%s", PAPAYA_VERSION);
  node.mine->part.store(part, std::memory_order_release);
  if (number + 1 == node.ranks) unlink_name(node);  // all have it open
}

void remove_name(Node& node) noexcept {
  unlink_name(node);
  close_file(node);
}

void close(Node& node) noexcept {
  if (node.roster != nullptr) munmap(node.roster, node.bytes);
  close_file(node);
  node.roster = nullptr;
  node.out_of_band = nullptr;
  node.mine = nullptr;
}

}  // namespace papaya::presence
