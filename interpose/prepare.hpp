// What the set-ups of blocking and nonblocking calls have in common.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/transport/mpi/arena_notified.hpp"
#include "algorithms/transport/mpi/team_messages.hpp"
#include "interpose/communicator.hpp"

namespace papaya {

// What the set-up needs of the node's window, and how much of that has to be left to others.
SharedBytes shared_on_one_node(const Communicator& state, const Setup& setup) noexcept;
std::size_t bytes_to_leave(const Communicator& state, const Setup& setup) noexcept;

// The messages that an algorithm is set up for when one of `bytes` comes.
std::size_t capacity_of(const Communicator& state, const Descriptor& algorithm, std::size_t bytes) noexcept;

// May its algorithm, of a collective that ranks may leave early, borrow memory (Setup::is_lean)?
bool may_be_lean(const Communicator& state, const Setup& setup) noexcept;

// `setup.offset` and `setup.region_bytes` say where that is. Makes this rank's share of it present; null if there is
// too little memory. It may be run once all ranks have done this.
std::unique_ptr<Prepared> prepare_on_one_node(Communicator& state, Setup& setup) noexcept;

// The communicator is freed: the user, who has named an algorithm that no call could set up, learns of it.
void say_what_was_not_set_up(const Communicator& state) noexcept;

// For ranks that are ahead of others (Team::messages). On this node: among `members`, which are ranks of `comm`, by
// what is at `offset` of the window.
std::unique_ptr<TeamMessages> messages_on_node(MPI_Comm comm, int size, const std::vector<int>& members,
                                               std::int64_t offset);
// Between nodes: among `members` of MPI_COMM_WORLD; their tags are set once all have a share of the wire. Null, on all
// ranks alike, where MPI has fewer tags than a rank has pages that others write to.
std::unique_ptr<TeamMessages> messages_between_nodes(const std::vector<int>& members);
std::vector<int> tags_of(const ArenaNotified& wire, int size);

}  // namespace papaya
