// Where the blocks of MPI_Reduce_scatter lie, whose sizes all ranks know.
#pragma once

#include <algorithm>

#include "interpose/call.hpp"
#include "interpose/communicator.hpp"

namespace papaya {

// What the counts of all ranks add up to; negative if one is, or if there are none.
inline MPI_Count sum_of(const Lists& lists, int ranks) noexcept {
  if (lists.counts == nullptr) return -1;
  MPI_Count sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const MPI_Count count = lists.count(rank);
    if (count < 0 || __builtin_add_overflow(sum, count, &sum)) return -1;
  }
  return sum;
}

// Elements of the operand, and of this rank's part of the result.
inline std::size_t operand_elements(const Communicator& state, const Arguments& a) noexcept {
  return static_cast<std::size_t>(a.collective == Collective::reduce_scatter_block ? state.size * a.count : a.count);
}
inline std::size_t result_elements(const Communicator& state, const Arguments& a) noexcept {
  return static_cast<std::size_t>(a.collective == Collective::reduce_scatter ? a.lists.count(state.rank) : a.count);
}

// Says in `operands` where the blocks are, by the size of an element.
inline void describe_blocks(Communicator& state, const Arguments& a, std::size_t element, Operands& operands) {
  state.starts.assign(1, 0);
  operands.count = 0;
  for (int rank = 0; rank < state.size; ++rank) {
    const auto count = static_cast<std::size_t>(a.lists.count(rank));
    operands.count = std::max(operands.count, count);
    state.starts.push_back(state.starts.back() + count * element);
  }
  operands.bytes = operands.count * element;
  operands.starts = state.starts.data();
}

}  // namespace papaya
