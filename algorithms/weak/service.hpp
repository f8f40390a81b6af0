// A thread of papaya's that serves other ranks while this one computes: whenever notifications for it have come, and a
// few times a second besides, it takes a step. In between it sleeps, on the wire's second bell where that has one; it
// never spins, since ranks often outnumber cores. It calls MPI only where the wire does, which says whether that may be
// (Notified::serves_two_threads()). It handles no signals.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>

#include "algorithms/transport/notified.hpp"

namespace papaya {

class Service {
 public:
  // Does what can be done now and waits for nothing; true if it has done something: there may be more.
  using Step = std::function<bool()>;

  // `name`, of up to 15 characters, is the thread's, for people. The wire outlives it and serves_two_threads().
  Service(Notified& wire, const char* name, Step step);
  // Returns once the thread has ended, after its present step.
  ~Service() { stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // False if the system has no thread left.
  bool start() noexcept;
  // The same as the destructor; what the steps have done is then visible to the caller.
  void stop() noexcept;
  // There may be something to do that no other rank's notification tells of.
  void wake() noexcept;

 private:
  static void* run(void* self) noexcept;
  void serve() noexcept;

  Notified& wire_;
  const char* const name_;
  const Step step_;
  wait::Doorbell own_bell_{};  // where the wire has none; rung by wake() alone
  wait::Doorbell& bell_;
  pthread_t thread_{};
  bool is_running_ = false;
  std::atomic<bool> stops_{false};
};

}  // namespace papaya
