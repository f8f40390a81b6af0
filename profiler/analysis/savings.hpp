// What better algorithms would bring a run, by replaying its calls from their recorded arrivals. A call's exits become
// those of a model (exit_model.hpp); what each rank did between two calls stays as long as it was. So a rank arrives
// earlier at a call by what it saved in those before, and the run gets shorter by what its last rank saves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace papaya::report {

struct Run;
struct Analysis;
struct EventFacts;
class Archive;
class Clocks;
class ExitModel;

struct Saving {
  double ranks_ns = 0;  // sum over ranks of recorded exit less model's exit, arrivals as recorded
  double run_ns =
      std::numeric_limits<double>::quiet_NaN();  // how much earlier the last rank comes to its end; NaN: not worked out
};

// Of the calls that are in the record of all their ranks.
struct Savings {
  std::uint64_t calls = 0;
  std::uint64_t open_calls =
      0;             // of those, left to MPI though papaya has an algorithm, and the times for its model were measured
  Saving no_excess;  // every rank left at its earliest legal exit
  struct Candidate {
    std::string algorithm;  // "arrival_leader, arrival_tree" where sizes differ
    Saving saving;
  };
  std::vector<Candidate> candidates;  // instead of MPI's in the open calls, most saved first; empty if there are none
  double span_ns = 0;                 // the recorded part of the run, which run_ns is a share of

  // The best one that makes the run no longer, nullptr if none saves anything.
  const Candidate* best() const;
};

// Replays the calls of a run as they are read.
class SavingsReplay {
 public:
  // `facts` by file. `sites`: numbers of the call sites in the order in which they are replayed by themselves, until
  // that takes too long for `parts`, ranks in calls.
  SavingsReplay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts,
                std::span<const std::size_t> sites, std::uint64_t parts, ExitModel& model);
  ~SavingsReplay();
  SavingsReplay(SavingsReplay&&) noexcept;
  SavingsReplay& operator=(SavingsReplay&&) = delete;

  // The call that the model has taken, in the order of CallStream. `site`: its number, or that of none, the largest
  // there is.
  void add(std::size_t site);
  // That was all of a part which is not the run's last, `facts` of it by file.
  void end_part(const Clocks& clocks, std::span<const EventFacts> facts);
  // The next part of the run, as if it began anew.
  void merge(const SavingsReplay& next);
  void pack(Archive& archive);
  // Fills in `savings` of the analysis and of its call sites.
  void write(Analysis& analysis) const;

 private:
  class Replay;
  std::unique_ptr<Replay> replay_;
};

}  // namespace papaya::report
