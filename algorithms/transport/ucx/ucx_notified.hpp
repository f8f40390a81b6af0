// Notified communication by UCX's one-sided operations, through libpapaya-ucx.so, whose source says why a
// notification is never seen before its data. Between machines without RDMA a write is applied by the
// target's progress of UCX, which every rank that waits in papaya makes; MPI is progressed beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "algorithms/transport/arena_notified.hpp"
#include "algorithms/transport/ucx/ucx_window.hpp"

namespace papaya {

class UcxNotified final : public ArenaNotified {
 public:
  // As Transport::offer; its members are connected.
  static std::unique_ptr<UcxNotified> offer(UcxWindow& window, const std::vector<int>& members,
                                            const wait::Policy& policy, const SegmentShape& shape);
  ~UcxNotified() override;

  void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                    std::uint64_t value) noexcept override;
  bool takes_at_once(std::size_t /*bytes*/) const noexcept override { return copies_all_; }
  bool are_sources_free() noexcept override { return !window_.worker().is_needed(sources_); }
  void release_sources() noexcept override;
  // A second thread may ask, and make progress, while the first writes.
  bool may_leave() noexcept override;
  void leave() noexcept override;
  std::uint64_t look(int id) noexcept override;
  void progress() noexcept override { window_.progress(); }
  bool sleep(std::uint64_t nanoseconds) noexcept override { return window_.worker().sleep(nanoseconds); }

 private:
  UcxNotified(UcxWindow& window, const std::vector<int>& members, const wait::Policy& policy,
              const SegmentShape& shape);
  // Where ranks leave calls while others' messages are under way: of what is written.
  struct Copy {
    std::vector<std::byte> data;
    ucx::Sources sources;
  };
  Copy* copy(const void* source, std::size_t bytes) noexcept;
  template <class Done>
  void progress_until(Done&& done) noexcept;

  UcxWindow& window_;
  const wait::Policy& policy_;
  const std::vector<int> members_;  // ranks in the world
  ucx::Sources sources_;
  const bool copies_all_;
  // In the order of writing: the oldest is used again once UCX does not need it any more.
  std::deque<std::unique_ptr<Copy>> copies_;
  std::mutex mutex_;                  // guards what follows
  std::vector<int> outstanding_;      // peers with outstanding writes of this rank
  std::vector<bool> is_outstanding_;  // by peer
};

}  // namespace papaya
