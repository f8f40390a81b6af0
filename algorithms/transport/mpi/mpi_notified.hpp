// Notified communication by messages of MPI (mpi_messages.hpp).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/transport/mpi/arena_notified.hpp"
#include "algorithms/transport/mpi/mpi_messages.hpp"

namespace papaya {

class MpiNotified final : public ArenaNotified {
 public:
  // Collective over `comm`, whose ranks are `members` of the messages' communicator. Null, on all ranks alike,
  // if there is not enough memory. `policy` outlives it.
  static std::unique_ptr<MpiNotified> create(MpiMessages& messages, MPI_Comm comm, std::vector<int> members,
                                             wait::Policy& policy, const SegmentShape& shape) noexcept;
  // The same in parts, for who must not wait. This rank's share, null if there is no memory; then connect() with
  // everybody's offset(), gathered after all have offered.
  static std::unique_ptr<MpiNotified> offer(MpiMessages& messages, std::vector<int> members, wait::Policy& policy,
                                            const SegmentShape& shape);
  ~MpiNotified() override;

  void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                    std::uint64_t value) noexcept override;
  bool are_sources_free() noexcept override { return under_way_.sources.load(std::memory_order_relaxed) == 0; }
  void release_sources() noexcept override;
  bool may_leave() noexcept override { return under_way_.sends.load(std::memory_order_relaxed) == 0; }
  void leave() noexcept override;
  void progress() noexcept override { messages_.progress(); }

 private:
  MpiNotified(MpiMessages& messages, std::vector<int> members, wait::Policy& policy, const SegmentShape& shape);

  MpiMessages& messages_;
  wait::Policy& policy_;
  const std::vector<int> members_;  // ranks in the messages' communicator
  MpiMessages::UnderWay under_way_;
  wait::Site site_;
};

}  // namespace papaya
