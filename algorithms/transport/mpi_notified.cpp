#include "algorithms/transport/mpi_notified.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "base/log.hpp"

namespace papaya {

namespace {

// The others wait for what will never come, and cannot be told: as after an error in a collective of MPI's
// own, the job ends.
[[noreturn]] void end_after_failure(MPI_Comm world) noexcept {
  log::error(
      "MPI's one-sided communication failed in the middle of a collective; the job cannot go on. Run it "
      "without "
      "an algorithm that works across nodes: PAPAYA_ALLREDUCE=auto and its like.");
  PMPI_Abort(world, MPI_ERR_OTHER);
  std::abort();
}

}  // namespace

MpiNotified::MpiNotified(MpiWindow& window, std::vector<int> members, const SegmentShape& shape)
    : ArenaNotified(window.arena(), members.size(), shape), window_(window), members_(std::move(members)) {}

std::unique_ptr<MpiNotified> MpiNotified::create(MpiWindow& window, MPI_Comm comm, std::vector<int> members,
                                                 const SegmentShape& shape) noexcept {
  std::unique_ptr<MpiNotified> self;
  try {
    self = offer(window, std::move(members), shape);
  } catch (const std::bad_alloc&) {
  }
  if (!exchange(self.get(), comm)) return nullptr;
  return self;
}

std::unique_ptr<MpiNotified> MpiNotified::offer(MpiWindow& window, std::vector<int> members,
                                                const SegmentShape& shape) {
  std::unique_ptr<MpiNotified> self(new MpiNotified(window, std::move(members), shape));
  if (!self->allocate()) return nullptr;
  // What the share was zeroed with is in memory before others write there.
  PMPI_Win_sync(window.handle());
  return self;
}

void MpiNotified::write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                               std::uint64_t value) noexcept {
  const MPI_Win window = window_.handle();
  const int target = members_[static_cast<std::size_t>(peer)];
  bool good = true;
  if (bytes != 0) {
    good = PMPI_Put(source, static_cast<int>(bytes), MPI_BYTE, target,
                    static_cast<MPI_Aint>(segment_at(peer, offset)), static_cast<int>(bytes), MPI_BYTE,
                    window) == MPI_SUCCESS;
    // The data are there before the notification sets out.
    good = good && PMPI_Win_flush(target, window) == MPI_SUCCESS;
  }
  good = good &&
         PMPI_Accumulate(&value, 1, MPI_UINT64_T, target, static_cast<MPI_Aint>(notification_at(peer, id)), 1,
                         MPI_UINT64_T, MPI_REPLACE, window) == MPI_SUCCESS;
  // Sends it, and lets `value` go; that it has come, the peer's answer will show.
  good = good && PMPI_Win_flush_local(target, window) == MPI_SUCCESS;
  if (!good) end_after_failure(window_.world());
}

void MpiNotified::progress() noexcept {
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, window_.world(), &found, MPI_STATUS_IGNORE);
  PMPI_Win_sync(window_.handle());
}

}  // namespace papaya
