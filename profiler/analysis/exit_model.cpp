#include "profiler/analysis/exit_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/reason.hpp"

namespace papaya::report {
namespace {

// A core goes to another rank in about so long.
constexpr double switch_ns = 5000;

// Reasons for which a call stays with MPI that a setting can lift.
bool is_open(std::string_view id) {
  for (const Reason one : {Reason::none, Reason::selected, Reason::table, Reason::few_calls, Reason::several_nodes,
                           Reason::outside_ranges})
    if (id == id_of(one)) return true;
  return false;
}

// The algorithms that a call of so many bytes is modelled with, the preferred first; null: no more.
ReplayedCall::Models models_for(Collective collective, bool across_nodes, std::uint64_t bytes) {
  ReplayedCall::Models found{};
  std::size_t count = 0;
  for (const CostModel& model : cost_models()) {
    if (model.collective != collective || (model.network_ns != nullptr) != across_nodes || bytes > model.most_bytes)
      continue;
    found[count++] = &model;
    if (!across_nodes || count == found.size()) break;
  }
  return found;
}

}  // namespace

ExitModel::ExitModel(const Run& run) : run_(run), alpha_(run.files) {
  for (const RankFile& file : run.files) {
    if (file.header.node_ranks > file.header.cores && file.header.cores > 0)
      crowding_ = std::max(crowding_, static_cast<double>(file.header.node_ranks) / file.header.cores);
    nodes_of_files_.push_back(file.header.node);
    auto& open = open_reasons_.emplace_back();
    for (std::size_t r = 0; r < open.size(); ++r) open[r] = is_open(file.texts->reason_ids[r]);
  }
}

bool ExitModel::take(const GroupCall& recorded) {
  call_.roles = roles_of(recorded);
  call_.count = recorded.sightings.size();
  call_.bytes = 0;
  call_.open = true;
  call_.files.clear();
  call_.arrivals_ns.clear();
  call_.exits_ns.clear();
  for (const Sighting& sighting : recorded.sightings) {
    if (std::isnan(sighting.exit_ns)) return false;
    call_.bytes = std::max(call_.bytes, sighting.bytes);
    call_.open = call_.open && sighting.algorithm == 0 && open_reasons_[sighting.file][sighting.reason];
    call_.files.push_back(sighting.file);
    call_.arrivals_ns.push_back(sighting.arrival_ns);
    call_.exits_ns.push_back(sighting.exit_ns);
  }
  find_nodes();
  const bool rooted =
      need_of(call_.roles.collective) == Need::root || need_of(call_.roles.collective) == Need::root_needs_all;
  const bool across = call_.nodes.size() > 1;
  call_.models = models_for(call_.roles.collective, across, call_.bytes);
  call_.open = call_.open && call_.models[0] != nullptr && (!rooted || call_.roles.root < call_.count) &&
               alpha_.measured(false) && (!across || alpha_.measured(true));
  if (call_.open) measure();
  legal_.resize(call_.count);
  earliest_exits(call_.roles, call_.arrivals_ns, legal_);
  return true;
}

void ExitModel::find_nodes() {
  const auto node_of = [&](std::size_t place) { return nodes_of_files_[call_.files[place]]; };
  by_node_.resize(call_.count);
  std::iota(by_node_.begin(), by_node_.end(), std::size_t{0});
  const auto is_before = [&](std::size_t a, std::size_t b) { return node_of(a) < node_of(b); };
  if (!std::is_sorted(by_node_.begin(), by_node_.end(), is_before))
    std::stable_sort(by_node_.begin(), by_node_.end(), is_before);
  call_.nodes.clear();
  for (std::size_t begin = 0, end = 0; begin < call_.count; begin = end) {
    while (end < call_.count && node_of(by_node_[end]) == node_of(by_node_[begin])) ++end;
    call_.nodes.push_back(std::span(by_node_).subspan(begin, end - begin));
  }
}

void ExitModel::measure() {
  call_.node_latency_ns = alpha_.ns(0, false);
  call_.copy_ns = std::max(0.0, alpha_.ns(call_.bytes, false) - call_.node_latency_ns) / 2;
  if (call_.nodes.size() < 2) return;
  std::size_t largest = 0;
  for (const auto& node : call_.nodes) largest = std::max(largest, node.size());
  const NetworkCall network{.nodes = static_cast<double>(call_.nodes.size()),
                            .ranks = static_cast<double>(call_.count),
                            .node_ranks = static_cast<double>(largest),
                            .latency_ns = alpha_.ns(0, true),
                            .message_ns = alpha_.ns(call_.bytes, true)};
  for (std::size_t k = 0; k < most_candidates; ++k)
    if (call_.models[k] != nullptr) call_.network_ns[k] = call_.models[k]->network_ns(network);
}

void ExitModel::exits(Way way, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  if (way == Way::as_recorded || way == Way::no_excess) {
    earliest_exits(call_.roles, arrivals_ns, exits_ns);
    if (way == Way::no_excess) return;
    for (std::size_t i = 0; i < call_.count; ++i) exits_ns[i] += call_.exits_ns[i] - legal_[i];
    return;
  }
  if (call_.nodes.size() > 1) {
    model_across(way, arrivals_ns, exits_ns);
  } else {
    switch (call_.roles.collective) {
      case Collective::allreduce:
        take_out(reduced(call_.nodes[0], arrivals_ns) + call_.node_latency_ns, 1, exits_ns);
        break;
      case Collective::reduce:
        for (std::size_t i = 0; i < call_.count; ++i) exits_ns[i] = arrivals_ns[i] + call_.copy_ns;
        exits_ns[call_.roles.root] = reduced(call_.nodes[0], arrivals_ns) + call_.node_latency_ns + call_.copy_ns;
        break;
      case Collective::bcast: {
        const double there = arrivals_ns[call_.roles.root] + call_.copy_ns;
        for (std::size_t i = 0; i < call_.count; ++i)
          exits_ns[i] = std::max(arrivals_ns[i], there + call_.node_latency_ns) + call_.copy_ns;
        exits_ns[call_.roles.root] = there;
        break;
      }
      case Collective::gather:
      case Collective::scatter:
        model_rooted_blocks(arrivals_ns, exits_ns);
        break;
      case Collective::barrier:
        take_out(*std::max_element(arrivals_ns.begin(), arrivals_ns.end()) + call_.node_latency_ns, 0, exits_ns);
        break;
      default:
        model_blocks(arrivals_ns, exits_ns);
        break;
    }
  }
  if (crowding_ == 0) return;
  // Who waited longer than a switch takes gave its core away.
  for (std::size_t i = 0; i < call_.count; ++i)
    if (exits_ns[i] - arrivals_ns[i] > switch_ns) exits_ns[i] += switch_ns * crowding_;
}

void ExitModel::take_out(double from, double copies, std::span<double> exits_ns) const {
  for (double& exit : exits_ns) exit = from + copies * call_.copy_ns;
}

// When the operands of a node's ranks are one.
double ExitModel::reduced(std::span<const std::size_t> node, std::span<const double> arrivals_ns) {
  const auto ranks = static_cast<double>(node.size());
  const std::int32_t cores = run_.files[call_.files[node[0]]].header.cores;
  const double workers = std::max(1.0, std::min(ranks, static_cast<double>(cores)));
  double last_ns = std::numeric_limits<double>::lowest();
  for (const std::size_t i : node) last_ns = std::max(last_ns, arrivals_ns[i]);
  // Who came so early that all operands could have been combined since does not matter.
  const double since_ns = last_ns - ranks * call_.copy_ns / workers;
  sorted_.clear();
  for (const std::size_t i : node)
    if (arrivals_ns[i] >= since_ns) sorted_.push_back(arrivals_ns[i]);
  std::sort(sorted_.begin(), sorted_.end());
  double ready = last_ns;
  for (std::size_t k = 0; k < sorted_.size(); ++k) {
    const auto left = static_cast<double>(sorted_.size() - k);
    ready = std::max(ready, sorted_[k] + call_.copy_ns + left * call_.copy_ns / workers);
  }
  return ready;
}

// Blocks of every rank for every rank, on one node.
void ExitModel::model_blocks(std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  sorted_.assign(arrivals_ns.begin(), arrivals_ns.end());
  std::sort(sorted_.begin(), sorted_.end());
  const double others = static_cast<double>(call_.count - 1);
  // A reduction's operand has a block for each rank; the message of a reduce_scatter is all of it.
  const bool is_operand = call_.roles.collective == Collective::reduce_scatter;
  const bool is_for_each = call_.roles.collective == Collective::alltoall ||
                           call_.roles.collective == Collective::reduce_scatter_block || is_operand;
  const double block_ns = is_operand ? call_.copy_ns / static_cast<double>(call_.count) : call_.copy_ns;
  const double given = (is_for_each ? others : 1) * block_ns;
  double last = 0;
  for (std::size_t k = 0; k < sorted_.size(); ++k) {
    const double left = std::min(others, static_cast<double>(sorted_.size() - k));
    const double done = sorted_[k] + given + call_.node_latency_ns + left * block_ns;
    last = k == 0 ? done : std::max(last, done);
  }
  for (std::size_t i = 0; i < call_.count; ++i)
    exits_ns[i] = std::max(last, arrivals_ns[i] + given + others * block_ns);
}

// A block of every rank for the root, or of the root for every rank, on one node.
void ExitModel::model_rooted_blocks(std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  const std::size_t root = call_.roles.root;
  const double root_arrives = arrivals_ns[root];
  const auto copies_at_root = static_cast<double>(call_.count - 1) * call_.copy_ns;
  if (call_.roles.collective == Collective::scatter) {
    // A rank's block is there after half of the others' on average.
    const double there = root_arrives + copies_at_root / 2 + call_.node_latency_ns;
    for (std::size_t i = 0; i < call_.count; ++i) exits_ns[i] = std::max(arrivals_ns[i], there) + call_.copy_ns;
    exits_ns[root] = root_arrives + copies_at_root;
    return;
  }
  sorted_.clear();
  for (std::size_t i = 0; i < call_.count; ++i) {
    exits_ns[i] = arrivals_ns[i] + call_.copy_ns;
    if (i != root) sorted_.push_back(exits_ns[i] + call_.node_latency_ns);
  }
  std::sort(sorted_.begin(), sorted_.end());
  double taken = root_arrives;
  for (const double there : sorted_) taken = std::max(taken, there) + call_.copy_ns;
  exits_ns[root] = taken;
}

void ExitModel::model_across(Way way, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  const double network = call_.network_ns[way == Way::first_candidate ? 0 : 1];
  double ready = std::numeric_limits<double>::lowest();
  for (const auto& node : call_.nodes) ready = std::max(ready, reduced(node, arrivals_ns));
  switch (call_.roles.collective) {
    case Collective::allreduce:
      return take_out(ready + network + call_.node_latency_ns, 1, exits_ns);
    case Collective::reduce:
      for (std::size_t i = 0; i < call_.count; ++i) exits_ns[i] = arrivals_ns[i] + call_.copy_ns;
      for (const auto& node : call_.nodes) exits_ns[node[0]] = std::max(exits_ns[node[0]], reduced(node, arrivals_ns));
      exits_ns[call_.roles.root] = ready + network + call_.copy_ns;
      return;
    case Collective::bcast: {
      const double there = arrivals_ns[call_.roles.root] + call_.copy_ns;
      for (const auto& node : call_.nodes) {
        const bool own = std::find(node.begin(), node.end(), call_.roles.root) != node.end();
        for (const std::size_t i : node)
          exits_ns[i] = std::max(arrivals_ns[i], there + (own ? 0 : network) + call_.node_latency_ns) + call_.copy_ns;
      }
      exits_ns[call_.roles.root] = there;
      return;
    }
    case Collective::barrier:
      return take_out(ready + network + 2 * call_.node_latency_ns, 0, exits_ns);
    default:  // allgather, alltoall
      return take_out(ready + network + call_.node_latency_ns, static_cast<double>(call_.count - 1), exits_ns);
  }
}

}  // namespace papaya::report
