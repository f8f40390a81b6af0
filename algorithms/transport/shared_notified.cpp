#include "algorithms/transport/shared_notified.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace papaya {

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t page_bytes = 4096;

// A notification. Owner: its one writer; the rank it is for resets it.
struct alignas(line_bytes) Flag {
  std::atomic<std::uint64_t> value;
};

// Bells, notifications, segment; on pages of its own, which its rank touches first.
std::size_t bells_bytes(const SegmentShape& shape) noexcept {
  return (shape.served != 0 ? 2 : 1) * sizeof(wait::Doorbell);
}
std::size_t head_bytes(const SegmentShape& shape) noexcept {
  return bells_bytes(shape) + static_cast<std::size_t>(shape.notifications) * sizeof(Flag);
}
std::size_t share_bytes(const SegmentShape& shape) noexcept {
  return (head_bytes(shape) + shape.bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

struct SharedNotified::Share {
  wait::Doorbell* bells;  // the second one is the second thread's, if it has notifications
  Flag* flags;
  std::byte* segment;
};

std::size_t SharedNotified::region_bytes(int ranks, const SegmentShape& shape) noexcept {
  return static_cast<std::size_t>(ranks) * share_bytes(shape);
}

SharedNotified::SharedNotified(std::byte* region, int rank, const wait::Policy& policy,
                               const SegmentShape& shape) noexcept
    : region_(region), rank_(rank), policy_(policy), shape_(shape) {
  const Share mine = share(rank);
  segment_ = mine.segment;
  bell_ = mine.bells;
}

SharedNotified::Share SharedNotified::share(int rank) const noexcept {
  std::byte* const at = region_ + static_cast<std::size_t>(rank) * share_bytes(shape_);
  return {reinterpret_cast<wait::Doorbell*>(at), reinterpret_cast<Flag*>(at + bells_bytes(shape_)),
          at + head_bytes(shape_)};
}

void SharedNotified::write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                                  std::uint64_t value) noexcept {
  const Share to = share(peer);
  if (bytes != 0) std::memcpy(to.segment + offset, source, bytes);
  // Release: partner of the acquire in look(); the bytes come first.
  to.flags[id].value.store(value, std::memory_order_release);
  if (peer == rank_ && shape_.served == 0) return;  // there is no other thread
  const bool is_served = id >= shape_.notifications - shape_.served;
  wait::Doorbell& bell = to.bells[is_served ? 1 : 0];
  // A thread that serves sleeps whenever it has nothing to do, on however many cores.
  if (is_served) wait::Policy::publish_before_look(bell);
  if (policy_.is_anybody_asleep(bell)) policy_.ring(bell, bell.completed.load(std::memory_order_relaxed) + 1);
}

wait::Doorbell* SharedNotified::service_bell() const noexcept {
  return shape_.served != 0 ? share(rank_).bells + 1 : nullptr;
}

std::uint64_t SharedNotified::look(int id) noexcept {
  return share(rank_).flags[id].value.load(std::memory_order_acquire);  // acquire: partner in write_notify
}

std::uint64_t SharedNotified::reset(int id) noexcept {
  // Acquire: as above. The writer learns of the reset by a message of the algorithm, which orders it.
  return share(rank_).flags[id].value.exchange(0, std::memory_order_acquire);
}

}  // namespace papaya
