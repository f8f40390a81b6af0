// Values of report.json, and the objects that have files of their own.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

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

inline constexpr const char* size_names[size_class_count] = {"small", "medium", "large"};
inline constexpr std::size_t most_last_ranks = 16;

inline Json to_array(const std::vector<NamedFrame>& frames) {
  Json array = Json::array();
  for (const NamedFrame& frame : frames)
    array.push_back({{"module", frame.module},
                     {"offset", fmt::format("{:#x}", frame.offset)},
                     {"build_id", frame.build_id},
                     {"function", frame.function},
                     {"file", frame.file},
                     {"line", frame.line > 0 ? Json(frame.line) : Json(nullptr)}});
  return array;
}

// efficiencies.cpp
Json to_object(const Efficiency& efficiency);
Json to_object(const PartEfficiency& part);

// gains.cpp
Json to_object(const WhatIf& what_if, const std::vector<CallSiteFigures>& call_sites);
Json to_object(const Savings& savings);

// trials.cpp
Json to_object(const TrialFigures& figures);

// waits.cpp
Json to_array(const std::array<WaitFigures, wait_kind_count>& waits);
// A field for each kind that there is.
Json by_kind(const std::array<double, wait_kind_count>& waited_ns);

// weak.cpp
Json to_object(const WeakFigures& figures);
Json to_object(const ApproxFigures& figures);

// whole_run.cpp
Json to_object(const WholeRun& whole, double share);

}  // namespace papaya::report
