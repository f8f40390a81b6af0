// Weakly consistent collectives: how old what they gave was, what took part, and what waiting they saved.
//
// What a consistent collective would have cost is an estimate: the calls of one collective are replayed in order, each
// rank doing between two calls, and during one that it did not wait in, what it did; it then goes on once those have
// arrived whose data it needs. The arrivals as they were would not do: ranks that are never held up drift apart, and
// the same lateness would be counted again at each call. Of the algorithms' own cost the replay knows nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Calls by one algorithm with the same parameters, on all communicators and summed over ranks.
struct WeakFigures {
  std::string collective;  // ssp_allreduce
  std::string algorithm;
  std::string parameters;  // slack=4
  // Exact, over the whole run.
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  double inside_ns = 0;
  double waited_ns = 0;
  std::uint64_t aged_calls = 0;  // whose results had a contribution; of these
  double staleness = 0;          // mean of the clock less the oldest contribution's
  std::uint64_t most_staleness = 0;
  double share = 0;  // mean, of the elements or ranks that took part
  // Of the calls that are in the record of all ranks, with the call before.
  std::uint64_t compared = 0;        // calls, each once
  double compared_waited_ns = 0;     // in them
  double consistent_waiting_ns = 0;  // what a consistent collective would have cost there
  double saved_ns() const { return consistent_waiting_ns - compared_waited_ns; }
};

// Most time inside first.
std::vector<WeakFigures> weak_figures(const Run& run, const Clocks& clocks);

// Its name, or else its identity.
std::string weak_communicator(const trace::WeakRow& row);

}  // namespace papaya::report
