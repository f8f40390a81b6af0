// The events of a rank in the order they began, a piece at a time: those that were loaded, or the ring in its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "profiler/read/file_source.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class EventReader {
 public:
  // At most `piece` events at a time. Without `keeps_open` the file is opened for each: of many, not all can be open.
  EventReader(const RankFile& file, std::size_t piece, bool keeps_open);

  // The next events; none: that was all. Valid until the next call.
  std::span<const trace::Event> next();
  // Of one of those.
  const trace::Interval* interval_of(const trace::Event& event) const;

  // So far: torn or damaged ones, which are left out; those that the file is too short for, or that were overwritten
  // meanwhile, are among them.
  std::uint64_t skipped() const { return skipped_; }

 private:
  bool read_piece(std::uint64_t slot, std::size_t count);

  const RankFile* file_;
  std::size_t piece_;
  bool keeps_open_;
  std::size_t given_ = 0;  // of those loaded
  std::uint64_t number_ = 0;
  std::uint64_t skipped_ = 0;
  std::unique_ptr<FileSource> source_;
  std::vector<trace::Event> events_;
  std::vector<trace::Interval> intervals_;  // from the slot of the first event on
  std::uint32_t first_commit_ = 0;
};

}  // namespace papaya::report
