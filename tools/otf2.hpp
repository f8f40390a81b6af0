// A run as an OTF2 archive, for Vampir and others: https://doi.org/10.5281/zenodo.1240731
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profiler/read/read.hpp"

namespace papaya::otf2 {

// One call of a rank.
struct Call {
  trace::Event event;
  double arrival_ns;
  double exit_ns;  // NAN: it never left
  double late_ns;  // after the call's first arrival; NAN: not in the record of all ranks
  bool is_last;
  const std::string* site;
};

// One of a weakly consistent collective.
struct WeakCall {
  const trace::WeakEvent* event;
  const trace::WeakRow* row;
  double arrival_ns;
  double exit_ns;  // NAN: it has not ended
  const std::string* site;
};

using OnCall = std::function<void(std::size_t file, const Call& call)>;

struct Input {
  const report::Run& run;
  double begin_ns;       // not after any arrival
  double end_ns;         // not before any arrival or exit
  std::int64_t unix_ns;  // the wall clock at begin_ns
  // Reads the run for the calls of some of its files, from `first` on and before `last`, those of each in the order
  // they began.
  std::function<void(std::size_t first, std::size_t last, const OnCall& on_call)> read_calls;
  std::function<std::vector<WeakCall>(std::size_t)> weak_calls_of;
};

// False if this papaya was built without it.
bool is_there() noexcept;

// Writes the archive's files into the folder, which must not exist yet. False if that failed.
bool write(const Input& input, const std::string& folder);

}  // namespace papaya::otf2
