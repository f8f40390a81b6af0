// What two measurements of the same thing say of each other: an interval of their ratio, and one of four words with its
// reason. Of papaya compare and papaya bench; the words are NVBench's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace papaya::report {

struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

// The 97.5th percentile of Student's t.
double student(double freedom);

// With fewer independent values no two of them enclose the median in 95 % of all cases: 2 * 0.5^6 is 3.1 %.
inline constexpr std::size_t fewest_for_order_statistics = 6;

// A 95 % interval of the median of what the values are drawn from, independently: the order statistics that enclose it
// with at least that probability, whatever the distribution (David and Nagaraja 2003, section 7.1). None of fewer than
// six values.
std::optional<Interval> interval_of_median(std::vector<double> values);

// The same of few values above 0, by Student's t of their logarithms: from two values on, and right only where the
// logarithms are about normal. Six and more go by order statistics.
std::optional<Interval> interval_of_few(std::span<const double> values);

enum class Outcome : std::uint8_t {
  same,    // the whole interval is within the margin
  faster,  // the whole interval is below 1
  slower,  // the whole interval is above 1
  unclear  // it holds 1 and reaches beyond the margin, or there is none
};
std::string_view name_of(Outcome outcome);  // "SAME"

struct Judgement {
  Outcome outcome = Outcome::unclear;
  std::string reason;
};

// `ratio` is of times, new to old.
Judgement judge(const std::optional<Interval>& ratio, double margin);

// "0.86"; what is beyond a hundred times, either way, is told as that.
std::string ratio_text(double ratio);

}  // namespace papaya::report
