#include "profiler/live.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace papaya {

LiveRecord::LiveRecord(LiveRecord&& other) noexcept
    : header_(std::exchange(other.header_, nullptr)),
      events_(other.events_),
      mapped_bytes_(other.mapped_bytes_),
      capacity_(other.capacity_),
      next_(other.next_),
      inside_(std::move(other.inside_)) {}

LiveRecord::~LiveRecord() {
  if (header_ != nullptr) munmap(const_cast<trace::Header*>(header_), mapped_bytes_);
}

bool LiveRecord::open(const std::string& path) noexcept {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat status{};
  void* base = MAP_FAILED;
  if (fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) > sizeof(trace::Header))
    base = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (base == MAP_FAILED) return false;
  mapped_bytes_ = static_cast<std::size_t>(status.st_size);
  header_ = static_cast<const trace::Header*>(base);
  capacity_ = header_->event_capacity;
  const bool is_good = std::memcmp(header_->magic, trace::magic, sizeof trace::magic) == 0 &&
                       header_->version == trace::format_version && std::has_single_bit(capacity_) &&
                       header_->events_offset == trace::events_offset && trace::file_bytes(capacity_) <= mapped_bytes_;
  if (!is_good) {
    munmap(base, mapped_bytes_);
    header_ = nullptr;
    return false;
  }
  events_ = reinterpret_cast<const trace::Event*>(static_cast<const std::byte*>(base) + trace::events_offset);
  return true;
}

const trace::Event& LiveRecord::event(std::uint64_t number) const noexcept { return events_[number & (capacity_ - 1)]; }

bool LiveRecord::is_inside(std::uint64_t number) const noexcept {
  const trace::Event& call = event(number);
  // Acquire: pairs with the recorder's release of `commit`, after the event's other fields. A slot that is being written
  // anew in between shows another commit afterwards.
  if (__atomic_load_n(&call.commit, __ATOMIC_ACQUIRE) != static_cast<std::uint32_t>(number + 1)) return false;
  return __atomic_load_n(&call.exit_ticks, __ATOMIC_RELAXED) == 0 && __atomic_load_n(&call.call, __ATOMIC_RELAXED) != trace::no_call &&
         static_cast<Form>(call.form) == Form::blocking;
}

std::uint64_t LiveRecord::look() {
  std::erase_if(inside_, [this](const Call& call) { return !is_inside(call.number); });
  // Relaxed: an event whose fields are not there yet is not committed, and found by no look; see below.
  const std::uint64_t count = __atomic_load_n(&header_->event_count, __ATOMIC_RELAXED);
  if (count > capacity_) next_ = std::max(next_, count - capacity_);
  for (; next_ < count; ++next_) {
    // Begun, but not written yet: the next look has it.
    if (next_ + 1 == count && __atomic_load_n(&event(next_).commit, __ATOMIC_ACQUIRE) != static_cast<std::uint32_t>(count)) break;
    if (is_inside(next_)) inside_.push_back({next_, event(next_).arrival_ticks, false});
  }
  std::uint64_t oldest = 0;
  for (const Call& call : inside_)
    if (!call.passed_over && (oldest == 0 || call.arrival_ticks < oldest)) oldest = call.arrival_ticks;
  return oldest;
}

void LiveRecord::pass_over() noexcept {
  for (Call& call : inside_) call.passed_over = true;
}

std::uint64_t LiveRecord::asked() const noexcept { return __atomic_load_n(&header_->asked, __ATOMIC_RELAXED); }

}  // namespace papaya
