// What all weakly consistent collectives and segments of a process share: how its threads wait, and that whoever waits
// in one moves all on, since another rank may need this one's progress there.
#pragma once

#include <mpi.h>

#include <compare>
#include <cstdint>
#include <string>

#include "algorithms/waiting/wait.hpp"
#include "base/settings.hpp"

namespace papaya::weak {

// When and where a collective was created: equal on all its ranks, different for any two.
struct Birth {
  std::uint64_t ns = 0;
  std::uint64_t process = 0;
  std::uint64_t number = 0;  // among the process's
  auto operator<=>(const Birth&) const = default;
  // Of what this process creates now.
  static Birth now() noexcept;
  std::string name() const;  // no other file of this machine has it
};

// Moved on by whoever waits.
class Member {
 public:
  // Its messages and its call that is under way. Any thread; never two at once.
  virtual void progress() noexcept = 0;
  virtual Birth birth() const noexcept = 0;
  // A communicator of papaya's, among whose ranks MPI is to make progress.
  virtual MPI_Comm comm() const noexcept = 0;
  // No thread of papaya's calls MPI for it from here on; its calls do what that did.
  virtual void stop_thread() noexcept = 0;
  // MPI_Finalize has been called: frees what is left, as if the program had. In the order of their birth, which is the
  // same on all ranks: threads may have created them in different orders.
  virtual void end() noexcept = 0;
  // The calling thread has waited for so long in a call of it: a sentence without its end that says for whom.
  virtual std::string stalled(double seconds) const = 0;

 protected:
  ~Member() = default;
};

// While it lives the calling thread waits in a call of `member`.
class Waiting {
 public:
  explicit Waiting(const Member& member) noexcept;
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
};

// MPICH takes no locks once it is in MPI_Finalize, and one that a thread holds by then is never given back: before
// that, where it can be. Calls do from here on what threads did.
void end_threads() noexcept;
// Before all else: types can be asked, and MPI_Finalize will come here. Not collective.
void prepare_process();
// At the first creation; once. `node`: the ranks of the communicator on this node. Collective over it.
bool has_started() noexcept;
void start(MPI_Comm node, const Settings& settings);
wait::Policy& policy() noexcept;
// As the environment has them; the first time rank 0 tells what is wrong with it.
Settings settings_of_process(int rank);
// Which ranks are missing is asked of the algorithm that waits.
void enter(Member& member);
// Once, without waiting.
void move_all_on() noexcept;
void leave(Member& member) noexcept;

}  // namespace papaya::weak
