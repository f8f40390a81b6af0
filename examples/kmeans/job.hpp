// The ranks of the job while all of them live, and how they end together: what one of them cannot do, all give up.
#pragma once

#include <mpi.h>

#include <new>
#include <stdexcept>
#include <string>

namespace kmeans {

// A sentence for the user.
struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The same on all ranks.
struct CommonProblem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Job {
  int rank = 0;
  int ranks = 1;
  int ranks_of_node = 1;

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
      sentence = "There is too little memory; take fewer points or clusters, or more ranks on more nodes.";
    }
    agree(sentence);
  }

 private:
  void agree(std::string sentence) const;  // empty: none
};

}  // namespace kmeans
