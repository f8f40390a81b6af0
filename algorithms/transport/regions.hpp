// Space in the memory that the ranks of a node share, as those see it that set algorithms up in it. The node's window
// is it (mpi/node_window.hpp); tests that have no MPI put something else in its place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace papaya {

class Regions {
 public:
  virtual ~Regions() = default;
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;
  virtual bool exists() const noexcept = 0;
  virtual std::size_t region_bytes() const noexcept = 0;  // for all regions; equal on all ranks

  // Space for `users` ranks, if `leave` bytes are left then: an offset, or -1. Called by one rank; the others are told
  // the offset.
  virtual std::int64_t allocate(std::size_t bytes, int users, std::size_t leave) noexcept = 0;
  // Space that whoever comes first to `key` allocates for all who come: for the first of their wishes, which they all
  // have in common, that there is room for. An offset, and the number of the wish; or -1. Each calls it once. `key` has
  // 64 bits of hash, alike on all ranks and never zero.
  struct Wish {
    std::size_t bytes;
    std::size_t leave = 0;
  };
  struct Attached {
    std::int64_t offset;
    std::size_t wish;
  };
  virtual Attached attach(std::uint64_t key, std::span<const Wish> wishes) noexcept = 0;
  // Of a region that ranks have attached to: zero at first.
  virtual std::atomic<std::uint64_t>& agreement(std::int64_t offset) const noexcept = 0;
  // Makes this rank's share of the region's pages present and zero. False if the memory is not there.
  virtual bool prepare_share(std::int64_t offset, std::size_t bytes, int rank, int ranks) noexcept = 0;
  // Each user calls it once; the last one gives the space back.
  virtual void release(std::int64_t offset, std::size_t bytes) noexcept = 0;

  virtual std::byte* region(std::int64_t offset) const noexcept = 0;

 protected:
  Regions() = default;
};

}  // namespace papaya
