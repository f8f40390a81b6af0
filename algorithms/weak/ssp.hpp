// What the stale synchronous parallel algorithms share: the slots that messages come to, and the rule by which a call
// takes one of them.
//
// Every message begins with the clock of the oldest contribution in it. That of call n goes to slot n mod `slots` of
// its notification, which is set to n. A call takes the newest message that is no newer than itself and holds no
// contribution of before clock - slack. The algorithms' headers prove that so many slots are enough: none is written
// while it may be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "algorithms/transport/notified.hpp"

namespace papaya {

class SspSlots {
 public:
  SspSlots(std::uint64_t slack, std::uint64_t slots, std::size_t message_bytes) noexcept
      : slack_(slack), slots_(slots), message_bytes_(in_lines(message_bytes)) {}

  // Of the slots of so many notifications.
  std::size_t bytes(std::size_t notifications) const noexcept {
    return notifications * static_cast<std::size_t>(slots_) * message_bytes_;
  }
  std::size_t offset(int id, std::uint64_t number) const noexcept {
    return bytes(static_cast<std::size_t>(id)) + static_cast<std::size_t>(number % slots_) * message_bytes_;
  }
  // The number of the message that a call may take; 0: there is none yet. If the sender is ahead,
  // its message of this very call is still there.
  std::uint64_t usable(Notified& wire, int id, std::uint64_t clock) const noexcept {
    const std::uint64_t newest = wire.look(id);
    if (newest >= clock) return clock;
    if (newest == 0 || newest + slack_ < clock) return 0;
    std::uint64_t oldest = 0;
    std::memcpy(&oldest, wire.segment() + offset(id, newest), sizeof oldest);
    return oldest + slack_ >= clock ? newest : 0;
  }

 private:
  std::uint64_t slack_;
  std::uint64_t slots_;
  std::size_t message_bytes_;
};

}  // namespace papaya
