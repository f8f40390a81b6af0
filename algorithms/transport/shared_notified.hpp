// Notified communication through memory that all ranks of the team share.
#pragma once

#include <cstddef>

#include "algorithms/transport/notified.hpp"

namespace papaya {

class SharedNotified final : public Notified {
 public:
  // Of the region, which is zeroed before.
  static std::size_t region_bytes(int ranks, const SegmentShape& shape) noexcept;

  SharedNotified(std::byte* region, int rank, const wait::Policy& policy, const SegmentShape& shape) noexcept;

  void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                    std::uint64_t value) noexcept override;
  bool takes_at_once(std::size_t /*bytes*/) const noexcept override { return true; }
  std::uint64_t look(int id) noexcept override;
  std::uint64_t reset(int id) noexcept override;
  void progress() noexcept override {}
  bool serves_two_threads() const noexcept override { return true; }
  wait::Doorbell* service_bell() const noexcept override;

 private:
  struct Share;  // of one rank
  Share share(int rank) const noexcept;

  std::byte* const region_;
  const int rank_;
  const wait::Policy& policy_;
  const SegmentShape shape_;
};

}  // namespace papaya
