// What ranks bring to the calls of a weakly consistent collective, and which results are right. Doubles with whole
// numbers, so that sums are exact in any order. No MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/bench/weak_options.hpp"

namespace papaya::bench {

// What a call says of itself.
struct WeakOutcome {
  std::uint64_t clock = 0;
  std::uint64_t oldest = 0;
  int ranks = 0;
  std::size_t elements = 0;
};

class WeakData {
 public:
  WeakData(WeakCollective collective, const WeakCandidate& candidate, bool of_ranks, int rank, int ranks, int root,
           std::size_t count);

  // Of the next clock, and what must not be found in the result.
  void fill();
  bool check(const WeakOutcome& outcome);
  const double* contribution() const noexcept { return contribution_.data(); }
  double* result() noexcept { return result_.data(); }
  std::uint64_t clock() const noexcept { return clock_; }

  // A sparse allreduce loses nothing: once all is sent the results' sum is that of all ranks' contributions.
  bool has_totals() const noexcept { return collective_ == WeakCollective::sparse_allreduce; }
  std::span<double> brought() noexcept { return brought_; }
  std::span<const double> received() const noexcept { return received_; }

 private:
  double element(int rank, std::size_t i) const noexcept;
  bool is_enough(const WeakOutcome& outcome) const noexcept;
  bool is_ssp(const WeakOutcome& outcome) const noexcept;
  bool is_broadcast(const WeakOutcome& outcome) const noexcept;
  bool is_reduction(const WeakOutcome& outcome) const noexcept;
  bool is_sum_of_some() const noexcept;

  WeakCollective collective_;
  WeakCandidate candidate_;
  bool of_ranks_;
  int rank_;
  int ranks_;
  int root_;
  std::uint64_t clock_ = 0;
  std::vector<double> contribution_, result_, brought_, received_;
};

}  // namespace papaya::bench
