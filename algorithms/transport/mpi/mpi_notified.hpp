// Notified communication by messages of MPI (mpi_messages.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/transport/arena_notified.hpp"
#include "algorithms/transport/mpi/mpi_messages.hpp"

namespace papaya {

class MpiNotified final : public ArenaNotified {
 public:
  // As Transport::offer; `members` are ranks of the messages' communicator.
  static std::unique_ptr<MpiNotified> offer(MpiMessages& messages, std::vector<int> members, wait::Policy& policy,
                                            const SegmentShape& shape);
  ~MpiNotified() override;

  void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                    std::uint64_t value) noexcept override;
  bool takes_at_once(std::size_t bytes) const noexcept override { return bytes <= most_copied_; }
  bool redirect(std::size_t offset, std::size_t bytes, void* place) noexcept override;
  bool are_sources_free() noexcept override { return under_way_.sources.load(std::memory_order_relaxed) == 0; }
  void release_sources() noexcept override;
  bool may_leave() noexcept override { return under_way_.sends.load(std::memory_order_relaxed) == 0; }
  void leave() noexcept override;
  void progress() noexcept override { messages_.progress(); }
  // What they have in common is atomic or behind the messages' lock; MPI is called by both.
  bool serves_two_threads() const noexcept override { return may_many_call_; }

 private:
  MpiNotified(MpiMessages& messages, std::vector<int> members, wait::Policy& policy, const SegmentShape& shape);

  MpiMessages& messages_;
  wait::Policy& policy_;
  const std::vector<int> members_;  // ranks in the messages' communicator
  const std::size_t most_copied_;   // bytes of a write
  const bool may_many_call_;        // several threads at once, MPI
  MpiMessages::UnderWay under_way_;
  wait::Site site_;
};

}  // namespace papaya
