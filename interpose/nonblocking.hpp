// MPI_Iallreduce, Ibcast and Ibarrier by papaya's algorithms: operations that are started here and moved on
// whenever the process is inside an MPI call of any kind: by what waits here, and inside MPI's own calls, which stay
// what the program has made, by background_progress.hpp. The program gets a generalized request of MPI's,
// which every completion call knows how to handle.
//
// One queue for each communicator: its operations run one after the other, in the order of the calls, which
// MPI makes the same on all ranks. What they need of MPI (to set an algorithm up, or to do natively what
// could not be set up) runs on a copy of the communicator, in the order of the queue: there it does not mix
// with the program's own collectives.
#pragma once

#include <mpi.h>

#include <exception>
#include <type_traits>

#include "interpose/attention.hpp"
#include "interpose/background_progress.hpp"
#include "interpose/call.hpp"

namespace papaya::nonblocking {

// Collective; after the settings are known, before any communicator but MPI_COMM_WORLD has a state. `intercept_waiting`
// as in Preload. What is passed outlives all operations.
void start(const Job& job, wait::Policy& policy, void (*intercept_waiting)()) noexcept;
// Ends what is outstanding, in MPI_Finalize.
void stop() noexcept;

// Gives a communicator that has just been made its queue; collective. None, on all ranks alike, where there
// can be none.
void add_queue(Communicator& state) noexcept;
// Waits for its operations and frees it: before the communicator is freed.
void remove_queue(Communicator& state) noexcept;

// MPI_Iallreduce, Ibcast or Ibarrier. True if it has been started and `request` is set; false, with the
// reason, if it is to go native, which every rank decides alike.
bool begin(Communicator& state, const Arguments& arguments, const CallFacts& facts, Outcome& outcome,
           MPI_Request* request) noexcept;

// Moves on all operations of the process, as far as they get without waiting.
void progress() noexcept;

// Waits, moving them on, until `is_done()`, which asks MPI. What its error handler throws comes out again.
void wait_inside(bool (*is_done)(void* context), void* context) noexcept;
template <class Done>
void wait_until(Done&& is_done) {
  struct Asked {
    std::remove_reference_t<Done>& is_done;
    std::exception_ptr thrown;
  } asked{is_done, nullptr};
  wait_inside(
      [](void* context) {
        auto& one = *static_cast<Asked*>(context);
        try {
          return one.is_done();
        } catch (...) {
          one.thrown = std::current_exception();
          return true;
        }
      },
      &asked);
  if (asked.thrown != nullptr) std::rethrow_exception(asked.thrown);
}

// What a wait in here waits for, to the stall reporter.
extern void* const waiting;
// After a long time in MPI_Wait or the like: which call of each communicator cannot go on, for PAPAYA_STALL_SECONDS,
// and for whom. Each call once. True if all that are under way have been reported.
bool report_stall() noexcept;

}  // namespace papaya::nonblocking
