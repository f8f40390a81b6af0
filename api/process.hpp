// What all weakly consistent collectives of a process share: how its threads wait, and that whoever waits in one moves
// all on, since another rank may need this one's progress there.
#pragma once

#include <mpi.h>

#include <compare>
#include <cstdint>

#include "algorithms/waiting/wait.hpp"
#include "base/settings.hpp"

namespace papaya::weak {

// When and where a collective was created: equal on all its ranks, different for any two.
struct Birth {
  std::uint64_t ns = 0;
  std::uint64_t process = 0;
  std::uint64_t number = 0;  // among the process's
  auto operator<=>(const Birth&) const = default;
};

// Moved on by whoever waits.
class Member {
 public:
  // Its messages and its call that is under way. Any thread; never two at once.
  virtual void progress() noexcept = 0;
  virtual Birth birth() const noexcept = 0;
  // A communicator of papaya's, among whose ranks MPI is to make progress.
  virtual MPI_Comm comm() const noexcept = 0;
  // MPI_Finalize has been called: frees what is left, as if the program had. In the order of their birth, which is the
  // same on all ranks: threads may have created them in different orders.
  virtual void end() noexcept = 0;

 protected:
  ~Member() = default;
};

// At the first creation; once. `node`: the ranks of the communicator on this node. Collective over it.
void start(MPI_Comm node, const Settings& settings);
wait::Policy& policy() noexcept;
// Which ranks are missing is asked of the algorithm that waits.
void enter(Member& member);
// Once, without waiting.
void move_all_on() noexcept;
void leave(Member& member) noexcept;

}  // namespace papaya::weak
