// Where the time of each rank goes, from the first MPI_Init left to the last MPI_Finalize entered; and the efficiencies
// that follow (POP, https://pop-coe.eu/node/69; within and between nodes as TALP of DLB has them).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/mpi_kind.hpp"
#include "profiler/analysis/run_times.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Its parts sum to the run, but where calls of several threads overlap.
struct RankTime {
  bool is_known = false;                         // functions other than blocking collectives were timed
  double before_ns = 0;                          // MPI_Init, after the first rank left it
  double computing_ns = 0;                       // outside MPI
  double unrecorded_ns = 0;                      // the program had switched recording off: either
  double collectives_ns = 0;                     // blocking, and weakly consistent ones
  double starting_ns = 0;                        // calls that start nonblocking and persistent collectives
  std::array<double, mpi_kind_count> of_kind{};  // ns
  double finalize_ns = 0;                        // in MPI_Finalize, until the last rank came there

  // In MPI, outside of blocking collectives.
  double elsewhere_ns() const;
};

struct FunctionFigures {
  std::string name;  // MPI_Sendrecv
  MpiKind kind{};
  std::uint64_t calls = 0;  // summed over ranks, as is
  double ns = 0;
  std::int32_t most_rank = 0;  // that spends most time there, which is
  double most_ns = 0;
};

// 0 to 1. With u(p) the time that rank p computes and T that of the run, or of a phase: the longest that a rank was in
// it.
struct Efficiency {
  bool is_known = false;
  double of_ns = 0;                  // T: of a run the time for which any of its ranks was recorded
  double parallel = 0;               // mean u / T
  double load_balance = 0;           // mean u / max u, which is the product of
  double balance_within_nodes = 0;   // most of a node / (max u x ranks of the job / nodes), and
  double balance_between_nodes = 0;  // all u / (most of a node x nodes)
  double communication = 0;          // max u / T, which is the product of
  // Where the record has all calls of the run, with T_ideal the critical path (critical_path.hpp):
  bool knows_transfer = false;
  double serialisation = 0;  // max u / T_ideal
  double transfer = 0;       // T_ideal / T
};

// What a rank computes.
struct Useful {
  double ns = 0;
  std::int32_t node = 0;
};
// Of ranks of a run, or of a part of it, of that length. Not known where nobody computes.
Efficiency efficiency_of(std::span<const Useful> ranks, double run_ns);
// Fills in what depends on the critical path. A clock's error may make that longer than the run.
void add_transfer(Efficiency& efficiency, double run_ns, double path_ns);

// Whether the program had switched recording off for a while. What it did meanwhile is not known.
bool was_switched_off(const RankHeader& header);

// What a rank computed in the phase of this number; time for which recording was off counts as computing.
double computing_in_phase_ns(const RankFile& file, std::size_t number);

// By file of the run.
std::vector<RankTime> rank_times(const Run& run, const Clocks& clocks, const RunTimes& times);
// Of the ranks of these files. Not known unless all times are. Time for which all had switched recording off is no part
// of the run.
Efficiency efficiency_of(const Run& run, const std::vector<RankTime>& ranks, std::span<const std::size_t> files,
                         double run_ns);
// Most time first.
std::vector<FunctionFigures> timed_functions(const Run& run, const Clocks& clocks);

}  // namespace papaya::report
