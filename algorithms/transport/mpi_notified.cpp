#include "algorithms/transport/mpi_notified.hpp"

#include <atomic>
#include <cstring>
#include <new>

namespace papaya {

namespace {

// The window: notifications, then the segment.
std::size_t flags_bytes(int notifications) noexcept {
  return (static_cast<std::size_t>(notifications) * sizeof(std::uint64_t) + 63) / 64 * 64;
}

std::atomic_ref<std::uint64_t> flag_at(std::byte* base, int id) noexcept {
  return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(base)[id]);
}

bool agree(bool good, MPI_Comm comm) noexcept {
  int mine = good ? 1 : 0;
  int all = 0;
  return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == 1;
}

}  // namespace

std::unique_ptr<MpiNotified> MpiNotified::create(MPI_Comm comm, const SegmentShape& shape) noexcept {
  // A communicator of papaya's own: the program's error handler would end the job. Not a copy, which would
  // call the program's attribute functions.
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm own = MPI_COMM_NULL;
  PMPI_Comm_group(comm, &group);
  const int made = PMPI_Comm_create(comm, group, &own);
  PMPI_Group_free(&group);
  if (made != MPI_SUCCESS || own == MPI_COMM_NULL) return nullptr;
  PMPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);

  std::unique_ptr<MpiNotified> self(new (std::nothrow) MpiNotified);
  if (self != nullptr)
    self->reset_at_.reset(new (std::nothrow) std::uint64_t[static_cast<std::size_t>(shape.notifications)]());
  if (!agree(self != nullptr && self->reset_at_ != nullptr, own)) {
    PMPI_Comm_free(&own);
    return nullptr;
  }
  self->comm_ = own;
  self->notifications_ = shape.notifications;
  const std::size_t bytes = flags_bytes(shape.notifications) + shape.bytes;
  std::byte* base = nullptr;
  const bool allocated = PMPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, own, &base,
                                           &self->window_) == MPI_SUCCESS;
  // Where one rank fails, MPI's own agreement inside fails on all; a window that only some have cannot be
  // freed.
  if (!agree(allocated, own)) {
    if (!allocated) self->window_ = MPI_WIN_NULL;
    return nullptr;
  }
  PMPI_Win_set_errhandler(self->window_, MPI_ERRORS_RETURN);
  int* model = nullptr;
  int has_model = 0;
  PMPI_Win_get_attr(self->window_, MPI_WIN_MODEL, &model, &has_model);
  std::memset(base, 0, bytes);
  const bool locked = PMPI_Win_lock_all(MPI_MODE_NOCHECK, self->window_) == MPI_SUCCESS;
  if (locked) PMPI_Win_sync(self->window_);
  self->segment_ = base + flags_bytes(shape.notifications);
  self->bell_ = &self->own_bell_;
  // Also the barrier after which all segments are zero. Looking at notifications needs one memory for both
  // sides.
  const bool good = locked && has_model != 0 && *model == MPI_WIN_UNIFIED;
  if (!agree(good, own)) {
    self->failed_ = !locked;
    return nullptr;
  }
  return self;
}

MpiNotified::~MpiNotified() {
  if (window_ != MPI_WIN_NULL) {
    if (!failed_) PMPI_Win_unlock_all(window_);
    PMPI_Win_free(&window_);
  }
  if (comm_ != MPI_COMM_NULL) PMPI_Comm_free(&comm_);
}

void MpiNotified::write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                               std::uint64_t value) noexcept {
  bool good = true;
  if (bytes != 0) {
    good = PMPI_Put(source, static_cast<int>(bytes), MPI_BYTE, peer,
                    static_cast<MPI_Aint>(flags_bytes(notifications_) + offset), static_cast<int>(bytes),
                    MPI_BYTE, window_) == MPI_SUCCESS;
    // The data are there before the notification sets out.
    good = good && PMPI_Win_flush(peer, window_) == MPI_SUCCESS;
  }
  good = good && PMPI_Accumulate(&value, 1, MPI_UINT64_T, peer,
                                 static_cast<MPI_Aint>(static_cast<std::size_t>(id) * sizeof value), 1,
                                 MPI_UINT64_T, MPI_REPLACE, window_) == MPI_SUCCESS;
  // Sends it, and lets `value` go; that it has come, the peer's answer will show.
  good = good && PMPI_Win_flush_local(peer, window_) == MPI_SUCCESS;
  failed_ = failed_ || !good;
}

std::uint64_t MpiNotified::look(int id) noexcept {
  // Acquire: what MPI has written before the notification.
  const std::uint64_t value =
      flag_at(segment_ - flags_bytes(notifications_), id).load(std::memory_order_acquire);
  return value == reset_at_[static_cast<std::size_t>(id)] ? 0 : value;
}

std::uint64_t MpiNotified::reset(int id) noexcept {
  // By memory of this rank's own: a store into the window would race with MPI's.
  const std::uint64_t value = look(id);
  if (value != 0) reset_at_[static_cast<std::size_t>(id)] = value;
  return value;
}

bool MpiNotified::progress() noexcept {
  int found = 0;
  if (PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    failed_ = true;
  PMPI_Win_sync(window_);
  return !failed_;
}

}  // namespace papaya
