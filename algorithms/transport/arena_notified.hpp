// What notified communication between nodes has in common, whatever carries it: each rank's share of its
// arena, notifications first and then the segment, and looking at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/transport/arena.hpp"
#include "algorithms/transport/notified.hpp"

namespace papaya {

class ArenaNotified : public Notified {
 public:
  ~ArenaNotified() override;

  std::int64_t offset() const noexcept { return offset_; }
  std::int64_t offset_of(int peer) const noexcept { return offsets_[static_cast<std::size_t>(peer)]; }
  // After everybody has a share: all their offsets.
  void connect(const std::vector<std::int64_t>& offsets) noexcept { offsets_ = offsets; }

  std::uint64_t look(int id) noexcept override;
  std::uint64_t reset(int id) noexcept override;

 protected:
  // Throws std::bad_alloc.
  ArenaNotified(Arena& arena, std::size_t ranks, const SegmentShape& shape);

  // This rank's share, zero, and with it segment(); false if there is not enough memory.
  bool allocate() noexcept;

  // In the peer's arena.
  std::size_t notification_at(int peer, int id) const noexcept {
    return share_of(peer) + static_cast<std::size_t>(id) * sizeof(std::uint64_t);
  }
  std::size_t segment_at(int peer, std::size_t offset) const noexcept {
    return share_of(peer) + notifications_bytes_ + offset;
  }
  std::size_t own_segment_at(std::size_t offset) const noexcept {
    return static_cast<std::size_t>(offset_) + notifications_bytes_ + offset;
  }

 private:
  std::size_t share_of(int peer) const noexcept {
    return static_cast<std::size_t>(offsets_[static_cast<std::size_t>(peer)]);
  }

  Arena& arena_;
  const std::size_t notifications_bytes_;
  const std::size_t share_bytes_;
  std::int64_t offset_ = -1;             // of this rank's share
  std::vector<std::int64_t> offsets_;    // everybody's
  std::vector<std::uint64_t> reset_at_;  // by id: the number that look() no longer tells
  wait::Doorbell own_bell_{};            // rung by nobody
};

}  // namespace papaya
