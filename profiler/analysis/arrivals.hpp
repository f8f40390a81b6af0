// When the ranks of one call arrived and left, on one clock, and what follows from that alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Kept from call to call, as its vectors are. Index i is the i-th of the call's ranks, in the order of the
// communicator.
struct Arrivals {
  std::vector<std::uint32_t> files;
  std::vector<std::int32_t> nodes;
  std::vector<double> arrivals_ns;
  std::vector<double> exits_ns;        // NaN: still inside
  std::vector<double> waits_ns;        // to its earliest legal exit
  std::vector<std::size_t> culprits;   // whose arrival that is
  std::vector<double> caused_ns;       // waiting of others for it
  std::vector<double> longest_ns;      // the longest of these waits
  std::vector<std::uint32_t> waiters;  // how many there are

  Collective collective{};
  std::uint64_t bytes = 0;  // the most that a rank passed
  bool is_across_nodes = false;
  Order order;
  WorstAverage cluster;
  WorstAverage node;               // mean over the nodes that have two ranks or more of it,
  std::size_t nodes_compared = 0;  // so many
  double median_computed_ns = 0;   // by its ranks, since the communicator's call before

  std::size_t size() const { return arrivals_ns.size(); }
  // What its ranks, none of which is still inside, were longer in it than they had to be.
  double excess_ns() const;
  // For whom the longest wait was; if nobody waited, who arrived last.
  std::size_t most_waited_for() const;
  // Of a call whose arrivals are known.
  void take(const Run& run, const GroupCall& call);
  // The same without imbalances within nodes and medians.
  void take_waits(const Run& run, const GroupCall& call);

 private:
  void take_times(const Run& run, const GroupCall& call);
  void compare_within_nodes(const Roles& roles);
  WorstAverage imbalance_among(const Roles& roles, std::span<const std::size_t> ranks);
  void find_waits(const Roles& roles);
  void resize(std::size_t size);

  std::vector<std::size_t> by_node_;
  std::vector<double> node_waits_ns_;
  std::vector<double> sorted_ns_;
};

}  // namespace papaya::report
