// How the ranks of a communicator combine what they measured, in a call that none of them leaves early: on one node by
// papaya's own allreduce, in which a rank without a core sleeps, where that of MPI may spin and take a thousand times
// as long; otherwise by MPI's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "interpose/call.hpp"

namespace papaya {

class Combine {
 public:
  // The plan is set up if it has to be, on all ranks alike.
  Combine(Communicator& state, const CallFacts& facts, const Outcome& outcome) noexcept;

  // `op` of all ranks' numbers; everyone has equally many.
  std::vector<std::int64_t> operator()(const std::vector<std::int64_t>& mine, MPI_Op op) const;
  std::vector<std::uint64_t> operator()(const std::vector<std::uint64_t>& mine, MPI_Op op) const;

 private:
  template <class Number>
  std::vector<Number> combined(const std::vector<Number>& mine, MPI_Datatype type, MPI_Op op) const;

  Communicator& state_;
  Plan* plan_ = nullptr;  // null: by MPI
};

// Must the plan of `rule` stay, because numbers are combined by it?
bool combines_by(const Communicator& state, const tuning::Rule& rule) noexcept;

}  // namespace papaya
