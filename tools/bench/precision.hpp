// How sure a row is, when that is enough, and what it says of native. Pure.
//
// Values of one turn resemble each other, so that they are no independent ones: what a row's intervals are made of is
// one median, or one ratio to native's in the same round, of each turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "profiler/analysis/outcome.hpp"

namespace papaya::bench {

using report::Interval;

// Values in microseconds, turn by turn.
using Turns = std::vector<std::vector<double>>;

std::vector<double> medians_of(const Turns& turns);
std::vector<double> values_of(const Turns& turns);
// At most about `most` of them, from all turns alike and evenly spread in each.
Turns thinned(const Turns& turns, std::size_t most);

// 95 % of the median, by order statistics of the turns' medians; widened to hold the median of all values.
std::optional<Interval> interval_of(const Turns& turns);
// Half of it, as a share of the median; none where that is not above 0.
std::optional<double> half_width_of(const Turns& turns);

// Round by round, as far as both have come. Rounds in which native took no time are left out.
std::vector<double> ratios_of(const std::vector<double>& own, const std::vector<double>& native);
// 95 % of their median, widened to hold `point`.
std::optional<Interval> interval_of_ratios(std::vector<double> ratios, double point);

// Why a row is no longer measured.
enum class Stop : std::uint8_t {
  none,    // it goes on
  narrow,  // the interval is narrow enough
  time,    // it has had its time, or all rows of the size have
  rounds   // it has had all its turns
};
std::string_view name_of(Stop stop);

struct Limits {
  double half_width = 0.02;  // share of the median
  double row_us = 2e5;
  int rounds = 20;
  bool counted = false;  // all rounds are made, whatever they take and show: --iterations
};

// The rows of one size, native first. It takes a turn in every round, since the others' ratios are to its turns in the
// same rounds: it ends with the last of them.
class Progression {
 public:
  Progression(std::size_t rows, const Limits& limits) : limits_(limits), rows_(rows) {}

  bool goes_on() const;
  bool goes_on(std::size_t row) const { return rows_[row].stop == Stop::none; }
  Stop stop_of(std::size_t row) const { return rows_[row].stop; }
  int rounds_of(std::size_t row) const { return rows_[row].rounds; }

  void turn(std::size_t row, double us);
  // After a round, on the rank that has the values; `half_widths` of all rows.
  void decide(const std::vector<std::optional<double>>& half_widths);

  // What the other ranks take from that one.
  std::vector<std::uint8_t> decisions() const;
  void take(const std::vector<std::uint8_t>& decisions);

 private:
  struct Row {
    Stop stop = Stop::none;
    int rounds = 0;
    double spent_us = 0;
  };
  Stop judged(const Row& row, const std::optional<double>& half_width) const;

  Limits limits_;
  std::vector<Row> rows_;
};

}  // namespace papaya::bench
