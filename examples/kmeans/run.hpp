// K-means from the first centroids to the last: with spares and checkpoints, or plainly.
#pragma once

#include <string>
#include <vector>

#include "clustering.hpp"
#include "options.hpp"
#include "team.hpp"

namespace kmeans {

struct Step {
  long iteration;
  double ended;  // seconds from the start
};

struct Outcome {
  Numbers centroids;
  double square_distances = 0;  // of the points to the centroids before the last move
  long iterations = 0;
  std::vector<Step> steps;  // of this rank, those that were done again too
  double seconds = 0;
  double in_checkpoints = 0;
  int checkpoints = 0;
  double in_recovery = 0;   // from the last that was heard of who died until the iteration is done that had been begun
  double until_agreed = 0;  // of that
  double in_loading = 0;    // of that
  int recoveries = 0;
};

// A rank's run, in which others may die.
class Run {
 public:
  Run(const Options& options, const Input& input, const Shape& shape, Points points, Team& team, Fate& fate);
  // True on the rank that has the result to write. What ends a rank alone is thrown: Replaced, Hopeless, Problem.
  bool work();
  Outcome& outcome() noexcept { return outcome_; }

 private:
  bool attempt();
  void load(int part);
  void iterate(int part);
  void exchange(const Content& mine, Numbers& sums);
  void save(int part);
  void note_step();
  bool has_ended() const noexcept;

  const Options& options_;
  const Input& input_;
  const Shape shape_;
  Points points_;
  int loaded_;
  Team& team_;
  Fate& fate_;
  Outcome outcome_;
  Numbers centroids_;
  double moved_ = 0;
  double start_;
  double outage_ = 0;  // began then; 0: none
  double usual_ = 0;   // seconds of an iteration
};

// By MPI_Allreduce; survives nothing. Collective.
Outcome run_plainly(const Options& options, const Points& points, const Shape& shape, Numbers centroids);

}  // namespace kmeans
