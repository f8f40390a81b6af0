// Whether all ranks of the job have papaya, the same build of it, and can use it: asked after MPI_Init, before the
// first collective of papaya's own, which a rank without papaya would not join.
#pragma once

#include "interpose/presence.hpp"

namespace papaya::census {

// True on all ranks that have papaya, or false on all of them, once one has said in a sentence why: then they go on
// natively. The job ends with a sentence where a rank on another node may hold a message that its program could
// receive.
bool all_take_part(presence::Node& node, void (*remove_name)(presence::Node&), int rank, int ranks) noexcept;

}  // namespace papaya::census
