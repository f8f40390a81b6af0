#include "interpose/between_nodes.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "algorithms/transport/mpi/mpi_transport.hpp"
#include "algorithms/transport/ucx/ucx_transport.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"

namespace papaya {

namespace {

bool is_loaded(const char* library) noexcept {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  dlclose(handle);
  return true;
}

constexpr std::size_t least_between_nodes = 65536;  // bytes for a rank

}  // namespace

void BetweenNodes::open(const Job& job, const char* folder) {
  const std::string_view wanted = job.settings.text(Variable::transport);
  if (job.nodes == 1) return;
  // Named, if only to be `auto`, it is wanted for algorithms that are selected later.
  const bool is_named = job.selection.works_across_nodes() || std::getenv("PAPAYA_TRANSPORT") != nullptr;
  const bool may_be_tried = job.adapt_share != 0 && !job.adapt_exactly && job.selection.replaces_anything();
  int is_wanted = is_named || may_be_tried ? 1 : 0;
  PMPI_Bcast(&is_wanted, 1, MPI_INT, 0, job.world_comm);
  if (!is_wanted) return;
  int most_ranks = job.ranks_on_node;
  PMPI_Allreduce(MPI_IN_PLACE, &most_ranks, 1, MPI_INT, MPI_MAX, job.world_comm);
  std::size_t bytes =
      static_cast<std::size_t>(job.settings.number(Variable::shm_limit)) / static_cast<std::size_t>(most_ranks);
  // The least of all nodes: a rank's share is the same everywhere.
  std::uint64_t room = memory::available() / 4 / static_cast<std::uint64_t>(most_ranks);
  PMPI_Allreduce(MPI_IN_PLACE, &room, 1, MPI_UINT64_T, MPI_MIN, job.world_comm);
  if (bytes > room) {
    bytes = static_cast<std::size_t>(room);
    if (job.rank == 0 && is_named)
      log::warn(
          fmt::format("PAPAYA_SHM_LIMIT={}: ranks of other nodes get {} MiB, a quarter of the memory that is free.",
                      job.settings.text(Variable::shm_limit), bytes * static_cast<std::size_t>(most_ranks) >> 20));
  }
  // Less serves nothing.
  has_too_little = bytes < least_between_nodes;
  if (has_too_little) return;
  PMPI_Comm_dup(job.world_comm, &comm);
  // An MPI that stands on UCX would send the same messages by more calls. One that does not may know a network that UCX
  // does not.
  int takes_ucx = wanted == "ucx" || (wanted == "auto" && is_loaded("libucp.so.0")) ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &takes_ucx, 1, MPI_INT, MPI_MIN, job.world_comm);
  std::string why;
  if (takes_ucx != 0) {
    transport = UcxTransport::open(job.world_comm, bytes, folder, why);
    if (transport != nullptr) return;
    if (job.rank == 0 && wanted == "ucx")
      log::warn(fmt::format("PAPAYA_TRANSPORT=ucx: {}; using MPI's messages.", why));
    log::debug(fmt::format("UCX between nodes: {}", why));
  }
  transport = MpiTransport::open(job.world_comm, bytes);
}

void BetweenNodes::close() noexcept {
  if (transport != nullptr) transport->close();
  if (comm != MPI_COMM_NULL) PMPI_Comm_free(&comm);
}

}  // namespace papaya
