// The processes of a communicator's ranks, as far as they are on this rank's machine: whether they still run. It is
// what tells of a rank's death where data go through shared memory, or by an MPI that does not tell.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace papaya::weak {

class PeerProcesses {
 public:
  // Collective. May throw std::bad_alloc.
  void exchange(MPI_Comm comm, std::uint64_t node);
  // False also where nothing is known: on another machine, or in another namespace of processes.
  bool has_ended(int rank) const noexcept;

 private:
  struct Process {
    std::uint64_t place = 0;  // of the number
    std::int64_t number = 0;
    std::int64_t began = 0;  // numbers are used again; 0: nothing is known
  };
  std::vector<Process> processes_;  // by rank
  std::uint64_t place_ = 0;         // this rank's
  bool are_known_ = false;          // this rank sees processes
};

}  // namespace papaya::weak
