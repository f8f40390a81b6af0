// How many others each party notifies in a round of n-way dissemination: what the user says, or what is
// fastest here, measured (End et al. 2015: n = 1..7, 15 runs each).
//
// Each n has notifications of its own, since one notification has one writer. In a call all that is written
// to a party has come before it leaves, so calls of different n may follow each other.
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

class Ways {
 public:
  static constexpr int measured = 0;  // as a parameter
  static constexpr int most = 7;
  static constexpr int runs = 15;
  static constexpr int blocks = 3;

  // `ways`: 1..most, or measured.
  Ways(int parties, int ways) : parties_(parties) {
    first_ = ways == measured ? 1 : ways;
    last_ = ways == measured ? std::clamp(parties - 1, 1, most) : ways;
    chosen_ = std::min(2, last_) > first_ ? 2 : first_;
    is_settled_ = first_ == last_;
  }

  int first() const noexcept { return first_; }
  int last() const noexcept { return last_; }
  // What calls take that cannot measure, and all others after settle().
  int chosen() const noexcept { return chosen_; }
  bool is_settled() const noexcept { return is_settled_; }

  // Among `parties`, by the time that each n of first..last took, in any unit: of those within a tenth of the
  // shortest the one with the fewest rounds, and of these the one with the fewest messages. A round waits for
  // the network and for whoever is late. And where all send to all, what comes back carries TCP's
  // acknowledgements: streams of one direction look as cheap while they are measured by turns with others,
  // and later cost a packet for each message (docs/measurements.md, "Between nodes").
  static int fastest(int parties, int first, int last, std::span<const std::uint64_t> times) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int n = first; n <= last; ++n) least = std::min(least, times[static_cast<std::size_t>(n)]);
    int best = 0;
    for (int n = first; n <= last; ++n) {
      if (times[static_cast<std::size_t>(n)] - least > least / 10) continue;
      if (best == 0 || patterns::dissemination_rounds(parties, n) < patterns::dissemination_rounds(parties, best))
        best = n;
    }
    return best;
  }

  int notifications() const noexcept { return first_id(last_ + 1) + 1; }
  int id(int ways, int round, int i) const noexcept { return first_id(ways) + (round - 1) * ways + i - 1; }

  // For who is no party but takes part in the runs: the same ones.
  template <class Run>
  void follow(Run&& run) {
    each_block([&](int ways) {
      for (int i = 0; i < runs / blocks; ++i) run(ways);
    });
    is_settled_ = true;
  }

  // Collective over the parties, `peers` by number: `run(n)` is a call by n ways, `wait(id)` returns once the
  // notification is not zero. Party 0 times the runs and tells the others.
  template <class Run, class Wait>
  void settle(Notified& wire, const std::vector<int>& peers, int me, Run&& run, Wait&& wait) {
    // Of runs in a row the times of single ones say little: who is late in one is early in the next. So
    // blocks are timed, by turns, and the shortest block of each n counts.
    std::array<std::uint64_t, most + 1> shortest;
    shortest.fill(~std::uint64_t{0});
    std::uint64_t begin = clock::ticks();
    each_block([&](int ways) {
      for (int i = 0; i < runs / blocks; ++i) run(ways);
      const std::uint64_t end = clock::ticks();
      std::uint64_t& least = shortest[static_cast<std::size_t>(ways)];
      least = std::min(least, end - begin);
      begin = end;
    });
    const int told = first_id(last_ + 1);
    if (me == 0) {
      chosen_ = fastest(parties_, first_, last_, shortest);
      say(shortest);
      for (std::size_t party = 1; party < peers.size(); ++party)
        wire.notify(peers[party], told, static_cast<std::uint64_t>(chosen_));
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
      for (int ways = first_; ways <= last_; ++ways) block(ways);
  }
  void say(std::span<const std::uint64_t> shortest) const {
    if (log::level() < log::Level::debug) return;
    std::string text =
        fmt::format("dissemination among {} ranks sends to n = {} in a round; time with n of", parties_, chosen_);
    for (int ways = first_; ways <= last_; ++ways)
      text += fmt::format(" {}: {:.1f}", ways,
                          static_cast<double>(shortest[static_cast<std::size_t>(ways)]) /
                              static_cast<double>(shortest[static_cast<std::size_t>(chosen_)]));
    log::debug(text + " (1.0 is that of the chosen one).");
  }
  int first_id(int ways) const noexcept {
    int id = 0;
    for (int n = first_; n < ways; ++n) id += patterns::dissemination_rounds(parties_, n) * n;
    return id;
  }

  int parties_;
  int first_;
  int last_;
  int chosen_;
  bool is_settled_;
};

}  // namespace papaya
