// What all weakly consistent collectives of a process share: how its threads wait, and that whoever waits in one moves
// all on, since another rank may need this one's progress there.
#pragma once

#include <mpi.h>

#include "algorithms/waiting/wait.hpp"
#include "base/settings.hpp"

namespace papaya::weak {

// Moved on by whoever waits.
class Member {
 public:
  // Any thread; never two at once.
  virtual void progress() noexcept = 0;
  // A communicator of papaya's, among whose ranks MPI is to make progress.
  virtual MPI_Comm comm() const noexcept = 0;
  // MPI_Finalize has been called: frees what is left, in the order of creation, as if the program had.
  virtual void end() noexcept = 0;

 protected:
  ~Member() = default;
};

// At the first creation; once. `node`: the ranks of the communicator on this node. Collective over it.
void start(MPI_Comm node, const Settings& settings);
wait::Policy& policy() noexcept;
// Which ranks are missing is asked of the algorithm that waits.
void enter(Member& member);
void leave(Member& member) noexcept;

}  // namespace papaya::weak
