// Where the blocks of collectives lie whose blocks differ: MPI_Reduce_scatter, MPI_Allgatherv, MPI_Alltoallv.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

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

// Elements that this rank receives from itself, where every rank receives from every one.
inline MPI_Count own_elements(const Communicator& state, const Arguments& a) noexcept {
  return a.collective == Collective::allgatherv ? a.lists.count(state.rank) : a.count;
}

// Says in `operands` where the blocks of MPI_Reduce_scatter are, by the size of an element.
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

// Where the blocks of a buffer are, one for each rank, by size and extent of an element.
inline void lay_out(const void* buffer, const Lists& lists, std::size_t element, MPI_Aint extent,
                    std::span<Block> blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const int rank = static_cast<int>(i);
    // By integers: MPI_BOTTOM is a null pointer.
    const auto at = reinterpret_cast<std::intptr_t>(buffer) + lists.displacement(rank) * extent;
    blocks[i] = {reinterpret_cast<std::byte*>(at), static_cast<std::size_t>(lists.count(rank)) * element};
  }
}

// Those of MPI_Allgatherv in `operands`.
inline void describe_gathered(Communicator& state, const Arguments& a, std::size_t element, MPI_Aint extent,
                              Operands& operands) {
  state.blocks.resize(static_cast<std::size_t>(state.size));
  lay_out(a.receive, a.lists, element, extent, state.blocks);
  operands.bytes = 0;
  for (const Block& block : state.blocks) operands.bytes = std::max(operands.bytes, block.bytes);
  operands.receive = nullptr;
  operands.receive_blocks = state.blocks.data();
}

}  // namespace papaya
