// Sees to it that what a rank has written leaves it after the call, where only progress of papaya's sends it: a thread
// that makes progress until then and sleeps otherwise. It handles no signals.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "algorithms/transport/notified.hpp"

namespace papaya::weak {

class Leaver {
 public:
  // The wire outlives it; its segment `leaves_alone`.
  explicit Leaver(Notified& wire) noexcept : wire_(wire) {}
  ~Leaver();
  Leaver(const Leaver&) = delete;
  Leaver& operator=(const Leaver&) = delete;

  // Until the wire may_leave(). False if the system has no thread left.
  bool see_off() noexcept;

 private:
  void run() noexcept;

  Notified& wire_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_needed_ = false;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace papaya::weak
