// The sliding window of a sender and its receiver: parts go to the slots of a ring at the receiver, and the sender is
// ahead of it by no more than there are slots. That takes credit: the receiver answers how many parts it has taken, not
// each time but `answered_at_once` parts at a time.
//
// Parts are numbered from the first call on, by both alike, beginning after `before`. Numbers only grow. Both ends know
// which answers there are, for they follow from the numbers: so a sender that ends knows the last one it must still
// wait for. It is pure arithmetic; how parts and answers travel is the caller's (Notified, in all of them).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace papaya {

struct SlidingWindow {
  // An answer is due when so many parts have been taken since the last one, at most as many as there are slots.
  // `only_when_said`: only where both ends say so.
  static constexpr std::uint64_t only_when_said = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t slots;
  std::uint64_t answered_at_once;

  class Sender;
  class Receiver;
};

class SlidingWindow::Sender {
 public:
  Sender(const SlidingWindow& window, std::uint64_t before) noexcept
      : window_(window), sent_(before), taken_(before), last_answer_(before) {}

  // The number of the last part.
  std::uint64_t sent() const noexcept { return sent_; }
  // Whether the next part has a slot. `answered()` looks at the receiver's last answer, and only where the one before
  // is not enough.
  template <class Answered>
  bool has_slot(Answered&& answered) noexcept {
    if (is_covered()) return true;
    knows_taken(answered());
    return is_covered();
  }
  // After has_slot(): the next part's number.
  std::uint64_t send() noexcept {
    skip_to(sent_ + 1);
    return sent_;
  }
  // Numbers up to this one have no parts, and count as taken.
  void skip_to(std::uint64_t number) noexcept {
    sent_ = number;
    if (sent_ - last_answer_ >= window_.answered_at_once) last_answer_ = sent_;
  }
  // The receiver answers once it has got as far as this end, though it is not its turn.
  void expect_answer() noexcept { last_answer_ = sent_; }
  // Known without an answer: it has taken all up to this one.
  void knows_taken(std::uint64_t number) noexcept { taken_ = std::max(taken_, number); }
  // Another receiver takes the place of the one before, and has not answered yet.
  void forget_taken(std::uint64_t before) noexcept { taken_ = before; }
  // The number that the receiver's last answer has, or will have; `before` if there is none.
  std::uint64_t last_answer() const noexcept { return last_answer_; }

 private:
  bool is_covered() const noexcept { return sent_ < taken_ + window_.slots; }

  SlidingWindow window_;
  std::uint64_t sent_;
  std::uint64_t taken_;  // by the receiver, as far as is known
  std::uint64_t last_answer_;
};

class SlidingWindow::Receiver {
 public:
  Receiver(const SlidingWindow& window, std::uint64_t before) noexcept
      : window_(window), taken_(before), answered_(before) {}

  // The number of the last part that was taken; the next one's is one more.
  std::uint64_t taken() const noexcept { return taken_; }
  // The next part's slot may be written again: true if the sender is to be answered taken() now.
  bool take() noexcept { return skip_to(taken_ + 1); }
  bool skip_to(std::uint64_t number) noexcept {
    taken_ = number;
    if (taken_ - answered_ < window_.answered_at_once) return false;
    answered_ = taken_;
    return true;
  }
  // The sender is answered though it is not its turn.
  void answer() noexcept { answered_ = taken_; }

 private:
  SlidingWindow window_;
  std::uint64_t taken_;
  std::uint64_t answered_;
};

}  // namespace papaya
