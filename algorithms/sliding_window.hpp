// The sliding window of a sender and its receiver: chunks go to the slots of a ring at the receiver, and the sender is
// ahead of it by no more than there are slots. That takes credit: the receiver says up to which chunk it has released
// the slots, not each time but `credits_at_once` chunks at a time.
//
// Chunks are numbered from the first call on, by both alike, beginning after `before`. Numbers only grow. Both ends
// know which credits are returned, for they follow from the numbers: so a sender that ends knows the last one it must
// still wait for. It is pure arithmetic; how chunks and credits travel is the caller's (Notified, in all of them).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace papaya {

struct SlidingWindow {
  // Credit is returned once so many chunks have been released since the last time, at most as many as there are slots.
  // `explicit_only`: only where both ends call for it (expect_credit, return_credit).
  static constexpr std::uint64_t explicit_only = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t slots;
  std::uint64_t credits_at_once;

  class Sender;
  class Receiver;
};

class SlidingWindow::Sender {
 public:
  Sender(const SlidingWindow& window, std::uint64_t before) noexcept
      : window_(window), sent_(before), released_(before), last_credit_(before) {}

  // The number of the last chunk.
  std::uint64_t sent() const noexcept { return sent_; }
  // Whether the next chunk has a slot. `credit()` looks at what the receiver has returned last, and only where the
  // credit known before is not enough.
  template <class Credit>
  bool has_slot(Credit&& credit) noexcept {
    if (is_covered()) return true;
    knows_released(credit());
    return is_covered();
  }
  // After has_slot(): the next chunk's number.
  std::uint64_t send() noexcept {
    skip_to(sent_ + 1);
    return sent_;
  }
  // Numbers up to this one have no chunks, and count as released.
  void skip_to(std::uint64_t number) noexcept {
    sent_ = number;
    if (sent_ - last_credit_ >= window_.credits_at_once) last_credit_ = sent_;
  }
  // The receiver returns credit once it has got as far as this end, though it is not due.
  void expect_credit() noexcept { last_credit_ = sent_; }
  // Known without returned credit: it has released all up to this one.
  void knows_released(std::uint64_t number) noexcept { released_ = std::max(released_, number); }
  // Another receiver takes the place of the one before, and has not returned credit yet.
  void forget_released(std::uint64_t before) noexcept { released_ = before; }
  // The number up to which the receiver has returned credit, or will have; `before` if it does not.
  std::uint64_t last_credit() const noexcept { return last_credit_; }

 private:
  bool is_covered() const noexcept { return sent_ < released_ + window_.slots; }

  SlidingWindow window_;
  std::uint64_t sent_;
  std::uint64_t released_;  // by the receiver, as far as is known
  std::uint64_t last_credit_;
};

class SlidingWindow::Receiver {
 public:
  Receiver(const SlidingWindow& window, std::uint64_t before) noexcept
      : window_(window), released_(before), returned_(before) {}

  // The number of the last chunk that was released; the next one's is one more.
  std::uint64_t released() const noexcept { return released_; }
  // The next chunk's slot may be written again. True: the sender is to be told released() now.
  bool release() noexcept { return skip_to(released_ + 1); }
  bool skip_to(std::uint64_t number) noexcept {
    released_ = number;
    if (released_ - returned_ < window_.credits_at_once) return false;
    returned_ = released_;
    return true;
  }
  // Credit is returned though it is not due.
  void return_credit() noexcept { returned_ = released_; }

 private:
  SlidingWindow window_;
  std::uint64_t released_;
  std::uint64_t returned_;
};

}  // namespace papaya
