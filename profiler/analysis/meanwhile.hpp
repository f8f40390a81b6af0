// What the ranks that are late at the costliest calls call while the others wait for them: a rank that does so has
// passed the others by, as a bcast's root and a reduce's other ranks may, or works on another communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

class Archive;

class Meanwhile {
 public:
  // `analysis` has the costliest calls, with times since `begin_ns`.
  Meanwhile(const Run& run, const Clocks& clocks, const Analysis& analysis);

  // Each event of the run.
  void add(std::size_t file, const trace::Event& event);
  // The next part of the run.
  void merge(const Meanwhile& next);
  void pack(Archive& archive);
  // `calls`: the same as `analysis` had.
  void write(std::vector<CostlyCall>& calls) const;

 private:
  struct Calls {
    std::uint64_t count = 0;
    trace::Event first{};
  };
  struct Wait {
    std::size_t costly = 0;  // index
    double begin_ns = 0;
    double end_ns = 0;
    // By call site, and collective and form.
    std::map<std::pair<std::uint32_t, std::uint32_t>, Calls> calls;
  };

  const Run& run_;
  const Clocks& clocks_;
  std::vector<std::vector<Wait>> waits_;  // by file
};

}  // namespace papaya::report
