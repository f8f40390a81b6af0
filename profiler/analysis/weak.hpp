// Weakly consistent collectives: how old what they gave was, what took part, and what waiting they saved.
//
// What a consistent collective would have cost is an estimate: the calls of one collective are replayed in order, each
// rank doing between two calls, and during one that it did not wait in, what it did; it then goes on once those have
// arrived whose data it needs. The arrivals as they were would not do: ranks that are never held up drift apart, and
// the same lateness would be counted again at each call. Of the algorithms' own cost the replay knows nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/clocks.hpp"
#include "profiler/read/frames.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Sums over calls of ranks.
struct WeakSums {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  double inside_ns = 0;
  double waited_ns = 0;
  std::uint64_t aged_calls = 0;  // whose results had a contribution; of these
  double staleness = 0;          // mean of the clock less the oldest contribution's
  std::uint64_t most_staleness = 0;
  double share = 0;  // mean, of the elements or ranks that took part
  // Of the calls that are in the record of all ranks, with the call before.
  std::uint64_t compared = 0;
  double compared_waited_ns = 0;     // in them
  double consistent_waiting_ns = 0;  // what a consistent collective would have cost there
  double saved_ns() const { return consistent_waiting_ns - compared_waited_ns; }
};

// Whom ranks would have waited for in consistent collectives.
struct WeakAwaited {
  std::int32_t rank = 0;  // of the job
  double waiting_ns = 0;  // of the others, summed
};

// The calls in the record that the program made at one place, from whatever ranks.
struct WeakSite {
  std::vector<NamedFrame> frames;  // where it called or started them; none: not known
  std::vector<NamedFrame> ended;   // where it waited for them or tested them at last; none: there too, or not known
  WeakSums sums;
  std::vector<WeakAwaited> awaited;  // by these calls; most waiting first
};

// The calls in the record that the program made in one of its phases.
struct WeakPhase {
  std::string name;  // empty: outside of all
  WeakSums sums;
};

// A rank's calls, over the whole run; what has been compared as far as the record has it.
struct WeakRank {
  std::int32_t rank = 0;  // of the job
  WeakSums sums;
  double caused_ns = 0;  // what others would have waited for it in consistent collectives
};

// Calls in the record whose results were so old.
struct WeakAge {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t calls = 0;
};

// Calls by one algorithm with the same parameters, on all communicators and summed over ranks.
struct WeakFigures {
  std::string collective;  // ssp_allreduce
  std::string algorithm;
  std::string parameters;         // slack=4
  WeakSums sums;                  // exact, over the whole run; `compared` has each call once
  std::vector<WeakRank> ranks;    // by rank
  std::vector<WeakSite> sites;    // most time inside first
  std::vector<WeakPhase> phases;  // most time inside first; empty if the program names none
  std::vector<WeakAge> ages;      // ascending, without gaps
};

// Most time inside first.
std::vector<WeakFigures> weak_figures(const Run& run, const Clocks& clocks);

// Its name, or else its identity.
std::string weak_communicator(const trace::WeakRow& row);

}  // namespace papaya::report
