#include "interpose/peers.hpp"

#include <mutex>

#include "interpose/world.hpp"

namespace papaya::peers {

namespace {

struct Known {
  MPI_Comm comm;
  int rank;
  std::int32_t world;
  bool is_used;
};

constexpr std::size_t places = 256;

std::mutex mutex;  // guards
Known known[places];

std::size_t place_of(const Peer& peer) noexcept {
  return (key_of(peer.comm) * 31 + static_cast<std::uint32_t>(peer.rank)) * 0x9e3779b97f4a7c15u >> 56;
}

std::int32_t look_up(const Peer& peer) noexcept {
  int is_inter = 0;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  if (PMPI_Comm_test_inter(peer.comm, &is_inter) != MPI_SUCCESS) return unknown;
  if ((is_inter != 0 ? PMPI_Comm_remote_group(peer.comm, &group) : PMPI_Comm_group(peer.comm, &group)) != MPI_SUCCESS)
    return unknown;
  int rank = MPI_UNDEFINED;
  if (PMPI_Comm_group(world::comm(), &world) == MPI_SUCCESS) {
    PMPI_Group_translate_ranks(group, 1, &peer.rank, world, &rank);
    PMPI_Group_free(&world);
  }
  PMPI_Group_free(&group);
  return rank == MPI_UNDEFINED ? unknown : rank;
}

}  // namespace

constinit std::atomic<std::uint64_t> freed{0};
constinit Table<MPI_Request> requests;
constinit Table<MPI_Message> messages;

std::int32_t world_rank(const Peer& peer) noexcept {
  if (peer.rank < 0) return unknown;
  if (peer.comm == MPI_COMM_WORLD) return peer.rank;
  const std::lock_guard lock(mutex);  // until it is looked up no communicator is freed
  if (peer.freed_before != freed.load(std::memory_order_relaxed)) return unknown;
  Known& row = known[place_of(peer)];
  if (!row.is_used || row.comm != peer.comm || row.rank != peer.rank) row = {peer.comm, peer.rank, look_up(peer), true};
  return row.world;
}

void forget_requests() noexcept {
  requests.forget_all();
  messages.forget_all();
}

void forget_communicators() noexcept {
  const std::lock_guard lock(mutex);
  freed.fetch_add(1, std::memory_order_relaxed);
  for (Known& row : known) row.is_used = false;
}

}  // namespace papaya::peers
