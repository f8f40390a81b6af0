// MPI_Iallreduce, Ibcast and Ibarrier by papaya's algorithms: operations that are started here and moved on
// whenever the process is inside an MPI call of any kind. The program gets a generalized request of MPI's,
// which every completion call knows how to handle.
//
// One queue for each communicator: its operations run one after the other, in the order of the calls, which
// MPI makes the same on all ranks. What they need of MPI (to set an algorithm up, or to do natively what
// could not be set up) runs on a copy of the communicator, in the order of the queue: there it does not mix
// with the program's own collectives.
#pragma once

#include <mpi.h>

#include <atomic>
#include <exception>
#include <type_traits>

#include "interpose/dispatch.hpp"

namespace papaya::nonblocking {

class Queue;

// Not zero while operations of papaya's are outstanding in this process; always, where any thread may start
// one while another is inside MPI. Relaxed: a thread's own operations count for it, and of other threads'
// ones the always.
extern std::atomic<int> attention;
inline bool needs_attention() noexcept {
  return __builtin_expect(attention.load(std::memory_order_relaxed) != 0, false);
}

// After the settings are known, before any communicator's state is made. `concurrent`: MPI_THREAD_MULTIPLE.
void start(bool concurrent) noexcept;
// Ends what is outstanding, in MPI_Finalize.
void stop() noexcept;

// True if the user has chosen an algorithm for some nonblocking collective. Then nothing may block inside MPI
// that another rank's progress may hang on, and what would is done in another way, on all ranks alike.
bool are_asked_for() noexcept;

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
// After a long time in MPI_Wait or the like: which call of each communicator cannot go on, for PAPAYA_STALL_SECONDS, and for whom.
// Each call once. True if all that are under way have been said.
bool say_stall() noexcept;

// Completes a request of MPI's, moving papaya's operations on meanwhile.
int complete(MPI_Request& request, MPI_Status* status);

// Returns once all ranks of the communicator are there: what follows may then block inside MPI, since
// nobody's progress hangs on it for long. Nothing where no nonblocking call is papaya's.
void meet(MPI_Comm comm);

// MPI's own blocking collective. Where nonblocking calls are papaya's on the job it is MPI's nonblocking form
// on every rank (the two do not match), and papaya's operations are moved on meanwhile.
template <class Blocking, class Nonblocking>
inline int native_collective(Blocking&& blocking, Nonblocking&& nonblocking) {
  if (!are_asked_for()) return blocking();
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = nonblocking(&request);
  return code == MPI_SUCCESS ? complete(request, MPI_STATUS_IGNORE) : code;
}

}  // namespace papaya::nonblocking
