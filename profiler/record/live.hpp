// What a rank of this node is inside right now, looked up by another process or thread in the file it records into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/record/format.hpp"

namespace papaya {

// Of the record only the header is mapped: what is read of the ring would count as this process's memory.
class LiveRecord {
 public:
  LiveRecord() = default;
  LiveRecord(LiveRecord&& other) noexcept;
  LiveRecord& operator=(LiveRecord&&) = delete;
  ~LiveRecord();

  // Maps the record; false while there is none that can be used.
  bool open(const std::string& path);

  // Looks at what has been recorded since the last look. Returns when the rank entered the blocking call that it has
  // been in longest and that was not passed over, in its clock's ticks; 0 if it is in none.
  std::uint64_t look();
  // Passes over the calls that it entered until then and is in still.
  void pass_over(std::uint64_t until_ticks) noexcept;

  double ns_per_tick() const noexcept { return header_->ns_per_tick; }
  // What reports of the record call this time: the wall clock may have been set since the record began.
  std::int64_t unix_ns(std::uint64_t ticks) const noexcept;
  // How often the process was asked for a report.
  std::uint64_t asked() const noexcept;

 private:
  struct Call {
    std::uint64_t number;         // of the event
    std::uint64_t arrival_ticks;  // 0: not written yet
    bool passed_over;
  };
  class Ring;
  static bool is_inside(const trace::Event& event, std::uint64_t number) noexcept;
  static bool is_unwritten(const trace::Event& event, std::uint64_t number) noexcept;

  std::string path_;
  const trace::Header* header_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t next_ = 0;  // the first event not looked at
  std::vector<Call> inside_;
};

}  // namespace papaya
