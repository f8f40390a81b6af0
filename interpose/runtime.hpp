// What papaya keeps for the process between MPI_Init and MPI_Finalize, and the life cycle itself.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/transport/deposit_arena.hpp"
#include "algorithms/transport/mpi/mpi_messages.hpp"
#include "algorithms/transport/mpi/node_window.hpp"
#include "algorithms/transport/ucx/ucx_window.hpp"
#include "algorithms/waiting/wait.hpp"
#include "base/settings.hpp"
#include "base/topology.hpp"
#include "interpose/flavour.hpp"
#include "interpose/watch.hpp"
#include "profiler/record/call_sites.hpp"
#include "profiler/record/node_arrivals.hpp"
#include "profiler/record/node_boards.hpp"
#include "profiler/record/recorder.hpp"
#include "tuning/selection.hpp"

namespace papaya {

// Where ranks outnumber cores Open MPI yields while it waits; MPICH's UCX device does not, whatever it is told.
#if defined(MPICH)
inline constexpr bool native_yields = false;
#else
inline constexpr bool native_yields = true;
#endif

struct Runtime {
  std::atomic<bool> active{false};  // between the end of MPI_Init and the beginning of MPI_Finalize; never in a child
  const Preload* preload = nullptr;

  Settings settings;
  tuning::Selection selection;
  Recorder recorder;
  NodeBoards node_boards;
  NodeArrivals node_arrivals;
  std::atomic<bool> recording{true};  // relaxed: MPI_Pcontrol says from when on
  NodeWindow window;
  DepositArena deposits;  // in the window
  // One of them is made if the selection, or PAPAYA_TRANSPORT, asks for communication between nodes.
  MpiMessages mpi_messages;
  UcxWindow ucx_window;
  wait::Policy policy;

  bool oversubscribed = false;  // this node has more ranks of the job than cores
  std::vector<topology::Place>
      places;                // by rank of MPI_COMM_WORLD, this node's are set; empty if they are all the same
  bool single_copy = false;  // every rank of the node may read its neighbour's memory
  bool arrival_order = false;
  std::uint64_t verify_every = 0;
  CallSites call_sites;
  Watch watch;                            // of the ranks of this node, on its first
  bool too_little_between_nodes = false;  // PAPAYA_SHM_LIMIT allows no memory that ranks of other nodes write to

  int rank = 0;
  int ranks = 1;
  int node = 0;
  int nodes = 1;
  MPI_Comm node_comm = MPI_COMM_NULL;   // this job's ranks on this node
  MPI_Comm world_comm = MPI_COMM_NULL;  // papaya's own copy of MPI_COMM_WORLD; quiet between Init and Finalize
  MPI_Comm far_comm = MPI_COMM_NULL;  // another, for messages of TeamMessages; where there is a transport between nodes
  MPI_Comm leader_comm = MPI_COMM_NULL;    // one rank per node, on those ranks
  MPI_Comm follower_comm = MPI_COMM_NULL;  // a placeholder, on the others
  std::string folder;                      // of the output, empty without

  // Oddities: counted as they happen, said once at the end.
  std::atomic<std::uint64_t> verified{0};
  std::atomic<std::uint64_t> verify_mismatches{0};
  std::atomic<std::uint64_t> failed_inner_calls{0};
};

// Never destroyed: a thread of the application may still be in a call when the process exits.
extern Runtime& the_runtime;
inline Runtime& runtime() noexcept {
  return the_runtime;
}

// Before MPI_Init, after a successful one, before MPI_Finalize, before MPI_Abort. They return when done; they do not
// fail.
void announce() noexcept;
void start() noexcept;
void stop() noexcept;
void note_abort(int code) noexcept;

// True while this thread is inside papaya's own code: what MPI calls back from there (user operations, attribute
// functions) is not recorded. The constructor's result must be looked at, hence a type and not a flag.
class Entry {
 public:
  Entry() noexcept : outermost_(!inside_) { inside_ = true; }
  ~Entry() {
    if (outermost_) inside_ = false;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  [[nodiscard]] bool is_outermost() const noexcept { return outermost_; }

 private:
  static thread_local constinit bool inside_;
  const bool outermost_;
};

}  // namespace papaya
