#include "algorithms/weak/service.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <utility>

#include "algorithms/waiting/futex.hpp"

namespace papaya {

namespace {

// Where a bell rings the timeout is there for what the step does by time alone.
constexpr std::uint64_t longest_sleep_ns = 10'000'000;
// Elsewhere something comes soon after something has come.
constexpr std::uint64_t first_pause_ns = 50'000;
constexpr std::uint64_t longest_pause_ns = 1'000'000;

}  // namespace

Service::Service(Notified& wire, const char* name, Step step)
    : wire_(wire),
      name_(name),
      step_(std::move(step)),
      bell_(wire.service_bell() != nullptr ? *wire.service_bell() : own_bell_) {}

bool Service::start() noexcept {
  // A signal for the program must not be taken by a thread that it does not know.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  is_running_ = pthread_create(&thread_, nullptr, run, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_running_;
}

void Service::stop() noexcept {
  if (!is_running_) return;
  stops_.store(true, std::memory_order_relaxed);  // seen by whoever sees the bell move
  wake();
  pthread_join(thread_, nullptr);
  is_running_ = false;
}

// The word moves in any case: who is about to sleep does not.
void Service::wake() noexcept {
  bell_.completed.fetch_add(1, std::memory_order_release);  // release: partner of the acquire in serve()
  wait::Policy::publish_before_look(bell_);
  if (bell_.sleepers.load(std::memory_order_relaxed) != 0) futex_wake_all(bell_.completed);
}

void* Service::run(void* self) noexcept {
  auto& service = *static_cast<Service*>(self);
  pthread_setname_np(pthread_self(), service.name_);
  service.serve();
  return nullptr;
}

void Service::serve() noexcept {
  const bool is_rung = &bell_ != &own_bell_;
  std::uint64_t pause_ns = is_rung ? longest_sleep_ns : first_pause_ns;
  const auto step = [this] {
    wire_.progress();
    return step_();
  };
  while (!stops_.load(std::memory_order_relaxed)) {
    if (step()) {
      if (!is_rung) pause_ns = first_pause_ns;
      continue;
    }
    // As whoever waits does: it announces itself, looks once more, then sleeps until the word moves.
    bell_.sleepers.fetch_add(1, std::memory_order_relaxed);
    wait::Policy::publish_before_look(bell_);
    const std::uint32_t heard = bell_.completed.load(std::memory_order_acquire);  // acquire: partner in wake()
    if (!stops_.load(std::memory_order_relaxed) && !step()) {
      futex_wait(bell_.completed, heard, pause_ns);
      if (!is_rung) pause_ns = std::min(2 * pause_ns, longest_pause_ns);
    }
    bell_.sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace papaya
