// PAPAYA_APPROX: calls of MPI_Allreduce, MPI_Reduce and MPI_Bcast that the user lets return approximate results, by the
// weakly consistent collectives of libpapaya-weak-MPI.so, which is loaded then. Nothing else is changed by it, and a
// job that does not ask for it pays one test of a communicator's flag a call.
//
// All ranks decide alike whether a call is approximate: by facts that MPI makes equal on all of them, and by what they
// have agreed on at the first call of such a collective on the communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "interpose/call.hpp"
#include "interpose/flavour.hpp"

namespace papaya::approx {

// Collective over the job; before the records are open, since those hold the settings. Job::approximates tells whether
// there is anything to be done.
void start(Job& job, const Preload& preload) noexcept;
// After the records are open.
void open(const Job& job, Records& records) noexcept;
// Collective over the job, in MPI_Finalize, while the records are open.
void stop(const Job& job, Records& records) noexcept;

constexpr bool may_concern(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::reduce || collective == Collective::bcast;
}

// True if the call has been run, with an approximate result. On all ranks of the communicator alike.
bool run(Communicator& state, const Arguments& arguments, const CallFacts& facts, Outcome& outcome) noexcept;

}  // namespace papaya::approx
