// The simulated machine as the library would see it: which ranks share a node, and how long messages take.
#pragma once

#include <cstddef>

#include "algorithms/algorithm.hpp"
#include "tools/simulation/simulated_notified.hpp"

namespace papaya::simulation {

// Collective over MPI_COMM_WORLD.
Nodes nodes_of_ranks();

// Of one message between two hosts.
double message_s(const simgrid::s4u::Host& from, const simgrid::s4u::Host& to, std::size_t bytes, const Costs& costs);

// How long a call takes by the algorithm's own cost model (Descriptor::call_ns), with messages as between the first two
// nodes, which the library measures.
double model_us(const Descriptor& algorithm, const Nodes& nodes, std::size_t bytes, const Costs& costs);

}  // namespace papaya::simulation
