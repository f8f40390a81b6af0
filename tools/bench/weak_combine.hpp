// What rows of weakly consistent collectives have in addition, from a launch's JSON and of several launches.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tools/bench/result.hpp"

namespace papaya::bench {

// Nothing where `row` is of another collective. Throws Json::exception where something else is in its place.
std::optional<WeakFigures> weak_figures_of(const nlohmann::json& row);

// Of the same collective, with the same bound.
bool is_same_weak(const std::optional<WeakFigures>& a, const std::optional<WeakFigures>& b);

// Of rows that are the same in all launches.
WeakFigures united_weak(const std::vector<const Row*>& rows);

}  // namespace papaya::bench
