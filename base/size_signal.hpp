// SIGXFSZ, which ends a process that writes beyond the limit for files (ulimit -f), unless it has a handler. The
// program may have set that limit since papaya made its files.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <ctime>

namespace papaya {

// While it lives, this thread's writes fail by EFBIG alone, and nothing of that is left to be delivered afterwards.
class NoSizeSignal {
 public:
  NoSizeSignal() noexcept {
    sigset_t pending;
    sigemptyset(&own_);
    sigaddset(&own_, SIGXFSZ);
    is_blocked_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0 &&
                  pthread_sigmask(SIG_BLOCK, &own_, &before_) == 0;
  }
  ~NoSizeSignal() {
    if (!is_blocked_) return;
    const int error = errno;  // of the write
    const timespec now{};
    while (sigtimedwait(&own_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  bool is_blocked_ = false;
  sigset_t own_{};
  sigset_t before_{};
};

}  // namespace papaya
