// What Open MPI calls its own algorithms, for tuning files that say which of them won.
#pragma once

#include <span>
#include <string_view>

#include "base/collective.hpp"

namespace papaya::tuning {

// The names of its coll_tuned_X_algorithm, in the order of its numbers; 0, "ignore", leaves the choice to it. Empty for
// collectives that papaya has no rules for.
std::span<const std::string_view> openmpi_algorithms(Collective collective) noexcept;

// How the benchmark and `papaya tune` call one of them: "native:ring".
inline constexpr std::string_view native_variant_prefix = "native:";
constexpr bool is_native_variant(std::string_view selection) noexcept {
  return selection.starts_with(native_variant_prefix);
}

}  // namespace papaya::tuning
