// What algorithms say of their own cost: for the report, which replays recorded calls and knows no algorithm, and for
// trials across nodes, which leave out who cannot win. Whoever registers an algorithm adds its model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "base/collective.hpp"

namespace papaya {

// Of a core and the memory of a node, where only messages between nodes were measured: a processor of today.
inline constexpr double nominal_node_latency_ns = 350;  // of a flag from one core to another
inline constexpr double nominal_copied_bytes_per_ns = 10;
inline constexpr double nominal_reduced_bytes_per_ns = 5;
inline constexpr double nominal_start_ns = 300;  // of a message into the network, for the processor

// A call that spans nodes, with the times of MPI's messages between two of them.
struct NetworkCall {
  double nodes;
  double ranks;
  double node_ranks;  // of the largest node
  double latency_ns;  // of the smallest message
  double message_ns;  // of one of the call's bytes
  double bytes = 0;

  double log2_nodes() const noexcept { return std::ceil(std::log2(nodes)); }
  // What the call's bytes take longer than the smallest message.
  double transfer_ns() const noexcept { return message_ns > latency_ns ? message_ns - latency_ns : 0; }
  // Of the call's bytes, by one core.
  double copy_ns() const noexcept { return bytes / nominal_copied_bytes_per_ns; }
  double reduce_ns() const noexcept { return bytes / nominal_reduced_bytes_per_ns; }
  // A message is begun and has a way before it.
  double start_ns() const noexcept { return std::min(nominal_start_ns, latency_ns / 4); }
};

using NetworkTime = double (*)(const NetworkCall& call);

struct CostModel {
  Collective collective;
  std::string_view algorithm;
  std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max();
  NetworkTime network_ns = nullptr;  // null: for calls on one node
};

void add_cost_model(const CostModel& model);

// By collective; those for one node with the least limit first, those for several by name.
std::span<const CostModel> cost_models() noexcept;

}  // namespace papaya
