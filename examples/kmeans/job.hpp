// The ranks of the job while all of them live, and how they end together: what one of them cannot do, all give up.
#pragma once

#include <mpi.h>

#include <string>

#include "../common/together.hpp"

namespace kmeans {

using examples::CommonProblem;
using examples::Problem;

struct Job {
  int rank = 0;
  int ranks = 1;
  int ranks_of_node = 1;

  static Job world();

  // Collective: does it on every rank; where that throws on any, CommonProblem on all.
  template <class Do>
  void together(Do&& act) const {
    examples::together(act, "There is too little memory; take fewer points or clusters, or more ranks on more nodes.");
  }
};

}  // namespace kmeans
