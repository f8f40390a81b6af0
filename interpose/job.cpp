#include "interpose/job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "algorithms/transport/mpi/mpi_out_of_band.hpp"
#include "algorithms/transport/shared_out_of_band.hpp"
#include "base/log.hpp"
#include "interpose/background_progress.hpp"
#include "interpose/copy_communicator.hpp"
#include "interpose/world.hpp"

namespace papaya::job {

namespace {

clock::Pair at_load{};
clock::Pair at_load_monotonic{};

// One node, as the roster has shown: its ranks are those of the job.
void take_one_node(Job& job) {
  job.node_of.assign(static_cast<std::size_t>(job.ranks), 0);
  job.rank_on_node = job.rank;
  job.ranks_on_node = job.ranks;
  job.oob_of_node = job.oob;
  // Nothing but papaya's probes is to be on the other one.
  if (!job.selection.replaces_anything() || !copy_communicator(job.world_comm, &job.node_comm))
    job.node_comm = job.world_comm;
  PMPI_Comm_set_errhandler(job.node_comm, MPI_ERRORS_RETURN);
}

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
  job.oob_of_node = std::make_shared<MpiOutOfBand>(node);
  job.rank_on_node = job.oob_of_node->rank();
  job.ranks_on_node = job.oob_of_node->ranks();
  // A node is known by its lowest rank; nodes are numbered in that order.
  int lowest = job.rank;
  job.oob_of_node->broadcast(&lowest, sizeof lowest);
  const std::vector<int> leader_of = job.oob->gather(lowest);
  std::vector<int> leaders(leader_of);
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  job.node_of.resize(leader_of.size());
  for (std::size_t rank = 0; rank < job.node_of.size(); ++rank)
    job.node_of[rank] =
        static_cast<int>(std::lower_bound(leaders.begin(), leaders.end(), leader_of[rank]) - leaders.begin());
  job.nodes = static_cast<int>(leaders.size());
  job.node = job.node_of[static_cast<std::size_t>(job.rank)];
  if (job.nodes == 1) return;
  // The others too, into a communicator that is never used: if papaya held one on some ranks only, the lowest free
  // context id would differ between ranks, and Open MPI's agreement on those of the program's communicators would take
  // more rounds.
  PMPI_Comm_split(job.world_comm, job.leads() ? 0 : 1, job.rank, job.leads() ? &job.leader_comm : &job.follower_comm);
}

// One clock for the node: the same source, origin and rate on all its ranks.
void agree_on_clock(Job& job) {
  const bool trusted = job.oob_of_node->least(clock::counter_is_trusted() ? 1 : 0) != 0;
  clock::choose(trusted);
  const clock::Pair& first = trusted ? at_load : at_load_monotonic;
  const clock::Pair now = clock::read_pair();
  struct {
    double ns_per_tick;
    std::uint64_t ticks;
    std::uint64_t monotonic_ns;
    std::int64_t unix_ns;
  } clock_of_node{clock::ns_per_tick(first, now), now.ticks, now.monotonic_ns, clock::unix_ns()};
  job.oob_of_node->broadcast(&clock_of_node, sizeof clock_of_node);
  job.load_ticks = first.ticks;
  job.origin = {clock_of_node.ticks, clock_of_node.monotonic_ns};
  job.origin_unix_ns = clock_of_node.unix_ns;
  job.ns_per_tick = clock_of_node.ns_per_tick;
}

// The node's cores, and where its ranks run.
void look_at_node(Job& job) {
  const auto map = std::make_unique<topology::Map>();
  if (job.leads()) topology::make_map(*map);
  job.oob_of_node->broadcast(map.get(), sizeof *map);
  struct Entry {
    int rank;
    topology::Share share;
  };
  const std::vector<Entry> entries = job.oob_of_node->gather(Entry{job.rank, topology::allowed(*map)});
  topology::CoreSet all{};
  for (const Entry& e : entries)
    for (std::size_t i = 0; i < std::size(all.words); ++i) all.words[i] |= e.share.cores.words[i];
  if (std::any_of(entries.begin(), entries.end(),
                  [&](const Entry& e) { return !(e.share.location == entries[0].share.location); })) {
    job.locations.resize(static_cast<std::size_t>(job.ranks));
    for (const Entry& e : entries) job.locations[static_cast<std::size_t>(e.rank)] = e.share.location;
  }
  job.cores = topology::count(all);
  job.oversubscribed = job.oob->most(job.ranks_on_node > job.cores ? 1 : 0) != 0;
}

void copy_world(Job& job) {
  if (job.world_comm != MPI_COMM_NULL) return;
  world::copy(&job.world_comm);
  PMPI_Comm_set_errhandler(job.world_comm, MPI_ERRORS_RETURN);
}

}  // namespace

void note_clock() noexcept {
  clock::choose(false);
  at_load_monotonic = clock::read_pair();
  clock::choose(clock::counter_is_trusted());
  at_load = clock::read_pair();
}

void open_out_of_band(Job& job, const presence::Node& node, void (*progress)()) {
  const auto has_all = [&] {
    return node.out_of_band != nullptr && node.mine != nullptr && node.rank == job.rank &&
           node.ranks == static_cast<std::uint32_t>(job.ranks);
  };
  // The communicator that began the job may be another one on another rank.
  if (world::is_of_sessions()) copy_world(job);
  if (has_all())
    job.oob = std::make_shared<SharedOutOfBand>(node.out_of_band, job.rank, job.ranks, progress);
  else
    job.oob = std::make_shared<MpiOutOfBand>(world::comm());
  job.is_one_node = has_all();
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
  job.settings = Settings::deserialize(job.oob->broadcast(job.settings.serialize()));
  tuning_text = job.oob->broadcast(tuning_text);
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
  copy_world(job);
  background_progress::query_thread(&job.thread_level);
  if (!job.is_one_node) job.oob = std::make_shared<MpiOutOfBand>(job.world_comm);
  if (job.is_one_node && job.settings.number(Variable::node_size) == 0)
    take_one_node(job);
  else
    split_by_node(job);
  agree_on_clock(job);
  look_at_node(job);
}

void lower_limit(Job& job, std::uint64_t here) {
  const std::uint64_t least = job.oob->least(here);
  if (least >= job.shm_limit) return;
  job.shm_limit = static_cast<std::size_t>(least);
  job.settings.set(Variable::shm_limit, fmt::format("{}", least));
}

void free_communicators(Job& job) noexcept {
  if (job.node_comm == job.world_comm) job.node_comm = MPI_COMM_NULL;
  for (MPI_Comm* comm : {&job.leader_comm, &job.follower_comm, &job.node_comm, &job.world_comm})
    if (*comm != MPI_COMM_NULL) PMPI_Comm_free(comm);
}

}  // namespace papaya::job
