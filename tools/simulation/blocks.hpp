// Allgathers and alltoalls on the simulated machine, for what leaders of hierarchical_allgather and
// hierarchical_alltoall pay. The library's own sources run between the nodes. Their phases on a node are models, a
// broadcast and an allgather through memory that the node's ranks share: a copy in and a copy out, a flag for each
// fragment. Only time passes.
#pragma once

#include <cstddef>

#include "tools/simulation/machine.hpp"
#include "tuning/rule.hpp"

namespace papaya::simulation {

// From the moment at which all ranks begin until the last one ends, on rank 0. Collective over MPI_COMM_WORLD. `bytes`
// of a block.
double blocks_us(const tuning::Rule& rule, const Nodes& nodes, std::size_t bytes, const Costs& costs,
                 Processor& processor, wait::Policy& policy);

// The same of the simulated MPI's own.
double native_blocks_us(Collective collective, std::size_t bytes);

}  // namespace papaya::simulation
