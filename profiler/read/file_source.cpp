#include "profiler/read/file_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace papaya::report {

// O_NONBLOCK: a pipe of that name must not stop the report.
FileSource::FileSource(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status {};
  if (file_ < 0 || fstat(file_, &status) != 0) {
    error_ = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    error_ = "not a regular file";
  } else {
    bytes_ = static_cast<std::uint64_t>(status.st_size);
  }
}

FileSource::~FileSource() {
  if (file_ >= 0) close(file_);
}

bool FileSource::read(std::uint64_t offset, void* to, std::size_t count) const {
  char* next = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got = pread(file_, next, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace papaya::report
