// The ranks of the job, and how they end together: what one of them cannot do, all of them give up.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "../common/together.hpp"

namespace matrix_multiplication {

using examples::CommonProblem;
using examples::Problem;

// What goes wrong while others wait for this rank: says so and ends the job.
[[noreturn]] void abort_job(const std::string& sentence);

double clock_seconds() noexcept;

struct Job {
  int rank = 0;
  int ranks = 1;
  int cores = 1;  // that the ranks have, at most one for each

  static Job world();

  // Collective: does it on every rank; where that throws on any, CommonProblem on all.
  template <class Do>
  void together(Do&& act) const {
    examples::together(act, too_little_memory);
  }
  // Collective: that there are so many bytes, added up over the ranks of each node. Problem: there are not.
  void need_memory(std::uint64_t bytes) const;

  double largest(double mine) const;
  double sum(double mine) const;

 private:
  static constexpr const char* too_little_memory = "There is too little memory; multiply smaller matrices.";
};

}  // namespace matrix_multiplication
