// MPI_Reduce_scatter: each rank combines its own block of all operands as they arrive (algorithms/block_reduction.hpp).
//
// Cost after the last arrival: L, a copy of its operand, and log2(p) combines of a block on every rank, no more than
// the last arrival's path to the root of the tree.

#include "algorithms/algorithm.hpp"
#include "algorithms/block_reduction.hpp"

namespace papaya {

namespace {

constexpr Descriptor descriptor = {
    .collective = Collective::reduce_scatter,
    .name = "arrival_blocks",
    .summary =
        "each rank combines its block of the operands as they arrive; the last arrival's path to the root is left",
    .source =
        "Proficz 2019: what has arrived is taken first; deposits and tree as Mohammadalizadehbakhtevari 2021, 4.1",
    .one_node = true,
    .max_element_bytes = BlockReduction::max_element_bytes,
    .parameters = {},
    // Of less than an element for each of some ranks the others need not wait.
    .automatic = {.most_ranks = 32, .lowest_bytes = 64},
    .region_bytes = BlockReduction::region_bytes,
    .control_bytes = BlockReduction::control_bytes,
    .prepare = BlockReduction::prepare,
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
