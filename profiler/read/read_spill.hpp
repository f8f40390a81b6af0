// Reads rank-NNNNN.papz: the events that the ring of the rank's record has lost.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "profiler/read/read.hpp"
#include "profiler/record/spill_format.hpp"

namespace papaya::report {

// What a file holds and what is wrong with it; complete once all of it has been read.
struct SpillFacts {
  std::uint64_t kept = 0;     // events, so far
  std::vector<Gap> gaps;      // in these
  std::uint64_t unread = 0;   // in the file, left there
  std::uint64_t skipped = 0;  // torn or impossible
  trace::spill::FileHeader header{};
  // What is wrong with the file, if anything: continues a sentence that begins with its name.
  std::string problem;
  Trouble trouble = Trouble::damaged;
};

// Whatever the bytes, this does not throw but for lack of memory.
class SpillReader {
 public:
  // Of this record the events before number `end`. Source and record must outlive the reader.
  SpillReader(const Source& source, const RankFile& record, std::uint64_t end);
  ~SpillReader();

  // The next of them, a block's at a time, in the order they began; none: that was all. Valid until the next call.
  std::span<const trace::Event> next();
  // Instead of reading any: what the headers of the blocks say.
  void leave_unread();
  const SpillFacts& facts() const;

 private:
  class Reading;
  std::unique_ptr<Reading> reading_;
};

// Whether all fields of event `number` are possible in this record.
bool is_whole(const trace::Event& event, std::uint64_t number, const RankHeader& header);

}  // namespace papaya::report
