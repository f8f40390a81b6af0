#include "interpose/between_nodes.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "algorithms/transport/mpi/mpi_transport.hpp"
#include "base/log.hpp"
#include "base/memory.hpp"
#include "interpose/measure.hpp"

namespace papaya {

namespace {

bool is_loaded(const char* library) noexcept {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  dlclose(handle);
  return true;
}

constexpr std::size_t least_between_nodes = 65536;  // bytes for a rank
constexpr double network_budget_ms = 5;

}  // namespace

void BetweenNodes::start(const Job& job, const char* folder) {
  job_ = &job;
  folder_ = folder;
  is_done_ = true;
  if (job.nodes == 1) return;
  // Named, if only to be `auto`, it is wanted for algorithms that are selected later.
  int is_named = job.selection.works_across_nodes() || std::getenv("PAPAYA_TRANSPORT") != nullptr ? 1 : 0;
  PMPI_Bcast(&is_named, 1, MPI_INT, 0, job.world_comm);
  may_be_tried_ = job.adapt_share != 0 && job.selection.replaces_anything();
  const bool is_asked_for = may_be_tried_ && !job.adapt_exactly;
  if (is_named != 0 || is_asked_for) open(UcxEnvironment::set_for_a_moment, is_named != 0);
  if (is_asked_for) measure();
  was_ready_at_start_ = is_measured_;
  if (!may_be_tried_ || is_asked_for) return;
  // Threads that call at once may do so on several communicators, in another order on each rank: none can open it.
  is_done_ = job.oob->most(job.thread_level == MPI_THREAD_MULTIPLE ? 1 : 0) != 0;
  may_be_tried_ = !is_done_;
}

void BetweenNodes::make_ready() {
  if (is_done_) return;
  is_done_ = true;
  if (!was_opened_) open(UcxEnvironment::as_it_is, false);
  measure();
}

void BetweenNodes::open(UcxEnvironment environment, bool is_named) {
  was_opened_ = true;
  const Job& job = *job_;
  const std::string_view wanted = job.settings.text(Variable::transport);
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
  has_too_little_ = bytes < least_between_nodes;
  if (has_too_little_) return;
  PMPI_Comm_dup(job.world_comm, &comm_);
  int* most_tag = nullptr;
  int is_found = 0;
  PMPI_Comm_get_attr(comm_, MPI_TAG_UB, static_cast<void*>(&most_tag), &is_found);
  largest_tag_ = is_found == 0 ? -1 : *most_tag;
  // An MPI that stands on UCX would send the same messages by more calls. One that does not may know a network that UCX
  // does not.
  int takes_ucx = wanted == "ucx" || (wanted == "auto" && is_loaded("libucp.so.0")) ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &takes_ucx, 1, MPI_INT, MPI_MIN, job.world_comm);
  std::string why;
  if (takes_ucx != 0) {
    transport_ = UcxTransport::open(job.world_comm, bytes, folder_, why, OnFailure::end_job, environment);
    if (transport_ == nullptr && job.rank == 0 && wanted == "ucx")
      log::warn(fmt::format("PAPAYA_TRANSPORT=ucx: {}; using MPI's messages.", why));
    if (transport_ == nullptr) log::debug(fmt::format("UCX between nodes: {}", why));
  }
  if (transport_ == nullptr) transport_ = MpiTransport::open(job.world_comm, bytes);
  published_.store(transport_.get(), std::memory_order_release);
}

// What algorithms between nodes might take (tuning::Selection::candidates), the same on all ranks.
void BetweenNodes::measure() {
  const Job& job = *job_;
  if (transport_ == nullptr) return;
  std::uint64_t ns[measure::alpha_size_count]{};
  if (job.leader_comm != MPI_COMM_NULL) measure::message_times(job.leader_comm, 1, network_budget_ms, ns);
  job.oob->meet();  // asleep: the others leave the two that measure the cores
  PMPI_Bcast(ns, measure::alpha_size_count, MPI_UINT64_T, 0, job.world_comm);
  for (int i = 0; i < measure::alpha_size_count; ++i) network_.add(measure::alpha_sizes[i], ns[i]);
  is_measured_ = !network_.empty();
  if (job.rank == 0 && is_measured_)
    log::info(fmt::format("a message between two nodes takes {:.1f} us, one of 1 MiB {:.0f} us.", network_.ns(0) * 1e-3,
                          network_.ns(1 << 20) * 1e-3));
}

void BetweenNodes::close() noexcept {
  published_.store(nullptr, std::memory_order_relaxed);
  if (transport_ != nullptr) transport_->close();
  if (comm_ != MPI_COMM_NULL) PMPI_Comm_free(&comm_);
}

}  // namespace papaya
