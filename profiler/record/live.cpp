#include "profiler/record/live.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

namespace papaya {

namespace {
constexpr std::size_t events_per_read = 256;
}

// The events of a record, for as long as a look at them takes.
class LiveRecord::Ring {
 public:
  Ring(const std::string& path, std::uint64_t capacity)
      : capacity_(capacity), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Ring() {
    if (file_ >= 0) close(file_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Event `first` and some after it, of those before `end`; none if they cannot be read.
  std::span<const trace::Event> read(std::uint64_t first, std::uint64_t end) {
    const std::uint64_t slot = first & (capacity_ - 1);
    const std::size_t count = std::min({static_cast<std::uint64_t>(events_per_read), end - first, capacity_ - slot});
    const auto from = static_cast<off_t>(trace::events_offset + slot * sizeof(trace::Event));
    const ssize_t bytes = file_ < 0 ? -1 : pread(file_, events_, count * sizeof(trace::Event), from);
    return {events_, bytes < 0 ? 0 : static_cast<std::size_t>(bytes) / sizeof(trace::Event)};
  }

 private:
  const std::uint64_t capacity_;
  const int file_;
  trace::Event events_[events_per_read];
};

LiveRecord::LiveRecord(LiveRecord&& other) noexcept
    : path_(std::move(other.path_)),
      header_(std::exchange(other.header_, nullptr)),
      capacity_(other.capacity_),
      next_(other.next_),
      inside_(std::move(other.inside_)) {}

LiveRecord::~LiveRecord() {
  if (header_ != nullptr) munmap(const_cast<trace::Header*>(header_), sizeof(trace::Header));
}

bool LiveRecord::open(const std::string& path) {
  path_ = path;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  void* base = MAP_FAILED;
  // What lies beyond the end of a file cannot be read.
  if (lseek(file, 0, SEEK_END) >= static_cast<off_t>(sizeof(trace::Header)))
    base = mmap(nullptr, sizeof(trace::Header), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (base == MAP_FAILED) return false;
  header_ = static_cast<const trace::Header*>(base);
  capacity_ = header_->event_capacity;
  const bool is_good = std::memcmp(header_->magic, trace::magic, sizeof trace::magic) == 0 &&
                       header_->version == trace::format_version && std::has_single_bit(capacity_) &&
                       header_->events_offset == trace::events_offset;
  if (!is_good) {
    munmap(base, sizeof(trace::Header));
    header_ = nullptr;
  }
  return is_good;
}

// A slot that is being written anew shows its old number still, but a new arrival; the next look has it.
bool LiveRecord::is_inside(const trace::Event& event, std::uint64_t number) noexcept {
  return event.commit == static_cast<std::uint32_t>(number + 1) && event.exit_ticks == 0 &&
         event.call != trace::no_call && static_cast<Form>(event.form) == Form::blocking;
}

// Its slot shows one of an earlier round, or none.
bool LiveRecord::is_unwritten(const trace::Event& event, std::uint64_t number) noexcept {
  return static_cast<std::int32_t>(event.commit - static_cast<std::uint32_t>(number + 1)) < 0;
}

std::uint64_t LiveRecord::look() {
  Ring ring(path_, capacity_);
  std::erase_if(inside_, [&](Call& call) {
    const auto event = ring.read(call.number, call.number + 1);
    if (event.empty()) return true;
    if (is_unwritten(event[0], call.number)) return false;
    call.arrival_ticks = event[0].arrival_ticks;
    return !is_inside(event[0], call.number);
  });
  // Relaxed: the numbers in the events tell which of them are there.
  const std::uint64_t count = __atomic_load_n(&header_->event_count, __ATOMIC_RELAXED);
  if (count > capacity_) next_ = std::max(next_, count - capacity_);
  while (next_ < count) {
    const auto events = ring.read(next_, count);
    if (events.empty()) break;
    for (const trace::Event& event : events) {
      // One that has begun and is not written yet, by whatever thread: the next look has it.
      if (is_unwritten(event, next_))
        inside_.push_back({next_, 0, false});
      else if (is_inside(event, next_))
        inside_.push_back({next_, event.arrival_ticks, false});
      ++next_;
    }
  }
  std::uint64_t oldest = 0;
  for (const Call& call : inside_)
    if (!call.passed_over && call.arrival_ticks != 0 && (oldest == 0 || call.arrival_ticks < oldest))
      oldest = call.arrival_ticks;
  return oldest;
}

void LiveRecord::pass_over(std::uint64_t until_ticks) noexcept {
  for (Call& call : inside_)
    if (call.arrival_ticks != 0 && call.arrival_ticks <= until_ticks) call.passed_over = true;
}

std::int64_t LiveRecord::unix_ns(std::uint64_t ticks) const noexcept {
  return header_->begin_unix_ns +
         static_cast<std::int64_t>(static_cast<double>(ticks - header_->begin_ticks) * header_->ns_per_tick);
}

std::uint64_t LiveRecord::asked() const noexcept {
  return __atomic_load_n(&header_->asked, __ATOMIC_RELAXED);
}

}  // namespace papaya
