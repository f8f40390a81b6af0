// A weakly consistent collective as a program has it, for one turn of the measurement: nothing of the others, such as
// a thread, is there meanwhile.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "api/instance.hpp"
#include "tools/bench/measure.hpp"
#include "tools/bench/weak_data.hpp"

namespace papaya::bench {

class Turn {
 public:
  // Collective. Check is_there() before anything else, which is the same on all ranks.
  Turn(const Job& job, const WeakCandidate& candidate, std::size_t bytes);

  bool is_there() const noexcept { return instance_ != nullptr; }
  const std::string& problem() const noexcept { return error_.sentence; }

  // One call is the three, in this order.
  void fill() { data_.fill(); }
  void run();
  bool check();
  papaya_weak_status status() const { return instance_->status(); }

  // Collective. Checks what only all results together can show.
  bool end();

 private:
  WeakData data_;
  MPI_Comm world_;
  weak::Error error_;
  std::unique_ptr<weak::Instance> instance_;
};

}  // namespace papaya::bench
