// How the ranks of an example end together: what one of them cannot do, all give up, with one sentence.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

namespace examples {

// A sentence for the user.
struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The same on all ranks.
struct CommonProblem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What goes wrong while others wait for this rank: says so and ends the job.
[[noreturn]] void abort_job(const char* program, const std::string& sentence);

// Collective over MPI_COMM_WORLD. The sentence of the first rank that has one, as CommonProblem on all; empty: none.
void agree(std::string sentence);

// Collective over MPI_COMM_WORLD: does it on every rank; where that throws on any, CommonProblem on all.
template <class Do>
void together(Do&& act, const char* too_little_memory) {
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

}  // namespace examples
