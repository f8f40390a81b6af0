// One clock for the stamps of a run: those of a node are comparable as they are, each node's is brought to node 0's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/read/read.hpp"

namespace papaya::report {

// A node's ticks to ns on node 0's clock. Between the two comparisons of the clocks, at MPI_Init and at MPI_Finalize, a
// straight line: quartzes differ by a rate.
struct NodeClock {
  // What is allowed for a rate that was not measured.
  static constexpr double assumed_drift = 1e-4;

  std::uint64_t origin_ticks = 0;
  double ns_per_tick = 1;
  double scale = 1;
  double shift_ns = 0;
  double error_ns = 0;     // at the comparisons; if messages take equally long both ways
  double bound_ns = 0;     // the same however unlike the ways are
  double compared_ns = 0;  // when, on node 0's clock, if only once
  bool measured = true;
  bool measured_twice = true;

  double node_ns(std::uint64_t ticks) const {
    // Either way round without wrapping: damaged headers may hold ticks before the origin.
    return ticks >= origin_ticks ? static_cast<double>(ticks - origin_ticks) * ns_per_tick
                                 : -(static_cast<double>(origin_ticks - ticks) * ns_per_tick);
  }
  double ns(std::uint64_t ticks) const { return node_ns(ticks) * scale + shift_ns; }
  // Of a stamp that is `time_ns` on node 0's clock.
  double error_at(double time_ns) const {
    return measured_twice ? error_ns : error_ns + assumed_drift * std::abs(time_ns - compared_ns);
  }
};

class Clocks {
 public:
  explicit Clocks(const Run& run);

  const NodeClock& of_file(std::size_t file) const { return clocks_[index_[file]]; }
  std::span<const NodeClock> of_nodes() const { return clocks_; }
  // Bound for the difference of two stamps of these files' ranks at about `time_ns` on node 0's clock; 0 on one node.
  double error_between_ns(std::size_t one_file, std::size_t other_file, double time_ns) const {
    if (index_[one_file] == index_[other_file]) return 0;
    return of_file(one_file).error_at(time_ns) + of_file(other_file).error_at(time_ns);
  }
  // The wall clock at 0 ns.
  std::int64_t base_unix_ns() const { return base_unix_ns_; }

 private:
  std::vector<NodeClock> clocks_;
  std::vector<std::size_t> index_;  // by file
  std::int64_t base_unix_ns_ = 0;
};

}  // namespace papaya::report
