// The measurement itself: algorithms in turn, round by round, at each message size.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "tools/bench/calls.hpp"
#include "tools/bench/clock.hpp"
#include "tools/bench/native_variants.hpp"
#include "tools/bench/options.hpp"
#include "tools/bench/result.hpp"

namespace papaya::bench {

// What holds for the whole run; the same on every rank unless said otherwise.
struct Job {
  const Options& options;
  CommonClock& clock;
  const Switch& algorithms;
  MPI_Comm world;
  int rank;  // own
  int ranks;
  int nodes;
  bool core_each;  // no node has more ranks than cores
  Replay replay;
  double units_per_us = 0;            // of compute(), for --mode imbalanced
  NativeVariants* natives = nullptr;  // null: MPI's own choice alone
};

// Computes for so many units; for --mode imbalanced.
void compute(std::uint64_t units) noexcept;
double measure_units_per_us(const CommonClock& clock);

Limits limits_of(const Options& options);

// After a round: rank 0, which has the values, decides which rows go on, and all ranks know.
void decide_together(Progression& progression, const Job& job,
                     const std::function<std::optional<double>(std::size_t)>& half_width, std::size_t rows);

// Fills in what the ratios of the rounds say of a row; `point` is the ratio of the whole.
void compare_to_native(Row& row, const std::vector<double>& ratios, const std::optional<double>& point, bool is_native,
                       double margin);

// Measures all algorithms at one size. Collective; rank 0 has the rows. `problem` is called on rank 0 with
// one sentence about an algorithm that is left out; `step` on rank 0 with the share done.
std::vector<Row> measure_size(Job& job, Calls& calls, Operation operation, std::size_t bytes,
                              const std::function<void(const std::string&)>& problem,
                              const std::function<void(double, const std::string&)>& step);

}  // namespace papaya::bench
