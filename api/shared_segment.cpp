#include "api/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "base/memory.hpp"

namespace papaya::weak {

SharedSegment::~SharedSegment() {
  forget_name();
  if (begin_ != nullptr) munmap(begin_, bytes_);
}

bool SharedSegment::create(const std::string& name) {
  std::string kept = name;
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  close(file);
  name_ = std::move(kept);
  return true;
}

bool SharedSegment::open(const std::string& name, std::size_t bytes, int rank, int ranks) noexcept {
  // Beyond the limit for files, making one larger ends the process by a signal.
  rlimit files{};
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY && files.rlim_cur < bytes) return false;
  const int file = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return false;
  // To one size, whoever comes first.
  void* const mapped = ftruncate(file, static_cast<off_t>(bytes)) == 0
                           ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                           : MAP_FAILED;
  close(file);
  if (mapped == MAP_FAILED) return false;
  begin_ = static_cast<std::byte*>(mapped);
  bytes_ = bytes;
  const std::size_t page = memory::page_bytes();
  const auto from = [&](int of) {
    return std::min(bytes,
                    (bytes + page - 1) / page * static_cast<std::size_t>(of) / static_cast<std::size_t>(ranks) * page);
  };
  const std::size_t share = from(rank + 1) - from(rank);
  return share == 0 || memory::make_present(begin_ + from(rank), share);
}

void SharedSegment::forget_name() noexcept {
  if (!name_.empty()) shm_unlink(name_.c_str());
  name_.clear();
}

std::size_t number_of_node() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  struct stat shared {};
  stat("/dev/shm", &shared);
  return std::hash<std::string>{}(fmt::format("{} {} {} {}", boot, host, shared.st_dev, shared.st_ino));
}

}  // namespace papaya::weak
