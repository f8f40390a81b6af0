// The ranks of the job, and how they end together: what one of them cannot do, all of them give up.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "../common/together.hpp"

namespace terasort {

using examples::CommonProblem;
using examples::Problem;

// What goes wrong while others wait for this rank: says so and ends the job.
[[noreturn]] void abort_job(const std::string& sentence);

struct Job;
// Of so many things: the first, and how many.
struct Share {
  std::uint64_t first;
  std::uint64_t count;
};
Share share_of(std::uint64_t all, const Job& job) noexcept;

struct Job {
  int rank = 0;
  int ranks = 1;
  int ranks_of_node = 1;

  static Job world();

  // Collective: does it on every rank; where that throws on any, CommonProblem on all.
  template <class Do>
  void together(Do&& act) const {
    examples::together(
        act, "There is too little memory; sort fewer records, or set --memory so that runs are sorted on disk.");
  }
};

}  // namespace terasort
