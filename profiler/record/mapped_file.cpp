#include "profiler/record/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "profiler/record/failed_pages.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace papaya {

void* create_mapped(const std::string& path, std::size_t bytes, std::string& error) noexcept {
  // Beyond it, making the file larger ends the process by a signal.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
    error = "larger than the limit for files (ulimit -f)";
    return nullptr;
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) {
    error = std::strerror(errno);
    return nullptr;
  }
  // Some file systems (NFS before 4.2) cannot reserve; there the size alone must do.
  int failure = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (failure == EOPNOTSUPP || failure == EINVAL) failure = ftruncate(file, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  void* base = MAP_FAILED;
  if (failure == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) failure = errno;
  }
  ::close(file);
  if (failure == 0) {
    failed_pages::watch(base, bytes);
    return base;
  }
  ::unlink(path.c_str());
  error = std::strerror(failure);
  return nullptr;
}

void unmap(void* base, std::size_t bytes) noexcept {
  failed_pages::forget(base);
  munmap(base, bytes);
}

// An old kernel does not know it.
void populate(void* begin, std::size_t bytes) noexcept {
  madvise(begin, bytes, MADV_POPULATE_WRITE);
}

}  // namespace papaya
