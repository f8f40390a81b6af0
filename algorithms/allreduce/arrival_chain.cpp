// MPI_Allreduce along the chain of arrivals (algorithms/chain.hpp; Mohammadalizadehbakhtevari 2021, Algorithm 5.1).
// All ranks wait for the last link and copy the result: the chain's reduce with a broadcast from shared memory.

#include "algorithms/chain.hpp"

namespace papaya {

namespace {

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "arrival_chain",
    .summary = "each arrival adds its operand to the partial result; all copy the last one's",
    .source = "Mohammadalizadehbakhtevari 2021, Algorithm 5.1",
    .one_node = true,
    .needs_arrival_order = true,
    .max_element_bytes = Chain::max_element_bytes,
    .parameters = {},
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return Chain::shape_for(ranks, capacity).total(); },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t>) -> std::unique_ptr<Prepared> {
      return std::make_unique<Chain>(team, capacity);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
