// One clock for the stamps of a run: those of a node are comparable as they are, each node's is brought to node 0's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/read.hpp"

namespace papaya::report {

// A node's ticks to ns on node 0's clock: linear between the two offsets measured.
struct NodeClock {
  std::uint64_t origin_ticks = 0;
  double ns_per_tick = 1;
  double scale = 1;
  double shift_ns = 0;
  double error_ns = 0;
  bool measured = true;
  bool measured_twice = true;

  double node_ns(std::uint64_t ticks) const {
    // Either way round without wrapping: damaged headers may hold ticks before the origin.
    return ticks >= origin_ticks ? static_cast<double>(ticks - origin_ticks) * ns_per_tick
                                 : -(static_cast<double>(origin_ticks - ticks) * ns_per_tick);
  }
  double ns(std::uint64_t ticks) const { return node_ns(ticks) * scale + shift_ns; }
};

class Clocks {
 public:
  explicit Clocks(const Run& run);

  const NodeClock& of_file(std::size_t file) const { return clocks_[index_[file]]; }
  std::span<const NodeClock> of_nodes() const { return clocks_; }
  // Bound for the difference of two stamps of these files' ranks; 0 on one node.
  double error_between_ns(std::size_t one_file, std::size_t other_file) const {
    return index_[one_file] == index_[other_file] ? 0 : of_file(one_file).error_ns + of_file(other_file).error_ns;
  }
  // The wall clock at 0 ns.
  std::int64_t base_unix_ns() const { return base_unix_ns_; }

 private:
  std::vector<NodeClock> clocks_;
  std::vector<std::size_t> index_;  // by file
  std::int64_t base_unix_ns_ = 0;
};

}  // namespace papaya::report
