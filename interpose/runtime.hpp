// What papaya keeps for the process between MPI_Init and MPI_Finalize. Who needs a part of it takes that; asked for as
// a whole it is by the path of a call alone, which begins in a function of MPI's and has nothing else to ask.
#pragma once

#include <mpi.h>

#include <atomic>

#include "algorithms/waiting/wait.hpp"
#include "interpose/between_nodes.hpp"
#include "interpose/flavour.hpp"
#include "interpose/job.hpp"
#include "interpose/node_memory.hpp"
#include "interpose/plan.hpp"
#include "interpose/records.hpp"

namespace papaya {

struct Runtime {
  std::atomic<bool> active{false};  // between the end of MPI_Init and the beginning of MPI_Finalize; never in a child
  const Preload* preload = nullptr;
  Job job;
  Records records;
  NodeMemory memory;
  BetweenNodes between_nodes;
  wait::Policy policy;
};

// Never destroyed: a thread of the application may still be in a call when the process exits.
extern Runtime& the_runtime;
inline Runtime& runtime() noexcept {
  return the_runtime;
}

// Of which plans are made.
inline Resources resources(Runtime& process) noexcept {
  return {process.memory, process.between_nodes, process.job.shm_limit};
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

 private:
  static thread_local constinit bool inside_;
  const bool outermost_;
};

}  // namespace papaya
