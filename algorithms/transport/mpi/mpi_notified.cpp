#include "algorithms/transport/mpi/mpi_notified.hpp"

#include <limits>
#include <utility>

namespace papaya {

namespace {
bool may_many_threads_call() noexcept {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}
}  // namespace

MpiNotified::MpiNotified(MpiMessages& messages, std::vector<int> members, wait::Policy& policy,
                         const SegmentShape& shape)
    : ArenaNotified(messages.arena(), members.size(), shape),
      messages_(messages),
      policy_(policy),
      members_(std::move(members)),
      most_copied_(shape.leaves_alone ? std::numeric_limits<std::size_t>::max() : MpiMessages::most_inline_bytes),
      may_many_call_(may_many_threads_call()) {}

std::unique_ptr<MpiNotified> MpiNotified::offer(MpiMessages& messages, std::vector<int> members, wait::Policy& policy,
                                                const SegmentShape& shape) {
  std::unique_ptr<MpiNotified> self(new MpiNotified(messages, std::move(members), policy, shape));
  if (!self->allocate()) return nullptr;
  messages.start_receiving();
  return self;
}

// What MPI still sends from papaya's own copies goes on without it.
MpiNotified::~MpiNotified() {
  release_sources();
  messages_.disown(under_way_);
}

void MpiNotified::write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                               std::uint64_t value) noexcept {
  messages_.write(members_[static_cast<std::size_t>(peer)], segment_at(peer, offset), source, bytes,
                  notification_at(peer, id), value, under_way_, most_copied_);
  // By one thread of the rank for the other, maybe.
  if (members_[static_cast<std::size_t>(peer)] == messages_.rank())
    policy_.ring(*bell_, bell_->completed.load(std::memory_order_relaxed) + 1);
}

bool MpiNotified::redirect(std::size_t offset, std::size_t bytes, void* place) noexcept {
  if (bytes != 0) messages_.redirect(own_segment_at(offset), bytes, place);
  return true;
}

void MpiNotified::release_sources() noexcept {
  if (are_sources_free()) return;
  wait(
      policy_, site_,
      [this] {
        progress();
        return are_sources_free();
      },
      nullptr);
}

void MpiNotified::leave() noexcept {
  if (may_leave()) return;
  wait(
      policy_, site_,
      [this] {
        progress();
        return may_leave();
      },
      nullptr);
}

}  // namespace papaya
