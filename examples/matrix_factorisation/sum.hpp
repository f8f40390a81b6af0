// How the ranks' contributions are summed: this is where papaya is called.
#pragma once

#include <mpi.h>

#include <memory>
#include <span>
#include <string>

#include "options.hpp"

struct SumCall {
  double seconds;  // in the call
  double waited;   // of these for other ranks; NaN where nobody knows
  long long age;   // how many iterations old the oldest contribution in the result is
};

class Sum {
 public:
  Sum() = default;
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  virtual ~Sum() = default;

  // Brings this rank's contribution. The result is the sum of one contribution of each rank; with Exchange::updates of
  // all contributions so far. All ranks make the same number of calls.
  virtual SumCall call(std::span<const double> contribution, std::span<double> result) = 0;

  // What is in force, in papaya's words.
  virtual std::string info() const = 0;

  // Collective: after the last call, before MPI_Finalize.
  virtual void end() {}
};

// Collective. Throws Mistake where papaya is missing or cannot do what is wished. The communicator returns errors.
std::unique_ptr<Sum> make_sum(const Options& options, MPI_Comm comm, std::size_t count);
