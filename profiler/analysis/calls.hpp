// The calls of a run as all ranks of a communicator made them together: for whoever shows or replays single calls. The
// report's figures come from analysis.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {

struct RankInCall {
  std::uint32_t file;
  std::uint32_t event;  // of the file's
  std::int32_t rank;    // in the communicator
  double arrival_ns;    // on node 0's clock
};

// A blocking call that is in the record of every rank of its communicator.
struct MatchedCall {
  std::uint64_t communicator = 0;
  std::uint64_t call = 0;
  std::vector<RankInCall> ranks;  // by rank of the job
  std::size_t last = 0;           // who arrived last
  std::size_t second = 0;         // and who before
  double first_ns = 0;            // when the first arrived
};

Roles roles_of(const Run& run, const MatchedCall& call);

// When each rank could have left at the earliest: once those whose data it needs had arrived.
void earliest_exits(const Roles& roles, std::span<const double> arrivals_ns, std::span<double> exits_ns);

// By communicator, then in the order they were made. Calls in which ranks disagree about the collective are left out.
std::vector<MatchedCall> matched_calls(const Run& run, const Clocks& clocks);

}  // namespace papaya::report
