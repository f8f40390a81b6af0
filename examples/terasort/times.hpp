// Where a rank's time goes: at every moment it is in one phase, and maybe waits for others there.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace terasort {

enum class Phase { set_up, read, sample, partition, shuffle, sort, merge, write, validate, other };
inline constexpr std::array<std::string_view, 10> phase_names{"set-up", "read",  "sample", "partition", "shuffle",
                                                              "sort",   "merge", "write",  "validate",  "other"};
inline constexpr std::size_t phase_count = phase_names.size();

class Times {
 public:
  using Numbers = std::array<double, phase_count>;
  Numbers seconds{};  // with those of calls
  Numbers calls{};    // that move records or wait, so that the rank can do nothing else; with those of waiting
  Numbers waiting{};

  // The phase until now, which ends.
  Phase enter(Phase next) noexcept {
    const double now = clock();
    seconds[static_cast<std::size_t>(phase_)] += now - since_;
    since_ = now;
    const Phase before = phase_;
    phase_ = next;
    return before;
  }
  void add_call(double lasted) noexcept { calls[static_cast<std::size_t>(phase_)] += lasted; }
  void add_waiting(double lasted) noexcept { waiting[static_cast<std::size_t>(phase_)] += lasted; }

  static double clock() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

 private:
  Phase phase_ = Phase::other;
  double since_ = clock();
};

// While it lives the rank is in that phase.
class Within {
 public:
  Within(Times& times, Phase phase) noexcept : times_(times), before_(times.enter(phase)) {}
  ~Within() { times_.enter(before_); }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  Times& times_;
  const Phase before_;
};

// While it lives the rank is in a call that moves records.
class Calling {
 public:
  explicit Calling(Times& times) noexcept : times_(times) {}
  ~Calling() { times_.add_call(seconds()); }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 protected:
  double seconds() const noexcept { return Times::clock() - since_; }
  Times& times_;

 private:
  const double since_ = Times::clock();
};

// While it lives the rank waits for others.
class Waiting : public Calling {
 public:
  using Calling::Calling;
  ~Waiting() { times_.add_waiting(seconds()); }
};

}  // namespace terasort
