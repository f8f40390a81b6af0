// What must be measured with messages: the offset between the nodes' clocks, and alpha, the time a message takes.
// Only at MPI_Init and MPI_Finalize, on papaya's own communicators.
#pragma once

#include <mpi.h>
#include <sched.h>

#include "algorithms/transport/out_of_band.hpp"
#include "profiler/record/format.hpp"

namespace papaya::measure {

// Collective over `leaders`, one rank per node, in the order of the nodes. The offset of this node's clock to the first
// node's, in ceil(log2 nodes) rounds as in HCA3 (Hunold and Carpen-Amarie 2018): those who know theirs serve as many
// others at once. Each pair exchanges messages for some milliseconds; the shortest ones of either direction tell the
// offset, since what lengthens a message comes on top (queues, lost cores). Who waits for its turn sleeps.
trace::ClockOffset clock_offset(MPI_Comm leaders, double ns_per_tick, std::uint64_t begin_ticks) noexcept;

// Collective over `comm`: the time of one message from its rank 0 to its rank `peer`, half of the shortest round trip,
// for alpha's sizes. Stops growing after `budget_ms`. Writes into `ns` on rank 0.
void message_times(MPI_Comm comm, int peer, double budget_ms, std::uint64_t* ns) noexcept;

// Collective over the ranks of a node: the processors that one of its ranks or another may run on; none if that is not
// known.
cpu_set_t processors_of(OutOfBand& node) noexcept;

inline constexpr std::uint64_t alpha_sizes[] = {8, 1024, 16384, 262144, 1048576};
inline constexpr int alpha_size_count = 5;
static_assert(alpha_size_count <= static_cast<int>(trace::alpha_capacity));

}  // namespace papaya::measure
