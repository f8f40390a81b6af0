// All processes of the job, by which ranks are numbered: those of MPI_COMM_WORLD; in a program that begins
// with sessions and without MPI_Init, those of the process set mpi://WORLD, which has them in the same order.
#pragma once

#include <mpi.h>

#include <vector>

namespace papaya::world {

// While it lives, `comm`, just made by a session, is among comms(). Threads may make several at once, and others of
// them first on different ranks; one of them begins the job on each rank, and the others wait.
class Offer {
 public:
  explicit Offer(MPI_Comm comm) noexcept;
  ~Offer();
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

 private:
  int place_ = 0;
};

// A communicator of all of them. Nobody calls it before the job is known.
MPI_Comm comm() noexcept;
bool is_of_sessions() noexcept;
// comm(), and what else another rank may take for it by now.
std::vector<MPI_Comm> comms();

// Papaya's own communicator of them, the same on all ranks. Collective. With sessions comm() is this one from then on:
// that of the program may be freed before the job ends.
bool copy(MPI_Comm* copy) noexcept;

// A session's communicator has been made and MPI_Init has not been called: true, and comm() is `comm`, if it has all
// processes in their order. The processes keep a session of papaya's own then, so that the job does not depend on how
// long one of the program's lasts.
bool take(MPI_Comm comm) noexcept;
// Ends papaya's session, once what was made by it is freed.
void leave() noexcept;

}  // namespace papaya::world
