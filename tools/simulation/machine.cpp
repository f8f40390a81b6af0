#include "tools/simulation/machine.hpp"

#include <mpi.h>

#include <algorithm>
#include <vector>

namespace papaya::simulation {

namespace s4u = simgrid::s4u;

Nodes nodes_of_ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::vector<s4u::Host*> hosts = s4u::Engine::get_instance()->get_all_hosts();
  const auto own = std::find(hosts.begin(), hosts.end(), s4u::this_actor::get_host());
  const int number = static_cast<int>(own - hosts.begin());
  std::vector<int> numbers(static_cast<std::size_t>(ranks));
  MPI_Allgather(&number, 1, MPI_INT, numbers.data(), 1, MPI_INT, MPI_COMM_WORLD);
  return nodes_by(numbers);
}

double message_s(const s4u::Host& from, const s4u::Host& to, std::size_t bytes, const Costs& costs) {
  std::vector<s4u::Link*> links;
  double latency_s = 0;
  double s_per_byte = 0;
  from.route_to(&to, links, &latency_s);
  for (const s4u::Link* link : links) s_per_byte = std::max(s_per_byte, 1 / link->get_bandwidth());
  return costs.message_s + latency_s + static_cast<double>(bytes) * s_per_byte;
}

double model_us(const Descriptor& algorithm, const Nodes& nodes, std::size_t bytes, const Costs& costs) {
  const std::vector<s4u::Host*> hosts = s4u::Engine::get_instance()->get_all_hosts();
  if (algorithm.call_ns == nullptr || nodes.count() < 2) return 0;
  std::size_t largest = 0;
  for (const std::vector<int>& ranks : nodes.ranks) largest = std::max(largest, ranks.size());
  const auto message_ns = [&](std::size_t size) { return message_s(*hosts[0], *hosts[1], size, costs) * 1e9; };
  return algorithm.call_ns({.nodes = static_cast<double>(nodes.count()),
                            .ranks = static_cast<double>(nodes.of_rank.size()),
                            .node_ranks = static_cast<double>(largest),
                            .latency_ns = message_ns(0),
                            .message_ns = message_ns(bytes),
                            .bytes = static_cast<double>(bytes)}) *
         1e-3;
}

}  // namespace papaya::simulation
