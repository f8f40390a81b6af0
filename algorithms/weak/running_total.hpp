// Contributions that add up, for algorithms in which a rank's contribution replaces its earlier one: what a rank brings
// to a call is the total of all its contributions so far. A total that is late, or that a newer one replaces before
// anybody has used it, loses nothing, and none counts twice. So the result of a call is the total of all ranks'
// contributions, of each up to a clock that is at most `slack` behind (Faustino 2020, 3.3, gets there by sending what
// has been missed).
//
// A result may hold an older total of this rank's own, too. What it lacks of that is kept and added to it, so that a
// rank always finds all of its own contributions in a result. For commutative operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "algorithms/datatype.hpp"
#include "algorithms/weak/weak.hpp"

namespace papaya {

class RunningTotal {
 public:
  // `reduction` outlives it. Throws std::bad_alloc.
  RunningTotal(std::size_t count, const Reduction& reduction, std::uint64_t slack);

  // A call begins: the total with its contribution. It stays as it is until the call has ended.
  const std::byte* add(const void* contribution);
  // It has ended: adds to the result what it lacks of this rank's own.
  void complete(const Weak& algorithm, std::byte* result);

 private:
  void complete(std::byte* result, std::size_t begin, std::size_t end, std::uint64_t own) const;

  const std::size_t count_;
  const Reduction& reduction_;
  const bool keeps_;  // results may lack some
  std::vector<std::byte> total_;
  std::uint64_t clock_ = 0;
  // The contributions of the last clocks, the newest at the end: all that results may still lack.
  std::deque<std::vector<std::byte>> kept_;
  std::vector<std::vector<std::byte>> unused_;
};

}  // namespace papaya
