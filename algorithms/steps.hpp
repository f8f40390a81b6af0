// An algorithm over the wire as a sequence of steps: a coroutine that stops where it waits for a notification. So the
// same text serves a call that blocks and one that is started now, moved on now and then, and finished later (split
// phase, as GASPI's collectives with a timeout).
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

#include "algorithms/algorithm.hpp"
#include "algorithms/team.hpp"
#include "algorithms/transport/notified.hpp"
#include "base/clock.hpp"

namespace papaya {

class Steps {
 public:
  // What a stopped coroutine waits for; lies in its frame.
  class Awaited {
   public:
    virtual bool is_there() noexcept = 0;
    int rank = -1;  // who has to do something for it, if that is one rank

   protected:
    Awaited() = default;
    explicit Awaited(int whose) : rank(whose) {}
    ~Awaited() = default;
  };

  struct promise_type {
    Awaited* awaited = nullptr;
    Steps get_return_object() noexcept { return Steps(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };

  Steps() = default;
  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Steps& operator=(Steps&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Steps() {
    if (handle_) handle_.destroy();
  }

  bool is_done() const noexcept { return !handle_ || handle_.done(); }
  bool can_go_on() const noexcept {
    Awaited* const awaited = handle_.promise().awaited;
    return awaited == nullptr || awaited->is_there();
  }
  // Goes as far as it gets without waiting; true once it is done.
  bool advance() noexcept {
    while (!is_done() && can_go_on()) {
      handle_.promise().awaited = nullptr;
      handle_.resume();
    }
    return is_done();
  }
  int awaited_rank() const noexcept {
    return is_done() || handle_.promise().awaited == nullptr ? -1 : handle_.promise().awaited->rank;
  }

 private:
  explicit Steps(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// co_await until([&] { return ...; }): stops until that is true, which looks at notifications and may move other steps
// on.
template <class Ready>
class Until final : public Steps::Awaited {
 public:
  Until(Ready ready, int whose) : Awaited(whose), ready_(std::move(ready)) {}
  bool is_there() noexcept override { return ready_(); }
  bool await_ready() noexcept { return ready_(); }
  void await_suspend(std::coroutine_handle<Steps::promise_type> handle) noexcept { handle.promise().awaited = this; }
  void await_resume() const noexcept {}

 private:
  Ready ready_;
};
template <class Ready>
Until<Ready> until(Ready ready, int whose = -1) {
  return Until<Ready>(std::move(ready), whose);
}

// co_await heard(wire, id, value, peer): the notification, which only grows, has reached a value.
inline auto heard(Notified& wire, int id, std::uint64_t value, int peer) {
  return until([&wire, id, value] { return wire.look(id) >= value; }, peer);
}

// co_await released(wire): what has been written from may be changed.
inline auto released(Notified& wire) {
  return until([&wire] { return wire.are_sources_free(); });
}

// What an algorithm over the wire keeps for one team. One call at a time.
class OverWire : public Prepared {
 public:
  bool run(const Operands& operands, wait::Site& site) override {
    start(operands);
    while (!steps_.advance())
      team_.wire->wait(
          *team_.policy, site, [this] { return steps_.can_go_on(); }, this);
    return true;
  }
  bool is_missing(int rank) const override { return rank == steps_.awaited_rank(); }
  int awaited_rank() const noexcept { return steps_.awaited_rank(); }

  // The same in parts. Between start() and the end, buffers, reduction and this object stay as they are.
  OverWire* split_phase() noexcept final { return this; }
  void start(const Operands& operands) { steps_ = steps(operands); }
  // Does what can be done now; true once the result is in place.
  bool progress() noexcept {
    if (steps_.is_done()) return true;
    team_.wire->progress();
    return steps_.advance();
  }
  // Waits for the end, at most until the clock shows `deadline_ticks`; false if that came first.
  bool finish(std::uint64_t deadline_ticks, wait::Site& site) noexcept {
    while (!steps_.advance()) {
      bool late = false;
      team_.wire->wait(
          *team_.policy, site, [&] { return steps_.can_go_on() || (late = clock::ticks() >= deadline_ticks); }, this);
      if (late && !steps_.can_go_on()) return false;
    }
    return true;
  }

 protected:
  explicit OverWire(const Team& team) : team_(team) {}

  // A call from its beginning to when the result is in place and the operand may be changed. `operands` is a copy.
  virtual Steps steps(Operands operands) = 0;

  bool is_under_way() const noexcept { return !steps_.is_done(); }  // a call
  auto heard(int id, std::uint64_t value, int peer) const { return papaya::heard(*team_.wire, id, value, peer); }
  static void tell_deposited(const Operands& operands) {
    if (operands.deposited != nullptr) operands.deposited(operands.context);
  }

  const Team team_;

 private:
  Steps steps_;
};

}  // namespace papaya
