// One of the calls at which most was waited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/frames.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

inline constexpr std::size_t most_costly_calls = 10;

struct CostlyCall {
  std::string name;  // MPI_Allreduce
  std::string communicator;
  std::uint64_t call = 0;
  std::int32_t rank = 0;           // most waited for
  std::vector<RankRange> late;     // that one and those that came to it about when it did
  std::int32_t waits_alone = -1;   // the one rank that came long before all the others; -1: there is none such
  double begin_ns = 0;             // of the longest wait for that rank, since the run began
  double delay_ns = 0;             // how long it was
  double waiting_ns = 0;           // summed over ranks
  std::vector<NamedFrame> frames;  // where that rank made it, innermost first; empty: not known
  bool is_first = false;           // of that rank's calls
  // What that rank called most while it was waited for.
  struct Meanwhile {
    std::uint64_t calls = 0;  // 0: nothing
    std::string name;         // MPI_Bcast
    std::vector<NamedFrame> frames;
  };
  Meanwhile meanwhile;
};

}  // namespace papaya::report
