// Communicator identity: a number that all ranks of a communicator compute alike without a message, and that differs
// between communicators of one job. It is the lineage: the parent's identity, how the child was made, its members in
// order, and how many like it the parent had before. MPI orders collective calls on a parent, so that count agrees
// on the child's members even when threads work on several parents at once.
#pragma once

#include <cstdint>
#include <span>

namespace papaya::identity {

inline constexpr std::uint64_t world = 1;

// `members` are ranks in MPI_COMM_WORLD in the communicator's order, -1 for a process outside the world.
std::uint64_t of_members(std::span<const int> members) noexcept;

// `salt` separates ways of creation that need not be ordered among each other (MPI_Comm_create_group's tag).
// `ordinal` counts earlier children of `parent` with the same members and salt.
std::uint64_t of_child(std::uint64_t parent, std::uint64_t members, std::uint64_t salt, std::uint64_t ordinal) noexcept;

}  // namespace papaya::identity
