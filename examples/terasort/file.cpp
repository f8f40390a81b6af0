#include "file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "job.hpp"

namespace terasort {

namespace {

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw Problem(fmt::format("{} {}: {}.", what, path, std::strerror(errno)));
}

// MPI's own limit on counts does not matter here, but the kernel's does: at most 2 GiB at once.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

}  // namespace

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File File::to_read(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("Cannot read", path);
  return {descriptor, path};
}

File File::to_create(const std::string& path, std::uint64_t records) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail("Cannot write", path);
  File file(descriptor, path);
  if (ftruncate(descriptor, static_cast<off_t>(records * record_bytes)) != 0) fail("Cannot write", path);
  return file;
}

File File::to_write(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) fail("Cannot write", path);
  return {descriptor, path};
}

File File::temporary(const std::string& folder) {
  std::string path = folder + "/terasort-run-XXXXXX";
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) fail("Cannot write runs to the folder", folder);
  unlink(path.c_str());
  return {descriptor, "a file of sorted runs in " + folder};
}

std::uint64_t File::records() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail("Cannot read", path_);
  if (!S_ISREG(status.st_mode)) throw Problem(fmt::format("{} is not a regular file.", path_));
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes % record_bytes != 0)
    throw Problem(fmt::format("{} has {} bytes, {} more than a whole number of records of {} bytes.", path_, bytes,
                              bytes % record_bytes, record_bytes));
  return bytes / record_bytes;
}

bool File::is_same_as(const std::string& path) const {
  struct stat mine {};
  struct stat other {};
  return fstat(descriptor_, &mine) == 0 && stat(path.c_str(), &other) == 0 && mine.st_dev == other.st_dev &&
         mine.st_ino == other.st_ino;
}

void File::read(std::uint64_t first, std::span<Record> records) const {
  auto* to = reinterpret_cast<char*>(records.data());
  std::size_t left = records.size_bytes();
  for (std::uint64_t at = first * record_bytes; left != 0;) {
    const ssize_t done = pread(descriptor_, to, std::min(left, most_bytes), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("Cannot read", path_);
    if (done == 0) throw Problem(fmt::format("{} ends before record {}.", path_, at / record_bytes));
    to += done;
    at += static_cast<std::uint64_t>(done);
    left -= static_cast<std::size_t>(done);
  }
}

void File::write(std::uint64_t first, std::span<const Record> records) const {
  const auto* from = reinterpret_cast<const char*>(records.data());
  std::size_t left = records.size_bytes();
  for (std::uint64_t at = first * record_bytes; left != 0;) {
    const ssize_t done = pwrite(descriptor_, from, std::min(left, most_bytes), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("Cannot write", path_);
    from += done;
    at += static_cast<std::uint64_t>(done);
    left -= static_cast<std::size_t>(done);
  }
}

}  // namespace terasort
