#include "api/leaver.hpp"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <system_error>

namespace papaya::weak {

namespace {
constexpr std::chrono::microseconds pause{100};  // the receivers are computing: TCP's windows open when they read
}  // namespace

Leaver::~Leaver() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool Leaver::see_off() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_needed_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) return true;
  // A signal for the program must not be taken by a thread that it does not know.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  try {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "papaya-leaver");
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

void Leaver::run() noexcept {
  std::unique_lock lock(mutex_);
  while (!stops_) {
    if (!is_needed_) {
      changed_.wait(lock);
      continue;
    }
    is_needed_ = false;  // what is written during this look is announced after it
    lock.unlock();
    wire_.progress();
    const bool has_left = wire_.may_leave();
    lock.lock();
    if (has_left) continue;
    is_needed_ = true;
    if (!stops_) changed_.wait_for(lock, pause);
  }
}

}  // namespace papaya::weak
