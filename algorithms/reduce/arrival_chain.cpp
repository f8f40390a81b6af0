// MPI_Reduce along the chain of arrivals (algorithms/chain.hpp; Mohammadalizadehbakhtevari 2021, Algorithm 5.1).
// Each rank leaves once it has passed the partial result on; the root waits for the last link.

#include "algorithms/chain.hpp"

namespace papaya {

namespace {

constexpr Descriptor descriptor = {
    .collective = Collective::reduce,
    .name = "arrival_chain",
    .summary = "each arrival adds its operand to the partial result and leaves; the root takes the last one's",
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
