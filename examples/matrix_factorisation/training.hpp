// The iterations, and what was measured in each.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "model.hpp"
#include "options.hpp"

// One value for each iteration; of all ranks, on rank 0.
struct History {
  std::vector<double> seconds;       // since the start, when the last rank had done the iteration
  std::vector<double> mean_seconds;  // on average over the ranks
  std::vector<double> error;         // root mean square, of held-out ratings; each rank's model for its users'
  std::vector<double> collective;    // seconds in the collective, on average over the ranks
  std::vector<double> waited;        // of these for other ranks; NaN where nobody knows
  std::vector<double> age;           // iterations that the oldest contribution was old, on average over the ranks
  std::vector<double> oldest;        // the same of the rank where it was oldest

  std::string info;          // the allreduce, in papaya's words
  double setup_seconds = 0;  // creating it
  double final_error = 0;    // of the model with all contributions, which is the same on all ranks
};

// Collective. May throw Mistake.
History train(const Options& options, const Part& part, MPI_Comm comm);

// The first iteration, from 0, whose error is at most `target`; as many as there are if none is.
std::size_t reached(const History& history, double target);
