// Polls in quick succession: MPI_Test, MPI_Iprobe and their kind take 5 to 40 ns where nothing has come, as long as
// two readings of the clock. Where a thread makes them that fast, one in seven is timed, and the others are counted;
// their time is taken to be that of the last ones of the same function that were timed, never more than what went by.
// One thread's; it reads no clock itself.
#pragma once

#include <algorithm>
#include <array>
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
  void skip(std::size_t poll) noexcept {
    ++untimed_;
    ++polls_[poll].untimed;
  }

  // The clock is read, `elapsed` ticks after the last reading; `quick_ticks` are the most that a poll and what the
  // program does between two of them may take. Calls add(poll, function, ticks) for those in between that
  // were not timed. Returns the ticks inside them, at most `elapsed`.
  template <class Add>
  std::uint64_t settle(std::uint64_t elapsed, std::uint64_t quick_ticks, Add&& add) noexcept {
    note(elapsed, quick_ticks * (untimed_ + 1));
    if (untimed_ == 0) return 0;
    std::uint64_t left = elapsed;
    for (std::size_t i = 0; i < most; ++i) {
      if (polls_[i].untimed == 0) continue;
      const std::uint64_t ticks = std::min(left, polls_[i].expected());
      add(i, polls_[i].function, ticks);
      left -= ticks;
      polls_[i].untimed = 0;
    }
    untimed_ = 0;
    return elapsed - left;
  }
  // The last poll that was not timed has found something, and the clock is read at its end, `elapsed` ticks after the
  // last reading. Returns its own ticks; settle() is to be called with the rest. Where all was slower than it had been,
  // the poll is taken to be why: what has come may have been copied.
  std::uint64_t found(std::size_t poll, std::uint64_t elapsed, std::uint64_t quick_ticks) noexcept {
    const std::uint64_t most_ticks = quick_ticks * (untimed_ + 1);
    --untimed_;
    --polls_[poll].untimed;
    if (elapsed < most_ticks) return std::min(elapsed, polls_[poll].ticks);
    quick_ = 0;
    std::uint64_t others = 0;
    for (const Poll& other : polls_) others += other.expected();
    return elapsed - std::min(elapsed, others);
  }
  // A poll was timed, of the function that the recorder has under this number.
  void timed(std::size_t poll, std::size_t function, std::uint64_t inside, std::uint64_t quick_ticks) noexcept {
    note(inside, quick_ticks);
    if (inside >= quick_ticks) return;  // one that is not timed will not be like it
    Poll& own = polls_[poll];
    own.ticks = own.is_known ? (3 * own.ticks + inside) / 4 : inside;
    own.function = function;
    own.is_known = true;
  }

 private:
  struct Poll {
    std::uint64_t expected() const noexcept { return untimed * ticks; }

    std::uint64_t ticks = 0;  // of one
    std::size_t function = 0;
    std::uint32_t untimed = 0;
    bool is_known = false;
  };

  void note(std::uint64_t ticks, std::uint64_t most_ticks) noexcept {
    quick_ = ticks < most_ticks ? std::min(quick_ + 1, sure_from) : 0;
  }

  std::uint32_t quick_ = 0;  // readings in a row, see sure_from
  std::uint32_t untimed_ = 0;
  std::array<Poll, most> polls_{};
};

}  // namespace papaya
