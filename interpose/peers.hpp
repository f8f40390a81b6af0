// For whom a rank waits in a receive, or for a request: the other side of its message, as a rank of MPI_COMM_WORLD.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace papaya::peers {

inline constexpr std::int32_t unknown = -1;

// The other side of a message.
struct Peer {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = MPI_PROC_NULL;  // in `comm`; may be MPI_ANY_SOURCE

  bool is_known() const noexcept { return rank >= 0 || rank == MPI_ANY_SOURCE; }
};

// `rank` of a communicator; of a message that was received from any, what its status says, if it is not ignored.
// To be asked after a long wait: it may look into MPI's groups.
std::int32_t world_rank(Peer peer, const MPI_Status* status) noexcept;
// A communicator has been freed: its handle may get another meaning.
void forget_communicators() noexcept;

// Of a handle, which is a pointer in one MPI and a number in another.
template <class Handle>
std::uint64_t key_of(Handle handle) noexcept {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return static_cast<std::uint32_t>(handle);
}

// Requests that have been started, by handle: as many as fit, each in its one place, where a later one replaces it. It
// must be used by one thread at a time.
class Requests {
 public:
  void start(MPI_Request request, Peer peer) noexcept {
    if (peer.is_known()) place_of(request) = {key_of(request), epoch_, peer};
  }
  Peer find(MPI_Request request) const noexcept {
    const Entry& entry = entries_[index_of(request)];
    return entry.key == key_of(request) && entry.epoch == epoch_ ? entry.peer : Peer{};
  }
  // It has ended: the handle may be given to what does not come by here.
  void end(MPI_Request request) noexcept {
    if (Entry& entry = place_of(request); entry.key == key_of(request)) entry.key = 0;
  }
  // Some have, and it is not known which.
  void end_any() noexcept { ++epoch_; }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint64_t epoch = 0;
    Peer peer;
  };
  static constexpr std::size_t places = 256;

  static std::size_t index_of(MPI_Request request) noexcept { return (key_of(request) * 0x9e3779b97f4a7c15u) >> 56; }
  Entry& place_of(MPI_Request request) noexcept { return entries_[index_of(request)]; }

  std::array<Entry, places> entries_{};
  std::uint64_t epoch_ = 1;
};

}  // namespace papaya::peers
