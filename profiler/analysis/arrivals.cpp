#include "profiler/analysis/arrivals.hpp"

#include <algorithm>
#include <numeric>

#include "profiler/analysis/computing.hpp"
#include "profiler/analysis/imbalance.hpp"

namespace papaya::report {

void Arrivals::resize(std::size_t size) {
  files.resize(size);
  nodes.resize(size);
  arrivals_ns.resize(size);
  exits_ns.resize(size);
  waits_ns.resize(size);
  culprits.resize(size);
  caused_ns.assign(size, 0.0);
  longest_ns.assign(size, 0.0);
  waiters.assign(size, 0);
}

void Arrivals::take_times(const Run& run, const GroupCall& call) {
  resize(call.sightings.size());
  collective = static_cast<Collective>(call.sightings.front().collective);
  bytes = 0;
  is_across_nodes = false;
  for (std::size_t i = 0; i < size(); ++i) {
    const Sighting& sighting = call.sightings[i];
    files[i] = sighting.file;
    nodes[i] = run.files[sighting.file].header.node;
    arrivals_ns[i] = sighting.arrival_ns;
    exits_ns[i] = sighting.exit_ns;
    bytes = std::max(bytes, sighting.bytes);
    is_across_nodes = is_across_nodes || nodes[i] != nodes[0];
  }
  order = order_of(size(), [&](std::size_t i) { return arrivals_ns[i]; });
}

void Arrivals::take_waits(const Run& run, const GroupCall& call) {
  take_times(run, call);
  find_waits(roles_of(call));
  cluster = imbalance_of(waits_ns);
}

void Arrivals::take(const Run& run, const GroupCall& call) {
  take_waits(run, call);
  sorted_ns_.clear();
  for (const Sighting& sighting : call.sightings) sorted_ns_.push_back(sighting.computed_ns);
  median_computed_ns = lower_median(sorted_ns_);
  compare_within_nodes(roles_of(call));
}

double Arrivals::excess_ns() const {
  double sum_ns = 0;
  for (std::size_t i = 0; i < size(); ++i) sum_ns += exits_ns[i] - arrivals_ns[i] - waits_ns[i];
  return std::max(0.0, sum_ns);
}

std::size_t Arrivals::most_waited_for() const {
  const auto most = std::max_element(longest_ns.begin(), longest_ns.end());
  return *most > 0 ? static_cast<std::size_t>(most - longest_ns.begin()) : order.last;
}

// As if the ranks of a node made the call alone.
void Arrivals::compare_within_nodes(const Roles& roles) {
  node = cluster;
  nodes_compared = 1;
  if (!is_across_nodes) return;
  by_node_.resize(size());
  std::iota(by_node_.begin(), by_node_.end(), std::size_t{0});
  if (!std::is_sorted(nodes.begin(), nodes.end()))
    std::stable_sort(by_node_.begin(), by_node_.end(),
                     [&](std::size_t a, std::size_t b) { return nodes[a] < nodes[b]; });
  node = {0, 0};
  nodes_compared = 0;
  for (std::size_t begin = 0; begin < size();) {
    std::size_t end = begin + 1;
    while (end < size() && nodes[by_node_[end]] == nodes[by_node_[begin]]) ++end;
    if (end - begin >= 2) {
      const WorstAverage own = imbalance_among(roles, std::span(by_node_).subspan(begin, end - begin));
      node.worst_ns += own.worst_ns;
      node.average_ns += own.average_ns;
      ++nodes_compared;
    }
    begin = end;
  }
  if (nodes_compared == 0) return;
  node.worst_ns /= static_cast<double>(nodes_compared);
  node.average_ns /= static_cast<double>(nodes_compared);
}

WorstAverage Arrivals::imbalance_among(const Roles& roles, std::span<const std::size_t> ranks) {
  Roles own{roles.collective, ranks.size()};
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] == roles.root) own.root = i;
  const auto arrival_ns = [&](std::size_t i) { return arrivals_ns[ranks[i]]; };
  node_waits_ns_.resize(ranks.size());
  for_each_wait(own, ranks.size(), arrival_ns,
                [&](std::size_t i, std::size_t until) { node_waits_ns_[i] = arrival_ns(until) - arrival_ns(i); });
  return imbalance_of(node_waits_ns_);
}

// For each member the time from its arrival to its earliest legal exit, and for whom that was.
void Arrivals::find_waits(const Roles& roles) {
  for_each_wait(
      roles, size(), [&](std::size_t i) { return arrivals_ns[i]; },
      [&](std::size_t i, std::size_t until) {
        culprits[i] = until;
        waits_ns[i] = arrivals_ns[until] - arrivals_ns[i];
        if (waits_ns[i] <= 0) return;
        caused_ns[until] += waits_ns[i];
        longest_ns[until] = std::max(longest_ns[until], waits_ns[i]);
        ++waiters[until];
      });
}

}  // namespace papaya::report
