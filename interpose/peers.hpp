// For whom a rank waits in a receive, or for a request: the other side of its message, as a rank of MPI_COMM_WORLD.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace papaya::peers {

inline constexpr std::int32_t unknown = -1;

// How many communicators this process has begun to free. One that was freed since a Peer was made may be that of the
// Peer: its handle has no meaning then, or another one.
extern std::atomic<std::uint64_t> freed;

// The other side of a message.
struct Peer {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = MPI_PROC_NULL;        // in `comm`; may be MPI_ANY_SOURCE
  std::uint64_t freed_before = 0;  // when `comm` was known to be there

  // Of a call that has not begun: another thread may free the communicator while it waits.
  static Peer now(MPI_Comm comm, int rank) noexcept { return {comm, rank, freed.load(std::memory_order_relaxed)}; }
  bool is_known() const noexcept { return rank >= 0 || rank == MPI_ANY_SOURCE; }
  // Of a message that was received from any: whom its status names, if it is not ignored.
  Peer resolved(const MPI_Status* status) const noexcept {
    const bool is_told =
        rank == MPI_ANY_SOURCE && status != nullptr && status != MPI_STATUS_IGNORE && status != MPI_STATUSES_IGNORE;
    return is_told ? Peer{comm, status->MPI_SOURCE, freed_before} : *this;
  }
  bool operator==(const Peer&) const = default;
};

// Its rank in MPI_COMM_WORLD. To be asked after a long wait: it may look into MPI's groups.
std::int32_t world_rank(const Peer& peer) noexcept;
// A communicator is about to be freed: nobody is known any more of a Peer made before.
void forget_communicators() noexcept;

// Of a handle, which is a pointer in one MPI and a number in another.
template <class Handle>
std::uint64_t key_of(Handle handle) noexcept {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return static_cast<std::uint32_t>(handle);
}
template <class Handle>
Handle handle_of(std::uint64_t key) noexcept {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<Handle>(key);
  else
    return static_cast<Handle>(static_cast<std::uint32_t>(key));
}

// The other sides of requests, or of matched messages, by handle: as many as fit, each in its one place, where a later
// one replaces it. Threads use it at once without a lock: what they tear is not known to any of them.
template <class Handle>
class Table {
 public:
  // A handle that is kept is that of a persistent request, which has its peer until it is freed.
  void put(Handle handle, const Peer& peer, bool is_kept = false) noexcept {
    if (!peer.is_known()) return forget(handle);
    const std::uint64_t key = key_of(handle);
    Entry& entry = place_of(key);
    const std::uint64_t comm = key_of(peer.comm);
    const std::uint64_t rank = static_cast<std::uint32_t>(peer.rank) | std::uint64_t{is_kept} << 32;
    store(entry.key, key);
    store(entry.comm, comm);
    store(entry.rank, rank);
    store(entry.check, check_of(key, comm, rank, peer.freed_before));
  }
  Peer find(Handle handle) const noexcept {
    const std::uint64_t key = key_of(handle);
    const Entry& entry = entries_[index_of(key)];
    const std::uint64_t comm = load(entry.comm);
    const std::uint64_t rank = load(entry.rank);
    const std::uint64_t freed_before = load(freed);
    if (load(entry.key) != key || load(entry.check) != check_of(key, comm, rank, freed_before)) return {};
    return {handle_of<MPI_Comm>(comm), static_cast<int>(static_cast<std::uint32_t>(rank)), freed_before};
  }
  // The same, and it completes.
  Peer take(Handle handle) noexcept {
    const Peer peer = find(handle);
    end(handle);
    return peer;
  }
  // It has completed: the handle may be given to what does not come by here.
  void end(Handle handle) noexcept {
    const Entry& entry = entries_[index_of(key_of(handle))];
    if (load(entry.rank) >> 32 == 0) forget(handle);
  }
  void forget(Handle handle) noexcept {
    if (Entry& entry = place_of(key_of(handle)); load(entry.key) == key_of(handle)) store(entry.key, 0);
  }
  // Some have completed, and it is not known which.
  void forget_all() noexcept { epoch_.fetch_add(1, std::memory_order_relaxed); }

 private:
  // The check tells whether a reader has all words of one `put`, of this epoch, and no communicator was freed since:
  // both numbers only grow, and so does their sum. Relaxed: nothing else depends on them.
  struct alignas(32) Entry {
    std::atomic<std::uint64_t> key, comm, rank, check;
  };
  static constexpr std::size_t places = 256;

  static std::uint64_t load(const std::atomic<std::uint64_t>& word) noexcept {
    return word.load(std::memory_order_relaxed);
  }
  static void store(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
    word.store(value, std::memory_order_relaxed);
  }
  static std::size_t index_of(std::uint64_t key) noexcept { return key * 0x9e3779b97f4a7c15u >> 56; }
  Entry& place_of(std::uint64_t key) noexcept { return entries_[index_of(key)]; }
  std::uint64_t check_of(std::uint64_t key, std::uint64_t comm, std::uint64_t rank,
                         std::uint64_t freed_before) const noexcept {
    return (key ^ comm * 3 ^ rank * 0x9e3779b97f4a7c15u) + load(epoch_) + freed_before;
  }

  std::array<Entry, places> entries_{};
  std::atomic<std::uint64_t> epoch_{1};
};

extern Table<MPI_Request> requests;
extern Table<MPI_Message> messages;  // that a probe has matched
// Calls are no longer followed: handles may get another meaning.
void forget_requests() noexcept;

}  // namespace papaya::peers
