// The radix of an n-way dissemination, how many others each participant notifies in a round: what the user says, or
// what is fastest here, measured (End et al. 2015: n = 1..7, 15 runs each).
//
// Each n has notifications of its own, since one notification has one writer. In a call all that is written
// to a participant has come before it leaves, so calls of different n may follow each other.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms/patterns/dissemination.hpp"
#include "algorithms/transport/notified.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"

namespace papaya {

class RadixChoice {
 public:
  static constexpr int measured = 0;  // as a parameter
  static constexpr int most = patterns::largest_radix;
  static constexpr int runs = 15;
  static constexpr int blocks = 3;

  // `radix`: 1..most, or measured.
  RadixChoice(int participants, int radix) : participants_(participants) {
    first_ = radix == measured ? 1 : radix;
    last_ = radix == measured ? std::clamp(participants - 1, 1, most) : radix;
    chosen_ = std::min(2, last_) > first_ ? 2 : first_;
    is_settled_ = first_ == last_;
  }

  int first() const noexcept { return first_; }
  int last() const noexcept { return last_; }
  // What calls take that cannot measure, and all others after settle().
  int chosen() const noexcept { return chosen_; }
  bool is_settled() const noexcept { return is_settled_; }

  // Among `participants`, by the time that each n of first..last took, in any unit: of those within a tenth of the
  // shortest the one with the fewest rounds, and of these the one with the fewest messages. A round waits for
  // the network and for whoever is late. And where all send to all, what comes back carries TCP's
  // acknowledgements: streams of one direction look as cheap while they are measured by turns with others,
  // and later cost a packet for each message (docs/measurements.md, "Between nodes").
  static int fastest(int participants, int first, int last, std::span<const std::uint64_t> times) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int n = first; n <= last; ++n) least = std::min(least, times[static_cast<std::size_t>(n)]);
    int best = 0;
    for (int n = first; n <= last; ++n) {
      if (times[static_cast<std::size_t>(n)] - least > least / 10) continue;
      if (best == 0 ||
          patterns::dissemination_rounds(participants, n) < patterns::dissemination_rounds(participants, best))
        best = n;
    }
    return best;
  }

  int notifications() const noexcept { return first_id(last_ + 1) + 1; }
  int id(int radix, int round, int i) const noexcept { return first_id(radix) + (round - 1) * radix + i - 1; }

  // For who is no participant but takes part in the runs: the same ones.
  template <class Run>
  void follow(Run&& run) {
    each_block([&](int radix) {
      for (int i = 0; i < runs / blocks; ++i) run(radix);
    });
    is_settled_ = true;
  }

  // Collective over the participants, `peers` by number: `run(n)` is a call with radix n, `wait(id)` returns once the
  // notification is not zero. Participant 0 times the runs and tells the others.
  template <class Run, class Wait>
  void settle(Notified& wire, const std::vector<int>& peers, int me, Run&& run, Wait&& wait) {
    // Of runs in a row the times of single ones say little: who is late in one is early in the next. So
    // blocks are timed, by turns, and the shortest block of each n counts.
    std::array<std::uint64_t, most + 1> shortest;
    shortest.fill(~std::uint64_t{0});
    std::uint64_t begin = clock::ticks();
    each_block([&](int radix) {
      for (int i = 0; i < runs / blocks; ++i) run(radix);
      const std::uint64_t end = clock::ticks();
      std::uint64_t& least = shortest[static_cast<std::size_t>(radix)];
      least = std::min(least, end - begin);
      begin = end;
    });
    const int told = first_id(last_ + 1);
    if (me == 0) {
      chosen_ = fastest(participants_, first_, last_, shortest);
      say(shortest);
      for (std::size_t participant = 1; participant < peers.size(); ++participant)
        wire.notify(peers[participant], told, static_cast<std::uint64_t>(chosen_));
    } else {
      wait(told);
      chosen_ = static_cast<int>(wire.look(told));
    }
    is_settled_ = true;
  }

 private:
  template <class Block>
  void each_block(Block&& block) const {
    for (int turn = 0; turn < blocks; ++turn)
      for (int radix = first_; radix <= last_; ++radix) block(radix);
  }
  void say(std::span<const std::uint64_t> shortest) const {
    if (log::level() < log::Level::debug) return;
    std::string text =
        fmt::format("dissemination among {} ranks sends to n = {} in a round; time with n of", participants_, chosen_);
    for (int radix = first_; radix <= last_; ++radix)
      text += fmt::format(" {}: {:.1f}", radix,
                          static_cast<double>(shortest[static_cast<std::size_t>(radix)]) /
                              static_cast<double>(shortest[static_cast<std::size_t>(chosen_)]));
    log::debug(text + " (1.0 is that of the chosen one).");
  }
  int first_id(int radix) const noexcept {
    int id = 0;
    for (int n = first_; n < radix; ++n) id += patterns::dissemination_rounds(participants_, n) * n;
    return id;
  }

  int participants_;
  int first_;
  int last_;
  int chosen_;
  bool is_settled_;
};

}  // namespace papaya
