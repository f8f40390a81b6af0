// How long a rank computed, that is was outside MPI, between its collective calls; and what comparisons of that have in
// common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "profiler/read/read.hpp"

namespace papaya::report {

// The longest of the times of computing that a rank has had since any of its events: of those that are longer than all
// that came later, the latest few hundred.
class Longest {
 public:
  struct Entry {
    std::uint64_t number = 0;
    double ns = 0;
    std::uint32_t site = 0;  // the call site that ended it; 0: not known
  };

  void add(std::uint64_t number, double ns, std::uint32_t site);
  // Of no length if there is none.
  Entry since(std::uint64_t number) const;

 private:
  std::vector<Entry> kept_;
};

// What one rank did outside its collective calls, summed from event to event.
class Computed {
 public:
  // `begins_run`: what was before the first event counts, from MPI_Init on.
  Computed(const RankFile& file, double ns_per_tick, bool begins_run = true)
      : init_ticks_(begins_run ? file.header.init_ticks : 0), ns_per_tick_(ns_per_tick) {}

  // Event number `number` of the rank. `interval`: what its thread did before; may be null.
  void add(const trace::Event& event, std::uint64_t number, const trace::Interval* interval);

  double computed_ns() const { return computed_ns_; }
  double timed_ns() const { return timed_ns_; }  // in timed functions
  // The same just before the event that was added last.
  double just_computed_ns() const { return just_computed_ns_; }
  double just_timed_ns() const { return just_timed_ns_; }
  const Longest& longest() const { return longest_; }
  // The rank of MPI_COMM_WORLD that it waited for longest in messages at one time since any of its events, plus 1.
  const Longest& waits() const { return waits_; }
  // And for which, and how long, before the event that was added last; -1: that is not known.
  std::int32_t waited_for() const { return waited_for_; }
  double waited_ns() const { return waited_ns_; }

 private:
  std::uint64_t& left_ticks_of(std::uint16_t thread);

  std::uint64_t init_ticks_;
  double ns_per_tick_;
  double computed_ns_ = 0;
  double timed_ns_ = 0;
  double just_computed_ns_ = 0;
  double just_timed_ns_ = 0;
  Longest longest_;
  Longest waits_;
  std::int32_t waited_for_ = -1;
  double waited_ns_ = 0;
  std::vector<std::pair<std::uint16_t, std::uint64_t>> left_ticks_;  // by thread
};

// Of an even number the lower one of the two in the middle: of two ranks the one that is not late. Reorders them.
double lower_median(std::vector<double>& values);

// Of a delay, or of waiting, for a rank to have begun it, and to be named.
inline constexpr double enough_evidence = 0.8;
// Of the run: what brings less, or costs less of all ranks' time, deserves no next step.
inline constexpr double worth_a_step = 0.01;

}  // namespace papaya::report
