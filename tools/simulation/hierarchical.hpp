// The hierarchical allreduce of Mohammadalizadehbakhtevari 2021, chapter 6, as the simulation has it: the
// ranks of a node reduce onto its first rank, those leaders run one of papaya's algorithms across nodes among
// themselves, and hand the result out on their nodes. Large messages go in chunks, and while one travels the
// next is reduced.
//
// The part across nodes is the library's own source. Those on a node are a model, since the library's stand
// on memory that ranks share and look at, not on messages that a simulation could see: small operands go to
// the leader; of large ones each rank reduces a slice, and the leader gets the slices. The result lies in the
// leader's memory, and every rank copies it out.
#pragma once

#include <mpi.h>

#include <memory>

#include "algorithms/algorithm.hpp"
#include "tools/simulation/simulated_notified.hpp"
#include "tuning/selection.hpp"

namespace papaya::simulation {

// Collective over MPI_COMM_WORLD. `across`: what the leaders run. `many_leaders`: as in
// allreduce/hierarchical_leaders, each rank of a node that gets enough of a chunk reduces a slice and runs `across` for
// it.
std::unique_ptr<Prepared> make_hierarchical(const tuning::Rule& across, bool many_leaders, std::size_t chunk_bytes,
                                            std::size_t most_bytes, const Costs& costs, Processor& processor,
                                            wait::Policy& policy, bool keeps_data);

}  // namespace papaya::simulation
