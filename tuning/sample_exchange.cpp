#include "tuning/sample_exchange.hpp"

#include <algorithm>
#include <limits>

namespace papaya::tuning {

namespace {

constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t longest_ns = 1'000'000'000;

// With a common clock: the latest arrival that is waited for, the latest arrival, minus the first, minus the first of
// those that wait. Without one the first is minus the shortest time inside, and that is all.
enum Largest : std::size_t { latest_waited_for, latest, minus_first, minus_first_waiting };
// The excess, the ranks that measured it, and who is late.
enum Sum : std::size_t { excess, count, late };
constexpr std::int64_t one_is_late = std::int64_t{1} << 32;  // plus the rank

std::int64_t inside_ns(const Sample& sample) noexcept {
  return std::clamp<std::int64_t>(sample.exit_ns - sample.arrival_ns, 0, longest_ns);
}

}  // namespace

void add_largest(const Sample* sample, Clocks clocks, std::vector<std::int64_t>& numbers) {
  if (sample == nullptr)
    numbers.insert(numbers.end(), {nobody, nobody, nobody, nobody});
  else if (clocks != Clocks::one)
    numbers.insert(numbers.end(), {-inside_ns(*sample), nobody, nobody, nobody});
  else
    numbers.insert(numbers.end(), {sample->is_waited_for ? sample->arrival_ns : nobody, sample->arrival_ns,
                                   -sample->arrival_ns, sample->waits ? -sample->arrival_ns : nobody});
}

void add_sums(const Sample* sample, std::span<const std::int64_t, largest_per_sample> largest, Clocks clocks, int rank,
              std::vector<std::int64_t>& numbers) {
  if (sample == nullptr) {
    numbers.insert(numbers.end(), {0, 0, 0});
    return;
  }
  const std::int64_t arrival = sample->arrival_ns;
  const bool has_one_clock = clocks == Clocks::one;
  const std::int64_t from = sample->waits && has_one_clock ? std::max(arrival, largest[latest_waited_for]) : arrival;
  const bool is_late = has_one_clock ? sample->is_waited_for && arrival == largest[latest_waited_for]
                                     : -inside_ns(*sample) == largest[latest_waited_for];
  numbers.insert(numbers.end(),
                 {std::max<std::int64_t>(sample->exit_ns - from, 0), 1, is_late ? one_is_late + rank : 0});
}

MeasuredCall measured(std::span<const std::int64_t, largest_per_sample> largest,
                      std::span<const std::int64_t, sums_per_sample> sums, Clocks clocks, int ranks) noexcept {
  MeasuredCall call;
  call.is_whole = sums[count] == ranks;
  if (!call.is_whole) return call;
  const std::int64_t mean = sums[excess] / ranks;
  if (clocks == Clocks::one) {
    call.cost_ns = mean;
    call.spread_ns = largest[latest] + largest[minus_first];
    call.wait_ns = largest[latest_waited_for] + largest[minus_first_waiting];
  } else if (clocks == Clocks::several_rooted) {
    call.cost_ns = mean;
    return call;
  } else {
    call.cost_ns = -largest[latest_waited_for];
    // If arrivals are spread evenly, ranks wait for half of the spread on average.
    call.spread_ns = call.wait_ns = 2 * (mean - call.cost_ns);
  }
  if (sums[late] / one_is_late == 1) call.late = static_cast<int>(sums[late] % one_is_late);
  return call;
}

}  // namespace papaya::tuning
