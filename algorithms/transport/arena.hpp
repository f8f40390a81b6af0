// This process's part of the memory that other nodes write into: pages of it go to its communicators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace papaya {

class Arena {
 public:
  // The list of pages for so many bytes; false if there is no memory for it.
  bool reserve(std::size_t bytes) noexcept;
  std::size_t bytes() const noexcept;  // whole pages

  // The memory itself, which is its owner's. Null: nothing is given out (any more).
  void set_base(std::byte* base) noexcept { base_ = base; }
  std::byte* base() const noexcept { return base_; }

  // Zeroed: an offset, or -1. To be released once nobody writes there any more.
  std::int64_t allocate(std::size_t bytes) noexcept;
  void release(std::int64_t offset, std::size_t bytes) noexcept;

 private:
  std::byte* base_ = nullptr;
  std::mutex mutex_;
  std::vector<bool> used_;  // pages; guarded by the mutex
};

}  // namespace papaya
