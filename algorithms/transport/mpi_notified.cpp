#include "algorithms/transport/mpi_notified.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/log.hpp"

namespace papaya {

namespace {

// A rank's share of the window: notifications, then the segment.
std::size_t flags_bytes(const SegmentShape& shape) noexcept {
  return in_lines(static_cast<std::size_t>(shape.notifications) * sizeof(std::uint64_t));
}
std::size_t share_bytes(const SegmentShape& shape) noexcept {
  return flags_bytes(shape) + shape.bytes;
}

// The others wait for what will never come, and cannot be told: as after an error in a collective of MPI's
// own, the job ends.
[[noreturn]] void end_after_failure(MPI_Comm world) noexcept {
  log::error(
      "MPI's one-sided communication failed in the middle of a collective; the job cannot go on. Run it without "
      "an algorithm that works across nodes: PAPAYA_ALLREDUCE=auto and its like.");
  PMPI_Abort(world, MPI_ERR_OTHER);
  std::abort();
}

}  // namespace

MpiNotified::MpiNotified(MpiWindow& window, std::vector<int> members, const SegmentShape& shape)
    : window_(window),
      members_(std::move(members)),
      shape_(shape),
      offsets_(members_.size()),
      reset_at_(static_cast<std::size_t>(shape.notifications)) {}

std::unique_ptr<MpiNotified> MpiNotified::create(MpiWindow& window, MPI_Comm comm, std::vector<int> members,
                                                 const SegmentShape& shape) noexcept {
  std::unique_ptr<MpiNotified> self;
  try {
    self = offer(window, std::move(members), shape);
  } catch (const std::bad_alloc&) {
  }
  const std::int64_t mine = self == nullptr ? -1 : self->offset_;
  // Also the barrier after which all shares are zero. A rank that has no list to gather into has nothing to
  // offer either.
  std::int64_t least = -1;
  PMPI_Allreduce(&mine, &least, 1, MPI_INT64_T, MPI_MIN, comm);
  if (least < 0) return nullptr;
  PMPI_Allgather(&mine, 1, MPI_INT64_T, self->offsets_.data(), 1, MPI_INT64_T, comm);
  return self;
}

std::unique_ptr<MpiNotified> MpiNotified::offer(MpiWindow& window, std::vector<int> members,
                                                const SegmentShape& shape) {
  if (members.empty()) return nullptr;
  std::unique_ptr<MpiNotified> self(new MpiNotified(window, std::move(members), shape));
  self->offset_ = window.allocate(share_bytes(shape));
  if (self->offset_ < 0) return nullptr;
  self->segment_ = window.base() + self->offset_ + flags_bytes(shape);
  self->bell_ = &self->own_bell_;
  return self;
}

MpiNotified::~MpiNotified() {
  if (offset_ >= 0) window_.release(offset_, share_bytes(shape_));
}

void MpiNotified::write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                               std::uint64_t value) noexcept {
  const MPI_Win window = window_.handle();
  const int target = members_[static_cast<std::size_t>(peer)];
  const MPI_Aint share = offsets_[static_cast<std::size_t>(peer)];
  bool good = true;
  if (bytes != 0) {
    good = PMPI_Put(source, static_cast<int>(bytes), MPI_BYTE, target,
                    share + static_cast<MPI_Aint>(flags_bytes(shape_) + offset), static_cast<int>(bytes),
                    MPI_BYTE, window) == MPI_SUCCESS;
    // The data are there before the notification sets out.
    good = good && PMPI_Win_flush(target, window) == MPI_SUCCESS;
  }
  good = good && PMPI_Accumulate(&value, 1, MPI_UINT64_T, target,
                                 share + static_cast<MPI_Aint>(static_cast<std::size_t>(id) * sizeof value),
                                 1, MPI_UINT64_T, MPI_REPLACE, window) == MPI_SUCCESS;
  // Sends it, and lets `value` go; that it has come, the peer's answer will show.
  good = good && PMPI_Win_flush_local(target, window) == MPI_SUCCESS;
  if (!good) end_after_failure(window_.world());
}

std::uint64_t MpiNotified::look(int id) noexcept {
  auto* const flags = reinterpret_cast<std::uint64_t*>(window_.base() + offset_);
  // Acquire: what MPI has written before the notification.
  const std::uint64_t value = std::atomic_ref<std::uint64_t>(flags[id]).load(std::memory_order_acquire);
  return value == reset_at_[static_cast<std::size_t>(id)] ? 0 : value;
}

std::uint64_t MpiNotified::reset(int id) noexcept {
  // By memory of this rank's own: a store into the window would race with MPI's.
  const std::uint64_t value = look(id);
  if (value != 0) reset_at_[static_cast<std::size_t>(id)] = value;
  return value;
}

void MpiNotified::progress() noexcept {
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, window_.world(), &found, MPI_STATUS_IGNORE);
  PMPI_Win_sync(window_.handle());
}

}  // namespace papaya
