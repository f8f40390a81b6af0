// Whether papaya has nonblocking operations to move on: what every function of MPI's that waits asks first.
#pragma once

#include <atomic>

#include "interpose/background_progress.hpp"

namespace papaya::nonblocking {

// Not zero while operations of papaya's are outstanding in this process; always, where any thread may start
// one while another is inside MPI. Relaxed: a thread's own operations count for it, and of other threads'
// ones the always.
extern std::atomic<int> attention;
inline bool needs_attention() noexcept {
  return __builtin_expect(attention.load(std::memory_order_relaxed) != 0, false);
}

// True if the user has chosen an algorithm for some nonblocking collective, and it can be moved on inside MPI. Written
// in MPI_Init.
extern bool asked_for;
inline bool are_asked_for() noexcept {
  return asked_for;
}

// Around a call that may block inside MPI, in the thread that makes it: papaya's operations are moved on meanwhile
// (background_progress.hpp).
class InsideMpi {
 public:
  InsideMpi() noexcept : counts_(are_asked_for()) {
    if (counts_) background_progress::enter();
  }
  ~InsideMpi() {
    if (counts_) background_progress::leave();
  }
  InsideMpi(const InsideMpi&) = delete;
  InsideMpi& operator=(const InsideMpi&) = delete;

 private:
  const bool counts_;
};

}  // namespace papaya::nonblocking
