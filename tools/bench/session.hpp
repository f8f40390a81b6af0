// A launch of the benchmark: what holds for all that is measured in it.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tools/bench/measure.hpp"

namespace papaya::bench {

// What is shown while a measurement runs, on rank 0.
struct Show {
  std::function<void(const std::string&)> print;             // results, as they come
  std::function<void(const std::string&)> warn;              // one sentence
  std::function<void(double, const std::string&)> progress;  // the share of the measurement that is done
  std::function<void()> pause;                               // something is about to be printed
};

class Session {
 public:
  // Collective, as are measure() and agreed().
  explicit Session(MPI_Comm world);

  // Rank 0 asks `goes_on`, where there is one, before each size but the first; sizes after a no have no rows.
  Result measure(const Options& options, const Replay& replay, const Show& show,
                 const std::function<bool()>& goes_on = nullptr);
  // What rank 0 has found out: a sentence, or nothing.
  std::string agreed(std::string problem) const;

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  int nodes() const noexcept { return clock_.nodes(); }
  int cores() const noexcept { return all_cores_; }
  static std::string mpi_name();  // "Open MPI v4.1.4", "MPICH 4.0.2": the same as in the report
  MPI_Comm world() const noexcept { return world_; }
  const CommonClock& clock() const noexcept { return clock_; }

 private:
  std::vector<Row> measure_weak(Job& job, const Show& show);
  void measure_operations(Job& job, const Show& show, const std::function<bool()>& goes_on, Result& result);

  MPI_Comm world_;
  CommonClock clock_;
  const Switch algorithms_;
  int rank_ = 0;
  int ranks_ = 1;
  int cores_ = 1;      // of this node
  int all_cores_ = 1;  // of all nodes
  bool core_each_ = false;
  std::unique_ptr<NativeVariants> natives_;  // once they are to be measured
  std::optional<Machine> machine_;
  std::size_t measured_bytes_ = 0;  // the largest that the machine was measured for
};

}  // namespace papaya::bench
