// An algorithm whose result PAPAYA_VERIFY finds to differ from MPI's serves its communicator no longer. Ranks see
// different results, so they agree on that where no rank may leave early: in the call itself, or, of those that ranks
// may leave, in the next one of which that is true. Which algorithms they have to agree on is the same on all of them,
// as the calls are that were verified.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "interpose/call.hpp"

namespace papaya::verdicts {

// On this rank, in its result.
struct Found {
  std::size_t element;
  std::string ours;
  std::string expected;
};

// After a verified call of the communicator; in one that no rank leaves early it is collective. True if this rank is to
// return MPI's result.
bool pass(Communicator& state, const Descriptor& algorithm, Collective collective, std::optional<Found> found,
          const CallFacts& facts) noexcept;

// In a call that no rank leaves early.
void agree(Communicator& state, const CallFacts& facts) noexcept;

// The communicator is freed: what its ranks have not agreed on is told at the end.
void keep(Communicator& state) noexcept;
// Collective over the job.
void tell_kept(const Job& job, Records& records) noexcept;

}  // namespace papaya::verdicts
