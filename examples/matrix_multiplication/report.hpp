// What the program says in the end: for people, and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job.hpp"
#include "options.hpp"

namespace matrix_multiplication {

// Medians over the rounds: of the slowest rank's seconds, and of the others' means over ranks.
struct Result {
  std::string variant;
  double seconds = 0;
  double dgemm = 0;           // seconds in it
  double waiting = 0;         // notified: for blocks
  double redistribution = 0;  // pdgemm: to its layout and back
  double megabytes = 0;       // notified: that are written to other ranks; pdgemm: of the redistribution
  double residual = 0;
};

struct Outcome {
  int m = 0;
  int n = 0;
  int k = 0;
  Grid grid;
  std::string carrier;
  Assignment assignment = Assignment::owner;
  double balance = 1;      // largest share of the work, by the mean
  double core_gflops = 0;  // of DGEMM on one core, alone
  std::vector<Result> results;
  std::optional<double> difference;  // between the variants' C
};

// Of the middle; there is one.
double median(std::vector<double> numbers);

// On rank 0. Throws Problem.
void report(const Outcome& outcome, const Options& options, const Job& job);

// On rank 0 says what is wrong. True if nothing is.
bool is_right(const Outcome& outcome, const Job& job);

}  // namespace matrix_multiplication
