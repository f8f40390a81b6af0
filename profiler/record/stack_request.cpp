#include "profiler/record/stack_request.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>
#include <utility>

#include "profiler/record/failed_pages.hpp"
#include "profiler/record/mapped_file.hpp"

namespace papaya {

StackRequest::StackRequest(const std::string& record) : name_(record.substr(record.find_last_of('/') + 1)) {
  const int file = open(record.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  trace::Header header{};
  const off_t bytes = lseek(file, 0, SEEK_END);
  if (bytes >= static_cast<off_t>(sizeof header + sizeof(trace::Stacks)) &&
      pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
      std::memcmp(header.magic, trace::magic, sizeof trace::magic) == 0 && header.version == trace::format_version &&
      header.header_bytes == sizeof header && header.stacks_offset % 8 == 0 && header.stacks_offset != 0 &&
      header.stacks_offset <= static_cast<std::uint64_t>(bytes) - sizeof(trace::Stacks)) {
    // Pages may be larger here than those that the record counts in.
    const std::uint64_t within = header.stacks_offset % static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    bytes_ = within + sizeof(trace::Stacks);
    page_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                 static_cast<off_t>(header.stacks_offset - within));
    if (page_ == MAP_FAILED)
      page_ = nullptr;
    else
      failed_pages::watch(page_, bytes_);
    if (page_ != nullptr) stacks_ = reinterpret_cast<trace::Stacks*>(static_cast<std::byte*>(page_) + within);
  }
  close(file);
  if (stacks_ == nullptr || std::atomic_ref(stacks_->answers).load(std::memory_order_acquire) != 1) return;
  process_ = header.process;
  number_ = std::atomic_ref(stacks_->asked).fetch_add(1, std::memory_order_acq_rel) + 1;
  syscall(SYS_futex, &stacks_->asked, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

StackRequest::StackRequest(StackRequest&& other) noexcept
    : name_(std::move(other.name_)),
      page_(std::exchange(other.page_, nullptr)),
      bytes_(other.bytes_),
      stacks_(other.stacks_),
      number_(other.number_),
      process_(other.process_) {}

StackRequest::~StackRequest() {
  if (page_ != nullptr) unmap(page_, bytes_);
}

bool StackRequest::is_answered() const noexcept {
  return is_sent() &&
         static_cast<std::int32_t>(std::atomic_ref(stacks_->answered).load(std::memory_order_acquire) - number_) >= 0;
}

bool StackRequest::can_answer() const noexcept {
  return is_near(process_, name_) && !is_stopped(process_, name_);
}

bool is_near(std::int64_t process, const std::string& name) noexcept {
  char path[64];
  // In another container its number may be that of any process: it must have the record mapped.
  std::snprintf(path, sizeof path, "/proc/%lld/maps", static_cast<long long>(process));
  bool is_it = false;
  if (std::FILE* const maps = std::fopen(path, "re"); maps != nullptr) {
    char line[4200];
    while (!is_it && std::fgets(line, sizeof line, maps) != nullptr) is_it = std::strstr(line, name.c_str()) != nullptr;
    std::fclose(maps);
  }
  return is_it;
}

bool is_stopped(std::int64_t process, const std::string& name) noexcept {
  if (!is_near(process, name)) return false;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(process));
  char state = '?';
  if (std::FILE* const stat = std::fopen(path, "re"); stat != nullptr) {
    char text[256] = "";
    if (std::fgets(text, sizeof text, stat) != nullptr)
      if (const char* const name_end = std::strrchr(text, ')'); name_end != nullptr && name_end[1] != '\0')
        state = name_end[2];
    std::fclose(stat);
  }
  return state == 'T' || state == 't';
}

}  // namespace papaya
