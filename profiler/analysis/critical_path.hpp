// The critical path of a run: the longest chain of computing that its blocking collectives order, on a network that
// takes no time. At each call a rank's chain is as long as it was when the rank left its call before, and what it has
// computed since; it leaves with the longest chain of those that it has to wait for. MPI_Finalize waits for all.
//
// On that network a rank is in a phase for as long as it computes there and waits in the phase's calls; a phase's path
// is as long as its rank with the longest such time. That of a communicator is the longest chain that ends with its
// ranks.
//
// What only messages, nonblocking collectives or windows order is not followed: where they make ranks wait, the path is
// a lower bound, so that transfer is no worse than told and serialisation no better. Intervals tell for whom a rank
// waited longest, not when. So all that is certain is that its chain is not shorter than the sender's at the call
// before; and where both come to the same call next, what the sender has computed since is in the path anyway.
#pragma once

#include <span>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class Archive;

class CriticalPath {
 public:
  explicit CriticalPath(const Run& run);

  // A compared call, in the order of CallStream.
  void add(const GroupCall& call);
  // The next part of the run: as if each chain went on with the rank that it came to in the part before.
  void merge(const CriticalPath& next);
  void pack(Archive& archive);
  // Fills in what follows from it, `facts` by file; the analysis knows what each rank computes, and the efficiencies of
  // its phases and communicators, those of `groups` in that order, but for transfer. Where the rings have lost the
  // beginning of the run, only what is between the first and the last call that all ranks of the job made.
  void write(std::span<const EventFacts> facts, std::span<const Group> groups, Analysis& analysis) const;

 private:
  bool begins_at(const GroupCall& call);
  void write_part(Analysis& analysis) const;
  void write_phases(Analysis& analysis) const;

  const Run& run_;
  bool is_known_ = true;         // the record tells computing from messages, and lacks nothing but its beginning
  bool is_cut_ = false;          // it does lack that
  std::vector<double> path_ns_;  // by file
  std::vector<double> seen_ns_;  // by file: what it had computed at its call before
  std::vector<std::vector<double>> phase_waits_ns_;  // by file and number of the phase: waiting in its calls
  // Of a record without its beginning: of the calls of all ranks,
  bool has_begun_ = false;
  std::vector<double> begun_ns_;  // by file: what it had computed at the first one
  double begin_ns_ = 0;           // its last arrival
  double end_ns_ = 0;             // that of the latest one
  double longest_ns_ = 0;         // chain there
  double most_computed_ns_ = 0;   // by a rank between the two
  // Of one call.
  std::vector<double> chains_ns_;
  std::vector<double> exits_ns_;
};

}  // namespace papaya::report
