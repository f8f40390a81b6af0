#include "algorithms/transport/arena.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace papaya {

namespace {

constexpr std::size_t page_bytes = 4096;

std::size_t pages_for(std::size_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes;
}

}  // namespace

bool Arena::reserve(std::size_t bytes) noexcept {
  try {
    used_.assign(bytes / page_bytes, false);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

std::size_t Arena::bytes() const noexcept {
  return used_.size() * page_bytes;
}

std::int64_t Arena::allocate(std::size_t bytes) noexcept {
  if (base_ == nullptr) return -1;
  const std::size_t pages = pages_for(bytes);
  std::size_t first = 0;
  {
    const std::lock_guard lock(mutex_);
    std::size_t free_pages = 0;
    std::size_t page = 0;
    while (page < used_.size() && free_pages < pages) free_pages = used_[page++] ? 0 : free_pages + 1;
    if (free_pages < pages) return -1;
    first = page - pages;
    std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(first), pages, true);
  }
  std::memset(base_ + first * page_bytes, 0, pages * page_bytes);
  return static_cast<std::int64_t>(first * page_bytes);
}

void Arena::release(std::int64_t offset, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  std::fill_n(used_.begin() + offset / static_cast<std::int64_t>(page_bytes), pages_for(bytes), false);
}

}  // namespace papaya
