#include "algorithms/weak/partial_across_nodes.hpp"

namespace papaya {

namespace {

constexpr WeakDescriptor descriptor = partial_descriptor<Starter::drawn>(
    "majority_allreduce",
    "executed when a rank drawn for the call arrives, with what the others have left over; p operands combined by one");

const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
