// What papaya keeps for the process between MPI_Init and MPI_Finalize. Only what is entered from outside asks for it,
// having nothing else to ask: functions of MPI's, those of include/papaya.h, handlers of fork and of waiting. They pass
// the parts on to who needs them.
#pragma once

#include <mpi.h>

#include <atomic>

#include "algorithms/waiting/wait.hpp"
#include "interpose/between_nodes.hpp"
#include "interpose/flavour.hpp"
#include "interpose/job.hpp"
#include "interpose/mpi_channels.hpp"
#include "interpose/node_memory.hpp"
#include "interpose/records.hpp"
#include "interpose/resources.hpp"

namespace papaya {

struct Runtime {
  std::atomic<bool> active{false};  // between the end of MPI_Init and the beginning of MPI_Finalize; never in a child
  const Preload* preload = nullptr;
  Job job;
  Records records;
  NodeMemory memory;
  BetweenNodes between_nodes;
  MpiChannels channels;
  wait::Policy policy;
};

// Never destroyed: a thread of the application may still be in a call when the process exits.
extern Runtime& the_runtime;
inline Runtime& runtime() noexcept {
  return the_runtime;
}

// Of which plans are made, now: what is between nodes may come later.
inline Resources resources(Runtime& process) noexcept {
  return {.regions = process.memory.window,
          .deposits = process.memory.deposits,
          .transport = process.between_nodes.transport(),
          .has_too_little = process.between_nodes.has_too_little(),
          .channels = process.channels,
          .limit = process.job.shm_limit,
          .why_no_memory = process.memory.is_wanted ? Reason::no_shared_memory : Reason::never_wanted};
}

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
  static bool is_inside() noexcept { return inside_; }

 private:
  static thread_local constinit bool inside_;
  const bool outermost_;
};

}  // namespace papaya
