// What the record of a run does not have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/read.hpp"

namespace papaya::report {

// As far as that is known.
struct RecordFacts {
  std::vector<std::string> problems;  // a sentence about each file that cannot be read as it is
  std::string failure;                // why the analysis ended early; empty: it did not
  std::vector<RankRange> missing;     // ranks without a usable record
  std::uint64_t missing_ranks = 0;
  std::uint64_t unwanted_ranks = 0;  // that PAPAYA_RANKS leaves out
  struct Abort {
    std::int32_t rank = 0;
    std::int64_t code = 0;
  };
  std::vector<Abort> aborts;       // calls of MPI_Abort
  std::vector<RankRange> running;  // ranks that did not come to MPI_Finalize
  bool is_all_running = false;

  bool clocks_compared_twice = true;  // those of all nodes

  bool is_trace = false;                 // some rank wrote a trace
  std::uint64_t missing_events = 0;      // older than the ring holds, and in no trace
  std::uint64_t unread_events = 0;       // in a trace that was not read
  std::vector<RankRange> trace_limited;  // ranks whose trace reached its limit, the largest of which is
  std::uint64_t trace_limit = 0;         // so many bytes
  std::vector<RankRange> trace_failed;   // ranks whose trace could not be written, the last of them
  std::uint32_t trace_error = 0;         // for this errno
  std::uint64_t torn_events = 0;         // torn or damaged
  std::uint64_t untabled_events = 0;     // on communicators that the record has no room for
  std::uint64_t lost_communicators = 0;
  std::uint64_t lost_call_sites = 0;
  std::uint64_t lost_weak_collectives = 0;
  std::uint64_t weak_events = 0;                 // calls of weakly consistent collectives; of these
  std::uint64_t missing_weak_events = 0;         // older than the rings hold
  std::uint64_t inconsistent_communicators = 0;  // whose ranks cannot be told apart, and that were used

  std::uint64_t partial_calls = 0;            // compared without the ranks that have no usable record
  std::uint64_t unmatched_calls = 0;          // not compared: the record of one of the ranks does not have them
  std::uint64_t intercommunicator_calls = 0;  // not compared, summed over ranks,
  double intercommunicator_ns = 0;            // and the time inside them
  std::uint64_t conflicting_calls = 0;        // in which ranks disagree about the collective
  std::string first_conflict;
  std::uint64_t pending_left_out = 0;  // unfinished calls that are not listed
};

}  // namespace papaya::report
