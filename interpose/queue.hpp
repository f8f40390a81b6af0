// The nonblocking operations of one communicator: they run one after the other, in the order of the calls, which MPI
// makes the same on all ranks. What they need of MPI (to set a plan up, or to do natively what could not be set up)
// runs on papaya's copy of the communicator, in that order.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/mpi_agreement.hpp"
#include "interpose/operation.hpp"
#include "interpose/plan.hpp"

namespace papaya::nonblocking {

// Shared by the communicator and whoever is moving it on.
class Queue {
 public:
  // Of `state`, whose plans are for `blocking`, and which it may outlive. It runs on `copy` of its communicator, which
  // it frees; `world` is a communicator of papaya's that spans the job.
  Queue(const Communicator& state, const Members& blocking, MPI_Comm copy, MPI_Comm world, double stall_seconds);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // The plan for calls of that rule and up to that many bytes.
  Plan& plan_for(const tuning::Rule& rule, std::size_t bytes);
  // An operation, from when it is the queue's first.
  Steps run(Operation& operation);
  // Appends one and moves the queue on. Returns why it will run natively, as far as that is known.
  Reason add(std::unique_ptr<Operation> operation, const std::shared_ptr<Queue>& self) noexcept;
  // Moves the first operations on, unless another thread is at it.
  void advance() noexcept;
  bool report_stall() noexcept;
  bool is_empty() noexcept;
  // Where to sleep: rung when the first operation is notified, if that can be.
  wait::Doorbell* bell() noexcept;

 private:
  void run_what_can_run(std::vector<MPI_Request>& ended) noexcept;

  const MPI_Comm copy_;
  const std::vector<topology::Location> locations_;
  const std::vector<int> world_ranks_;
  std::vector<std::int64_t> offsets_;
  const Members members_;
  MpiAgreement agreement_;
  const double stall_seconds_;

  std::mutex mutex_;  // guards what follows; no user's code runs under it
  Plans plans_;
  std::deque<std::unique_ptr<Operation>> operations_;  // the first one is under way
  std::uint64_t first_since_ns_ = 0;                   // when it became the first
  bool active_ = false;                                // in the list of active queues
};

// Those of this process that have operations.
std::shared_ptr<Queue> active_queue(std::size_t index) noexcept;
std::shared_ptr<Queue> only_active_queue() noexcept;
bool are_outstanding() noexcept;  // operations
// Moves all operations of the process on, as far as they get without waiting.
void progress_queues() noexcept;

}  // namespace papaya::nonblocking
