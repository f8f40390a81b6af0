#include "algorithms/transport/mpi_window.hpp"

namespace papaya {

namespace {

bool agree(bool good, MPI_Comm comm) noexcept {
  int mine = good ? 1 : 0;
  int all = 0;
  return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == 1;
}

}  // namespace

bool MpiWindow::create(MPI_Comm world, std::size_t bytes) noexcept {
  world_ = world;
  if (!agree(arena_.reserve(bytes), world)) return false;
  std::byte* base = nullptr;
  const bool good = PMPI_Win_allocate(static_cast<MPI_Aint>(arena_.bytes()), 1, MPI_INFO_NULL, world, &base,
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
    arena_.set_base(base);
    return true;
  }
  if (locked) PMPI_Win_unlock_all(window_);
  PMPI_Win_free(&window_);
  return false;
}

void MpiWindow::free() noexcept {
  if (!exists()) return;
  arena_.set_base(nullptr);
  PMPI_Win_unlock_all(window_);
  PMPI_Win_free(&window_);
}

}  // namespace papaya
