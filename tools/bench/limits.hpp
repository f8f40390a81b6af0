// What no algorithm on one node can beat, from three measured properties of the machine. Pure; derived in
// docs/architecture/benchmark.md, "Limits".
#pragma once

#include <cstddef>
#include <vector>

#include "base/collective.hpp"

namespace papaya::bench {

struct CopyRate {
  std::size_t bytes;  // of one copy
  double one_core;    // b, bytes copied per second
  double all_cores;   // B, the sum over the ranks that copy at once
};

struct Machine {
  double line_us = 0;                // L: a dirty cache line from one core to another; 0: not measured
  double further_line_us = 0;        // s: each further line, when several are under way
  std::vector<CopyRate> copy_rates;  // by ascending size

  bool is_measured() const noexcept { return line_us > 0 && !copy_rates.empty(); }
  // The rates at this size, between two measured ones in proportion to the logarithms.
  CopyRate rates(std::size_t bytes) const noexcept;
};

// The lower bound in microseconds on a row's excess (the mean over ranks for reduce and bcast), every rank
// having a core. `bytes` is the message, of allgather and alltoall the block. `together`: all ranks arrive at
// once; else the last may arrive alone, and what the others could do meanwhile does not count.
double limit_us(Collective collective, std::size_t bytes, int ranks, bool together, const Machine& machine) noexcept;

}  // namespace papaya::bench
