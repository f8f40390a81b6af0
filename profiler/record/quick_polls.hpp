// Polls in quick succession: MPI_Test, MPI_Iprobe and their kind take 5 to 40 ns where nothing has come, as long as
// two readings of the clock. Where a thread makes them that fast, one in seven is timed, and the others are counted;
// their time is taken to be that of the last ones of the same function that were timed, never more than what went by.
// What the calls come to is kept here until take(). One thread's; it reads no clock itself.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace papaya {

class QuickPolls {
 public:
  static constexpr std::size_t most = 8;          // functions that poll
  static constexpr std::uint32_t sure_from = 16;  // readings in a row that found quick succession
  static constexpr std::uint32_t between = 6;  // polls that are not timed between two that are: with two functions in
                                               // turn both are timed

  // Whether the next poll need not be timed.
  bool may_skip(std::size_t poll) const noexcept {
    return quick_ >= sure_from && untimed_ < between && polls_[poll].is_known;
  }
  void skip(std::size_t poll, std::size_t function) noexcept {
    ++untimed_;
    ++polls_[poll].untimed;
    add(poll, function, 0);
  }

  struct Settled {
    std::uint64_t inside = 0;   // polls that were not timed
    std::uint64_t of_poll = 0;  // inside those of the function asked for
  };
  // The clock is read, `elapsed` ticks after the last reading; `quick_ticks` are the most that a poll and what the
  // program does between two of them may take. What is inside is at most `elapsed`.
  Settled settle(std::uint64_t elapsed, std::uint64_t quick_ticks, std::size_t poll = most) noexcept {
    note(elapsed, quick_ticks * (untimed_ + 1));
    if (untimed_ == 0) return {};
    Settled settled;
    for (std::size_t i = 0; i < most; ++i) {
      Poll& own = polls_[i];
      if (own.untimed == 0) continue;
      const std::uint64_t ticks = std::min(elapsed - settled.inside, own.expected());
      own.inside += ticks;
      polled_ |= 1u << i;
      settled.inside += ticks;
      if (i == poll) settled.of_poll = ticks;
      own.untimed = 0;
    }
    untimed_ = 0;
    return settled;
  }
  // The last poll that was not timed has found something, and the clock is read at its end, `elapsed` ticks after the
  // last reading. Returns its own ticks; settle() is to be called with the rest. Where all was slower than it had been,
  // the poll is taken to be why: what has come may have been copied.
  std::uint64_t found(std::size_t poll, std::uint64_t elapsed, std::uint64_t quick_ticks) noexcept {
    const std::uint64_t most_ticks = quick_ticks * (untimed_ + 1);
    Poll& own = polls_[poll];
    --untimed_;
    --own.untimed;
    std::uint64_t inside = std::min(elapsed, own.ticks);
    if (elapsed >= most_ticks) {
      quick_ = 0;
      std::uint64_t others = 0;
      for (const Poll& other : polls_) others += other.expected();
      inside = elapsed - std::min(elapsed, others);
    }
    own.inside += inside;
    polled_ |= 1u << poll;
    return inside;
  }
  // A poll was timed, of the function that the recorder has under this number.
  void timed(std::size_t poll, std::size_t function, std::uint64_t inside, std::uint64_t quick_ticks) noexcept {
    note(inside, quick_ticks);
    Poll& own = polls_[poll];
    add(poll, function, inside);
    if (inside >= quick_ticks) return;  // one that is not timed will not be like it
    own.ticks = own.is_known ? (3 * own.ticks + inside) / 4 : inside;
    own.is_known = true;
  }
  // Calls each(function, ticks, calls) for what has been polled since the last time, as far as it is settled.
  template <class Each>
  void take(Each&& each) noexcept {
    for (; polled_ != 0; polled_ &= polled_ - 1) {
      Poll& one = polls_[static_cast<std::size_t>(std::countr_zero(polled_))];
      each(one.function, one.inside, one.calls);
      one.calls = 0;
      one.inside = 0;
    }
  }

 private:
  struct Poll {
    std::uint64_t expected() const noexcept { return untimed * ticks; }

    std::uint64_t ticks = 0;   // of one
    std::uint64_t inside = 0;  // all, since take()
    std::uint32_t calls = 0;   // since then
    std::uint32_t function = 0;
    std::uint32_t untimed = 0;
    bool is_known = false;
  };

  void add(std::size_t poll, std::size_t function, std::uint64_t inside) noexcept {
    Poll& own = polls_[poll];
    own.function = static_cast<std::uint32_t>(function);
    own.inside += inside;
    ++own.calls;
    polled_ |= 1u << poll;
  }

  void note(std::uint64_t ticks, std::uint64_t most_ticks) noexcept {
    quick_ = ticks < most_ticks ? std::min(quick_ + 1, sure_from) : 0;
  }

  std::uint32_t quick_ = 0;  // readings in a row, see sure_from
  std::uint32_t untimed_ = 0;
  std::uint32_t polled_ = 0;  // a bit for each function that take() has something to tell of
  std::array<Poll, most> polls_{};
};

}  // namespace papaya
