#include "tools/bench/precision.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/bench/statistics.hpp"

namespace papaya::bench {

namespace {

std::optional<Interval> widened(std::optional<Interval> interval, double point) {
  if (interval) interval = Interval{std::min(interval->low, point), std::max(interval->high, point)};
  return interval;
}

}  // namespace

std::vector<double> medians_of(const Turns& turns) {
  std::vector<double> medians;
  for (const std::vector<double>& turn : turns) medians.push_back(median(turn));
  return medians;
}

std::vector<double> values_of(const Turns& turns) {
  std::vector<double> values;
  for (const std::vector<double>& turn : turns) values.insert(values.end(), turn.begin(), turn.end());
  return values;
}

Turns thinned(const Turns& turns, std::size_t most) {
  Turns kept;
  for (const std::vector<double>& turn : turns) {
    const std::size_t share = std::min(turn.size(), most / turns.size());
    std::vector<double>& own = kept.emplace_back();
    for (std::size_t i = 0; i < share; ++i) own.push_back(turn[i * turn.size() / share]);
  }
  return kept;
}

std::optional<Interval> interval_of(const Turns& turns) {
  return widened(report::interval_of_median(medians_of(turns)), median(values_of(turns)));
}

std::optional<double> half_width_of(const Turns& turns) {
  const std::optional<Interval> interval = interval_of(turns);
  const double middle = median(values_of(turns));
  if (!interval || !(middle > 0)) return std::nullopt;
  return (interval->high - interval->low) / 2 / middle;
}

std::vector<double> ratios_of(const std::vector<double>& own, const std::vector<double>& native) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(own.size(), native.size()); ++i)
    if (native[i] > 0) ratios.push_back(own[i] / native[i]);
  return ratios;
}

std::optional<Interval> interval_of_ratios(std::vector<double> ratios, double point) {
  return widened(report::interval_of_median(std::move(ratios)), point);
}

std::string_view name_of(Stop stop) {
  constexpr std::array<std::string_view, 4> names = {"", "narrow", "time", "rounds"};
  return names[static_cast<std::size_t>(stop)];
}

bool Progression::goes_on() const {
  return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.stop == Stop::none; });
}

void Progression::turn(std::size_t row, double us) {
  ++rows_[row].rounds;
  rows_[row].spent_us += us;
}

Stop Progression::judged(const Row& row, const std::optional<double>& half_width) const {
  if (row.rounds >= limits_.rounds) return Stop::rounds;
  // Before that there is no interval.
  if (limits_.counted || row.rounds < static_cast<int>(report::fewest_for_order_statistics)) return Stop::none;
  if (half_width && *half_width <= limits_.half_width) return Stop::narrow;
  double all_us = 0;
  for (const Row& one : rows_) all_us += one.spent_us;
  const bool late = row.spent_us >= limits_.row_us || all_us >= limits_.row_us * static_cast<double>(rows_.size());
  return late ? Stop::time : Stop::none;
}

void Progression::decide(const std::vector<std::optional<double>>& half_widths) {
  for (std::size_t i = 1; i < rows_.size(); ++i)
    if (rows_[i].stop == Stop::none) rows_[i].stop = judged(rows_[i], half_widths[i]);
  const bool alone = std::all_of(rows_.begin() + 1, rows_.end(), [](const Row& row) { return row.stop != Stop::none; });
  if (alone) rows_[0].stop = judged(rows_[0], half_widths[0]);
}

std::vector<std::uint8_t> Progression::decisions() const {
  std::vector<std::uint8_t> all;
  for (const Row& row : rows_) all.push_back(static_cast<std::uint8_t>(row.stop));
  return all;
}

void Progression::take(const std::vector<std::uint8_t>& decisions) {
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].stop = static_cast<Stop>(decisions[i]);
}

}  // namespace papaya::bench
