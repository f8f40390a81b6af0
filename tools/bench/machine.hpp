// Properties of the machine that the limits are made of, and the time of a message.
#pragma once

#include <mpi.h>

#include <vector>

#include "tools/bench/clock.hpp"
#include "tools/bench/limits.hpp"

namespace papaya::bench {

// Collective over the world of the clock. Measured on rank 0's node while the others sleep; rank 0 has the
// result. Ranks that measure are tied to a core each meanwhile. L is 0 where two ranks cannot have two cores.
Machine measure_machine(const CommonClock& clock, MPI_Comm world, int cores_of_node, std::size_t largest_bytes);

// Measures L and s once more and keeps the smaller: a virtual machine's cores move, and a limit must hold
// throughout.
void measure_lines_again(const CommonClock& clock, MPI_Comm world, Machine& machine);

// How much of its cores this node gave to processes of other jobs while this object lived: noise that medians
// hide only up to a point. Collective over the ranks of the node.
class Others {
 public:
  explicit Others(const CommonClock& clock);
  double share() const;  // of the time of all cores that any rank here may use; 0 where the system does not tell

 private:
  double busy_s() const;

  const CommonClock& clock_;
  std::vector<int> processors_;
  double begin_us_;
  double begin_busy_s_;
  double begin_own_s_;
};

// alpha: one message of so many bytes from rank 0 to rank 1, half of the shortest round trip; 0 with one
// rank. On every rank.
double message_us(const CommonClock& clock, MPI_Comm world, std::size_t bytes);

}  // namespace papaya::bench
