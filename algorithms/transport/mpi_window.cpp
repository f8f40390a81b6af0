#include "algorithms/transport/mpi_window.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace papaya {

namespace {

constexpr std::size_t page_bytes = 4096;

std::size_t pages_for(std::size_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes;
}

bool agree(bool good, MPI_Comm comm) noexcept {
  int mine = good ? 1 : 0;
  int all = 0;
  return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == 1;
}

}  // namespace

bool MpiWindow::create(MPI_Comm world, std::size_t bytes) noexcept {
  world_ = world;
  bool good = true;
  try {
    used_.assign(bytes / page_bytes, false);
  } catch (const std::bad_alloc&) {
    good = false;
  }
  if (!agree(good, world)) return false;
  std::byte* base = nullptr;
  good = PMPI_Win_allocate(static_cast<MPI_Aint>(used_.size() * page_bytes), 1, MPI_INFO_NULL, world, &base,
                           &window_) == MPI_SUCCESS;
  // Where one rank fails MPI's own agreement fails on all; a window that only some have could not be freed.
  if (!agree(good, world)) {
    window_ = MPI_WIN_NULL;
    return false;
  }
  PMPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  // Looking at what others have written needs one memory for both sides.
  int* model = nullptr;
  int has_model = 0;
  PMPI_Win_get_attr(window_, MPI_WIN_MODEL, &model, &has_model);
  const bool locked = PMPI_Win_lock_all(MPI_MODE_NOCHECK, window_) == MPI_SUCCESS;
  if (agree(locked && has_model != 0 && *model == MPI_WIN_UNIFIED, world)) {
    base_ = base;
    return true;
  }
  if (locked) PMPI_Win_unlock_all(window_);
  PMPI_Win_free(&window_);
  return false;
}

void MpiWindow::free() noexcept {
  if (base_ == nullptr) return;
  base_ = nullptr;
  PMPI_Win_unlock_all(window_);
  PMPI_Win_free(&window_);
}

std::int64_t MpiWindow::allocate(std::size_t bytes) noexcept {
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
  PMPI_Win_sync(window_);
  return static_cast<std::int64_t>(first * page_bytes);
}

void MpiWindow::release(std::int64_t offset, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  std::fill_n(used_.begin() + offset / static_cast<std::int64_t>(page_bytes), pages_for(bytes), false);
}

}  // namespace papaya
