#include "interpose/job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "interpose/background_progress.hpp"
#include "interpose/copy_communicator.hpp"
#include "interpose/measure.hpp"

namespace papaya::job {

namespace {

constexpr double network_budget_ms = 5;

clock::Pair at_load{};
clock::Pair at_load_monotonic{};

// Which ranks share a node, and the communicators for it.
void split_by_node(Job& job) {
  MPI_Comm node = MPI_COMM_NULL;
  PMPI_Comm_split_type(job.world_comm, MPI_COMM_TYPE_SHARED, job.rank, MPI_INFO_NULL, &node);
  if (const auto size = static_cast<int>(job.settings.number(Variable::node_size)); size > 0) {
    int index = 0;
    PMPI_Comm_rank(node, &index);
    MPI_Comm part = MPI_COMM_NULL;
    PMPI_Comm_split(node, index / size, job.rank, &part);
    PMPI_Comm_free(&node);
    node = part;
  }
  job.node_comm = node;
  PMPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
  // A node is known by its lowest rank; nodes are numbered in that order.
  int lowest = job.rank;
  PMPI_Bcast(&lowest, 1, MPI_INT, 0, node);
  std::vector<int> leader_of(static_cast<std::size_t>(job.ranks));
  PMPI_Allgather(&lowest, 1, MPI_INT, leader_of.data(), 1, MPI_INT, job.world_comm);
  std::vector<int> leaders(leader_of);
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  job.node_of.resize(leader_of.size());
  for (std::size_t rank = 0; rank < job.node_of.size(); ++rank)
    job.node_of[rank] =
        static_cast<int>(std::lower_bound(leaders.begin(), leaders.end(), leader_of[rank]) - leaders.begin());
  job.nodes = static_cast<int>(leaders.size());
  job.node = job.node_of[static_cast<std::size_t>(job.rank)];
  // The others too, into a communicator that is never used: if papaya held one on some ranks only, the lowest free
  // context id would differ between ranks, and Open MPI's agreement on those of the program's communicators would take
  // more rounds.
  const bool leads = lowest == job.rank;
  PMPI_Comm_split(job.world_comm, leads ? 0 : 1, job.rank, leads ? &job.leader_comm : &job.follower_comm);
  PMPI_Comm_rank(node, &job.rank_on_node);
  PMPI_Comm_size(node, &job.ranks_on_node);
}

// One clock for the node: the same source, origin and rate on all its ranks.
void agree_on_clock(Job& job) {
  int trusted = clock::counter_is_trusted() ? 1 : 0;
  int all = 0;
  PMPI_Allreduce(&trusted, &all, 1, MPI_INT, MPI_MIN, job.node_comm);
  clock::choose(all != 0);
  const clock::Pair& first = all != 0 ? at_load : at_load_monotonic;
  const clock::Pair now = clock::read_pair();
  struct {
    double ns_per_tick;
    std::uint64_t ticks;
    std::uint64_t monotonic_ns;
    std::int64_t unix_ns;
  } clock_of_node{clock::ns_per_tick(first, now), now.ticks, now.monotonic_ns, clock::unix_ns()};
  PMPI_Bcast(&clock_of_node, sizeof clock_of_node, MPI_BYTE, 0, job.node_comm);
  job.load_ticks = first.ticks;
  job.origin = {clock_of_node.ticks, clock_of_node.monotonic_ns};
  job.origin_unix_ns = clock_of_node.unix_ns;
  job.ns_per_tick = clock_of_node.ns_per_tick;
}

// The node's cores, and where its ranks run.
void look_at_node(Job& job) {
  topology::Share mine = topology::allowed();
  topology::CoreSet all{};
  PMPI_Allreduce(mine.cores.words, all.words, topology::CoreSet::capacity / 64, MPI_UINT64_T, MPI_BOR, job.node_comm);
  struct Entry {
    int rank;
    topology::Location location;
  };
  const Entry entry{job.rank, mine.location};
  std::vector<Entry> entries(static_cast<std::size_t>(job.ranks_on_node));
  PMPI_Allgather(&entry, sizeof entry, MPI_BYTE, entries.data(), sizeof entry, MPI_BYTE, job.node_comm);
  if (std::any_of(entries.begin(), entries.end(),
                  [&](const Entry& e) { return !(e.location == entries[0].location); })) {
    job.locations.resize(static_cast<std::size_t>(job.ranks));
    for (const Entry& e : entries) job.locations[static_cast<std::size_t>(e.rank)] = e.location;
  }
  job.cores = topology::count(all);
  int oversubscribed = job.ranks_on_node > job.cores ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &oversubscribed, 1, MPI_INT, MPI_MAX, job.world_comm);
  job.oversubscribed = oversubscribed != 0;
}

// What algorithms between nodes might take (tuning::Selection::candidates), the same on all ranks.
void measure_network(Job& job) {
  if (job.nodes == 1 || job.adapt_share == 0 || job.adapt_exactly) return;
  std::uint64_t ns[measure::alpha_size_count]{};
  if (job.leader_comm != MPI_COMM_NULL) measure::message_times(job.leader_comm, 1, network_budget_ms, ns);
  measure::meet_asleep(job.world_comm);  // the others leave the two that measure the cores
  PMPI_Bcast(ns, measure::alpha_size_count, MPI_UINT64_T, 0, job.world_comm);
  for (int i = 0; i < measure::alpha_size_count; ++i) job.network.add(measure::alpha_sizes[i], ns[i]);
  if (job.rank == 0 && !job.network.empty())
    log::info(fmt::format("a message between two nodes takes {:.1f} us, one of 1 MiB {:.0f} us.",
                          job.network.ns(0) * 1e-3, job.network.ns(1 << 20) * 1e-3));
}

}  // namespace

