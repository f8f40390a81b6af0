#include "tools/bench/limits.hpp"

#include <algorithm>
#include <cmath>

namespace papaya::bench {

CopyRate Machine::rates(std::size_t bytes) const noexcept {
  if (bytes <= copy_rates.front().bytes) return copy_rates.front();
  for (std::size_t i = 1; i < copy_rates.size(); ++i) {
    const CopyRate& low = copy_rates[i - 1];
    const CopyRate& high = copy_rates[i];
    if (bytes > high.bytes) continue;
    const double share = std::log(static_cast<double>(bytes) / static_cast<double>(low.bytes)) /
                         std::log(static_cast<double>(high.bytes) / static_cast<double>(low.bytes));
    return {bytes, low.one_core * std::pow(high.one_core / low.one_core, share),
            low.all_cores * std::pow(high.all_cores / low.all_cores, share)};
  }
  return copy_rates.back();
}

double limit_us(Collective collective, std::size_t bytes, int ranks, bool together, const Machine& machine) noexcept {
  if (ranks < 2 || !machine.is_measured()) return 0;
  const double p = ranks;
  const double last_to_all = machine.line_us + (p - 2) * machine.further_line_us;
  const CopyRate rate = machine.rates(bytes);
  // Times of so many messages copied: by one core, and by the node.
  const auto by_core = [&](double messages) { return messages * static_cast<double>(bytes) / rate.one_core * 1e6; };
  const auto by_node = [&](double messages) { return messages * static_cast<double>(bytes) / rate.all_cores * 1e6; };
  switch (collective) {
    case Collective::barrier:
      return last_to_all;
    case Collective::allreduce:
      // Every operand is read and every rank gets a copy; with a lone last arrival half of that is done
      // before.
      return together ? std::max({last_to_all, by_core(2), by_node(2 * p)})
                      : std::max({last_to_all, by_core(1), by_node(p)});
    case Collective::reduce: {
      // p operands are read and one result written; after a lone last arrival its operand, the partial result
      // and the result, shared by all cores. The other ranks cannot leave before their operand has been read.
      const double messages = together ? p + 1 : 3;
      const double root = std::max({machine.line_us, by_core(messages / p), by_node(messages)});
      return (root + (p - 1) * by_core(1)) / p;
    }
    case Collective::bcast: {
      // The root may leave at once; the others need the message, together or one after the other.
      const double other = std::max({machine.line_us, by_core(1), together ? by_node(p - 1) : 0});
      return (p - 1) * other / p;
    }
    case Collective::gather: {
      // The root gets p - 1 blocks, after a lone last arrival one; the others cannot leave before theirs is copied.
      const double root = std::max(machine.line_us, by_core(together ? p - 1 : 1));
      return (root + (p - 1) * by_core(1)) / p;
    }
    case Collective::scatter:
      // As in a bcast, of a block each.
      return (p - 1) * std::max({machine.line_us, by_core(1), together ? by_node(p - 1) : 0}) / p;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
    case Collective::alltoallv:
      // Every rank gets the block of every other; after a lone last arrival its block is what the others
      // miss, and theirs is what it misses.
      return together ? std::max({last_to_all, by_core(p - 1), by_node(p * (p - 1))})
                      : std::max({last_to_all, by_core(1), by_node(2 * (p - 1))});
    default:
      return 0;
  }
}

}  // namespace papaya::bench
