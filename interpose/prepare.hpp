// What one rank does by itself to get an algorithm ready for a communicator on one node.
#pragma once

#include <cstddef>
#include <memory>

#include "algorithms/algorithm.hpp"
#include "interpose/communicator.hpp"

namespace papaya {

// What the set-up needs of the node's window, and how much of that has to be left to others.
SharedBytes shared_on_one_node(const Communicator& state, const Setup& setup) noexcept;
std::size_t bytes_to_leave(const Communicator& state, const Setup& setup) noexcept;

// `setup.offset` and `setup.region_bytes` say where that is. Makes this rank's share of it present; null if there is too little
// memory. It may be run once all ranks have done this.
std::unique_ptr<Prepared> prepare_on_one_node(Communicator& state, Setup& setup) noexcept;

}  // namespace papaya
