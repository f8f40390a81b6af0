// The ranks of the job, and how they end together: what one of them cannot do, all of them give up.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

namespace matrix_multiplication {

// A sentence for the user.
struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The same on all ranks.
struct CommonProblem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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
    std::string sentence;
    try {
      act();
    } catch (const Problem& problem) {
      sentence = problem.what();
    } catch (const std::bad_alloc&) {
      sentence = too_little_memory;
    }
    agree(sentence);
  }
  // Collective: that there are so many bytes, added up over the ranks of each node. Problem: there are not.
  void need_memory(std::uint64_t bytes) const;

  double largest(double mine) const;
  double sum(double mine) const;

 private:
  static constexpr const char* too_little_memory = "There is too little memory; multiply smaller matrices.";
  void agree(std::string sentence) const;  // empty: none
};

}  // namespace matrix_multiplication
