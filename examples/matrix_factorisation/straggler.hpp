// Who is late, and by how much: a rank that sleeps before it computes.
#pragma once

#include <cstdint>

#include "options.hpp"

class Straggler {
 public:
  Straggler(Straggling kind, double delay_ms, std::uint64_t seed, int rank, int ranks)
      : kind_(kind), delay_ms_(delay_ms), seed_(seed), rank_(rank), ranks_(ranks) {}

  // Sleeps if this rank is late in this iteration.
  void sleep(long long iteration) const;

 private:
  bool is_late(long long iteration) const;

  Straggling kind_;
  double delay_ms_;
  std::uint64_t seed_;
  int rank_;
  int ranks_;
};
