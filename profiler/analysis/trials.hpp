// PAPAYA_ADAPT: which algorithms were tried in the calls of a run, and which of them stayed. Rules for patterns of
// arrivals: which pattern was found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/analysis/patterns_of_sites.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/frames.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// In the calls of one collective and class of sizes on one communicator.
struct TrialFigures {
  struct Tried {
    std::string algorithm;
    trace::TriedState state{};
    double median_ns = 0;  // of a call in the last trial, where it was measured
    std::uint64_t samples = 0;
  };
  struct Change {
    std::string before;
    std::string algorithm;
    std::uint64_t calls = 0;  // of these, before
    double at_ns = 0;         // since the run began
  };

  struct Arrivals {
    PatternClass pattern{};
    std::int32_t straggler = -1;  // in the communicator, where persistent
    std::uint64_t calls = 0;      // of these, before
    double at_ns = 0;             // since the run began
    // "persistent, rank 3 late"
    std::string text() const;
  };

  std::string name;  // MPI_Allreduce
  std::string communicator;
  std::vector<NamedFrame>
      call_site;           // on the communicator's rank 0, innermost first; empty: of all that are not told apart
  bool has_bytes = false;  // not of a barrier
  std::uint64_t least_bytes = 0;  // of a call
  std::uint64_t most_bytes = 0;
  std::uint64_t calls = 0;  // until the last trial ended, or the last change
  std::uint64_t trials = 0;
  std::string algorithm;  // since then
  std::vector<Tried> tried;
  std::uint64_t changes = 0;
  std::vector<Change> last_changes;  // the first of them first
  std::uint64_t arrivals_changes = 0;
  std::vector<Arrivals> last_arrivals;  // as they were found, the first of them first
  double spent_ns = 0;                  // lost by trying, a rank

  // "arrival_leader 400 ns, native 1.20 us, arrival_tree 6.20 us (dropped)": those kept first, of each kind the
  // quickest.
  std::string tried_text() const;
  // "from solve.c:88"; empty: of all that are not told apart.
  std::string site_text() const;
  // "arrival_leader instead of native from call 77 on, 12.0 ms after MPI_Init": the last change; empty: there was none.
  std::string change_text() const;
  // "arrivals persistent, rank 3 late, from call 4,112 on, 1.20 s after MPI_Init, before that random": the last.
  std::string arrivals_text() const;
};

std::string_view state_name(trace::TriedState state);

// Most calls first. `begin_ns`: of the run, on node 0's clock.
std::vector<TrialFigures> trial_figures(const Run& run, const Clocks& clocks, double begin_ns);

}  // namespace papaya::report
