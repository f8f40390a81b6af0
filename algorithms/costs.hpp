// What the cost models of algorithms across nodes (Descriptor::call_ns) have in common: a message of n bytes takes
// alpha + n beta between nodes, as measured; a core copies a byte in c and combines it in gamma, a flag takes L from
// core to core (base/cost_model.hpp). S: the bytes of the call; N: nodes; q: ranks of a node; p: all ranks.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/patterns/dissemination.hpp"
#include "base/cost_model.hpp"

namespace papaya::costs {

// (n-1)/n: what is sent of a message of which each of n participants has a part.
inline double share(double participants) noexcept {
  return (participants - 1) / participants;
}

// Chunks of which two are under way, one between the nodes while cores work on the other: half of the shorter of the
// two times shows.
inline double overlapped_ns(double network, double core, double chunks) noexcept {
  return std::max(network, core) + std::min(network, core) / std::clamp(chunks, 1.0, 2.0);
}

// Recursive halving and doubling (Rabenseifner) among N participants that are no power of two: the first ones give
// their operands to others before it and get results after it.
struct Doubling {
  double steps;      // log2
  double is_folded;  // 1: by two more steps, of whole messages
};
inline Doubling doubling(double participants) noexcept {
  const double steps = std::floor(std::log2(participants));
  return {steps, std::exp2(steps) == participants ? 0.0 : 1.0};
}

// The phases on a node of those algorithms in which one rank, its leader, writes to others. A reduction: short operands
// one after the other, of long ones each rank a slice, which the leader gathers: (q-1)/q S (c + gamma) + S c.
inline double node_reduction_ns(const NetworkCall& call) noexcept {
  constexpr double largest_gathered = 4096;
  if (call.node_ranks <= 1) return 0;
  const double flags = 2 * nominal_node_latency_ns;
  if (call.bytes <= largest_gathered) return flags + call.copy_ns() + (call.node_ranks - 1) * call.reduce_ns();
  return flags + share(call.node_ranks) * (call.copy_ns() + call.reduce_ns()) + call.copy_ns();
}
// The broadcast: the leader copies in, the others copy out.
inline double node_broadcast_ns(const NetworkCall& call) noexcept {
  return call.node_ranks <= 1 ? 0 : 2 * nominal_node_latency_ns + 2 * call.copy_ns();
}

// The latencies of `hops` between ranks drawn at random: those of a node are nearer to each other.
inline double hops_ns(const NetworkCall& call, double hops) noexcept {
  const double away = call.ranks <= 1 ? 1 : (call.ranks - call.node_ranks) / (call.ranks - 1);
  return hops * (away * call.latency_ns + (1 - away) * nominal_node_latency_ns);
}

// n-way dissemination (End et al. 2015) with the best n, the smallest of several, by `ns_of(n)`.
struct Radix {
  int n = 1;
  double ns = 0;
};
template <class NsOf>
Radix best_radix(NsOf&& ns_of) noexcept {
  Radix best{1, ns_of(1)};
  for (int n = 2; n <= patterns::largest_radix; ++n)
    if (const double ns = ns_of(n); ns < best.ns) best = {n, ns};
  return best;
}
// Of notifications between `participants`.
inline Radix dissemination(const NetworkCall& call, double participants) noexcept {
  return best_radix([&](int n) {
    double ns = 0;
    for (double reach = 1; reach < participants; reach *= n + 1)
      ns += call.latency_ns + (std::min<double>(n, std::ceil(participants / reach) - 1) - 1) * call.start_ns();
    return ns;
  });
}

// Down a binomial tree in chunks: each of `levels` steps passes a chunk on as soon as it has come; the first rank's
// link carries the message `levels` times.
inline double binomial_ns(const NetworkCall& call, double levels, double chunk_bytes, double core_ns) noexcept {
  const double chunk = std::min(1.0, call.bytes <= 0 ? 1.0 : chunk_bytes / call.bytes);
  const double first = levels * (call.latency_ns + chunk * (call.transfer_ns() + core_ns));
  return first + (1 - chunk) * std::max(levels * call.transfer_ns(), core_ns);
}

}  // namespace papaya::costs
