#include "algorithms/weak/partial_across_nodes.hpp"

namespace papaya {

namespace {

constexpr WeakDescriptor descriptor = partial_descriptor<Starter::first>(
    "solo_allreduce",
    "executed by the first rank that arrives, with what the others have left over; p operands combined by one");

const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
