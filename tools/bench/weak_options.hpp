// What of the command line concerns weakly consistent collectives, and what is to be measured of them. No MPI.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/weak/weak.hpp"
#include "tools/bench/options.hpp"

namespace papaya::bench {

// Those that have an algorithm.
std::vector<WeakCollective> weak_benchmarked();
std::optional<WeakCollective> weak_called(std::string_view name);
std::string weak_names();

// What a program bounds the weakness by.
enum class Bound : std::uint8_t { none, slack, threshold, share };
Bound bound_of(WeakCollective collective) noexcept;
// What MPI has instead.
Collective counterpart(WeakCollective collective) noexcept;

void add_weak_options(CLI::App& app, Options& options);
// The first of these options that is given; empty: none.
std::string_view of_weak_ones(const Options& options);
bool finish_weak(Options& options, std::string& problem);

struct WeakCandidate {
  std::string selection;  // of an algorithm, or auto; native: the counterpart
  std::optional<int> slack = std::nullopt;
  std::optional<double> share = std::nullopt;  // of the data, the ranks or the elements
};
// Native first.
std::vector<WeakCandidate> weak_candidates(const Options& options);

}  // namespace papaya::bench
