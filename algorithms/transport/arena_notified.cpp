#include "algorithms/transport/arena_notified.hpp"

#include <atomic>

namespace papaya {

ArenaNotified::ArenaNotified(Arena& arena, std::size_t ranks, const SegmentShape& shape)
    : arena_(arena),
      notifications_bytes_(in_lines(static_cast<std::size_t>(shape.notifications) * sizeof(std::uint64_t))),
      share_bytes_(notifications_bytes_ + shape.bytes),
      offsets_(ranks),
      reset_at_(static_cast<std::size_t>(shape.notifications)) {
  bell_ = &own_bell_;
}

ArenaNotified::~ArenaNotified() {
  if (offset_ >= 0) arena_.release(offset_, share_bytes_);
}

bool ArenaNotified::allocate() noexcept {
  offset_ = arena_.allocate(share_bytes_);
  if (offset_ < 0) return false;
  segment_ = arena_.base() + offset_ + notifications_bytes_;
  return true;
}

std::uint64_t ArenaNotified::look(int id) noexcept {
  auto* const numbers = reinterpret_cast<std::uint64_t*>(arena_.base() + offset_);
  // Acquire: what has been written before the notification.
  const std::uint64_t value = std::atomic_ref<std::uint64_t>(numbers[id]).load(std::memory_order_acquire);
  return value == reset_at_[static_cast<std::size_t>(id)] ? 0 : value;
}

std::uint64_t ArenaNotified::reset(int id) noexcept {
  // By memory of this rank's own: a store there would race with the writer's.
  const std::uint64_t value = look(id);
  if (value != 0) reset_at_[static_cast<std::size_t>(id)] = value;
  return value;
}

}  // namespace papaya
