// The events of a rank in the order they began, a piece at a time: those that were loaded, or what was spilled and then
// the ring, each in its file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "profiler/read/file_source.hpp"
#include "profiler/read/read.hpp"
#include "profiler/read/read_spill.hpp"

namespace papaya::report {

// Of a rank, counted from MPI_Init on, of which the ring may hold the last ones only.
struct EventRange {
  std::uint64_t begin = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

// That the readers of all files would give, torn ones included.
std::size_t events_of(const Run& run);

class EventReader {
 public:
  // At most `piece` events of the ring at a time, of what was spilled as many as a block has. Without `keeps_open` the
  // file is opened for each: of many, not all can be open.
  // `range`: of a ring alone, which of its events, by their number.
  EventReader(const RankFile& file, std::size_t piece, bool keeps_open, EventRange range = {});

  // The next events; none: that was all. Valid until the next call.
  std::span<const trace::Event> next();
  // So many of those from this one on are wanted next: other ranks' have taken their place in the cores' caches.
  void prefetch(std::size_t begin, std::size_t count) const {
    for (std::size_t i = begin; i < std::min(begin + count, events_.size()); ++i) __builtin_prefetch(&events_[i]);
    for (std::size_t i = begin; i < std::min(begin + count, intervals_.size()); i += 2)
      __builtin_prefetch(&intervals_[i]);
  }
  // Of one of those.
  const trace::Interval* interval_of(const trace::Event& event) const;

  // So far, in the ring: torn or damaged ones, which are left out; those that the file is too short for, or that were
  // overwritten meanwhile, are among them.
  std::uint64_t skipped() const { return skipped_; }

 private:
  std::span<const trace::Event> next_spilled();
  bool read_piece(std::uint64_t slot, std::size_t count);

  const RankFile* file_;
  std::size_t piece_;
  bool keeps_open_;
  std::size_t given_ = 0;  // of those loaded
  std::uint64_t number_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t skipped_ = 0;
  struct Spilled {
    std::unique_ptr<Source> source;
    SpillReader reader;
  };
  bool has_spilled_ = false;          // left to read
  std::unique_ptr<Spilled> spilled_;  // while it is read
  std::unique_ptr<FileSource> source_;
  std::vector<trace::Event> events_;
  std::vector<trace::Interval> intervals_;  // from the slot of the first event on
  std::uint32_t first_commit_ = 0;
};

}  // namespace papaya::report
