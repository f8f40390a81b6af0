// Values of report.json, and the objects that have files of their own.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>

#include "profiler/analysis/analysis.hpp"

namespace papaya::report {

using Json = nlohmann::ordered_json;

inline Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
inline Json microseconds(double ns) {
  return number(ns / 1e3);
}
inline Json seconds(double ns) {
  return number(ns / 1e9);
}

// efficiencies.cpp
Json to_object(const Efficiency& efficiency);
Json to_object(const PartEfficiency& part);

// trials.cpp
Json to_object(const TrialFigures& figures);

// waits.cpp
Json to_array(const std::array<WaitFigures, wait_kind_count>& waits);
// A field for each kind that there is.
Json by_kind(const std::array<double, wait_kind_count>& waited_ns);

}  // namespace papaya::report