void note_clock() noexcept {
  at_load_monotonic = clock::read_pair();
  clock::choose(clock::counter_is_trusted());
  at_load = clock::read_pair();
}

std::string broadcast(std::string text, MPI_Comm comm) {
  std::uint64_t length = text.size();
  PMPI_Bcast(&length, 1, MPI_UINT64_T, 0, comm);
  text.resize(length);
  if (length != 0) PMPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, comm);
  return text;
}

void agree_on_settings(Job& job) {
  std::vector<std::string> warnings;
  std::string tuning_text;
  if (job.rank == 0) {
    job.settings = Settings::from_environment(environ, warnings);
    if (const std::string_view path = job.settings.text(Variable::tuning); !path.empty()) {
      std::string problem;
      tuning_text = tuning::load(std::string(path), problem);
      if (!problem.empty()) {
        warnings.push_back(fmt::format("PAPAYA_TUNING={}: {}; using the built-in table.", path, problem));
        job.settings.reset(Variable::tuning);
      }
    }
  }
  job.settings = Settings::deserialize(broadcast(job.settings.serialize(), MPI_COMM_WORLD));
  tuning_text = broadcast(tuning_text, MPI_COMM_WORLD);
  job.selection = tuning::Selection(job.settings, tuning_text, warnings);
  job.arrival_order = job.settings.text(Variable::order) == "arrival";
  job.adapt_share = job.settings.number(Variable::adapt);
  job.adapt_exactly = job.settings.text(Variable::adapt) == "exact";
  job.verify_every = static_cast<std::uint64_t>(job.settings.number(Variable::verify));
  job.shm_limit = static_cast<std::size_t>(job.settings.number(Variable::shm_limit));
  log::set_level(log::level_of(job.settings.text(Variable::log)));
  if (job.rank == 0)
    for (const std::string& warning : warnings) log::warn(warning);
}

void find_nodes(Job& job) {
  copy_communicator(MPI_COMM_WORLD, &job.world_comm);
  PMPI_Comm_set_errhandler(job.world_comm, MPI_ERRORS_RETURN);
  background_progress::query_thread(&job.thread_level);
  split_by_node(job);
  agree_on_clock(job);
  look_at_node(job);
  measure_network(job);
}

void lower_limit(Job& job, std::uint64_t here) {
  std::uint64_t least = here;
  PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, job.world_comm);
  if (least >= job.shm_limit) return;
  job.shm_limit = static_cast<std::size_t>(least);
  job.settings.set(Variable::shm_limit, fmt::format("{}", least));
}

void free_communicators(Job& job) noexcept {
  for (MPI_Comm* comm : {&job.leader_comm, &job.follower_comm, &job.node_comm, &job.world_comm})
    if (*comm != MPI_COMM_NULL) PMPI_Comm_free(comm);
}

}  // namespace papaya::job
