#include "profiler/analysis/computing.hpp"

#include <algorithm>

namespace papaya::report {

namespace {

constexpr std::size_t most_longest = 256;

}  // namespace

void Longest::add(std::uint64_t number, double ns, std::uint32_t site) {
  while (!kept_.empty() && kept_.back().ns < ns) kept_.pop_back();
  if (kept_.size() == most_longest) kept_.erase(kept_.begin());
  kept_.push_back({number, ns, site});
}

Longest::Entry Longest::since(std::uint64_t number) const {
  if (kept_.empty() || kept_.back().number < number) return {};
  if (kept_.size() == 1 || kept_[kept_.size() - 2].number < number) return kept_.back();
  const auto found =
      std::partition_point(kept_.begin(), kept_.end(), [number](const Entry& entry) { return entry.number < number; });
  return found == kept_.end() ? Entry{} : *found;
}

void Computed::add(const trace::Event& event, std::uint64_t number, const trace::Interval* interval) {
  std::uint64_t& left = left_ticks_of(event.thread);
  const std::uint64_t since = left == 0 ? 0 : event.arrival_ticks - std::min(left, event.arrival_ticks);
  const std::uint64_t in_mpi = interval == nullptr ? 0 : std::min(interval->mpi_ticks, since);
  just_computed_ns_ = static_cast<double>(since - in_mpi) * ns_per_tick_;
  just_timed_ns_ = static_cast<double>(in_mpi) * ns_per_tick_;
  computed_ns_ += just_computed_ns_;
  timed_ns_ += just_timed_ns_;
  const std::uint32_t waited_for = interval == nullptr ? 0 : interval->waited_for;
  waited_for_ = static_cast<std::int32_t>(waited_for & 0xffffff) - 1;
  waited_ns_ = just_timed_ns_ * (waited_for >> 24) / 255;
  if (waited_for_ >= 0) waits_.add(number, waited_ns_, static_cast<std::uint32_t>(waited_for_) + 1);
  left = std::max(event.exit_ticks, event.arrival_ticks);
  longest_.add(number, just_computed_ns_,
               interval != nullptr && interval->longest_site != 0 ? interval->longest_site : event.call_site);
}

std::uint64_t& Computed::left_ticks_of(std::uint16_t thread) {
  for (auto& [own, ticks] : left_ticks_)
    if (own == thread) return ticks;
  return left_ticks_.emplace_back(thread, init_ticks_).second;
}

// As std::nth_element, without a branch that cannot be foretold for each value.
double lower_median(std::vector<double>& values) {
  constexpr std::size_t few = 32;
  const std::size_t middle = (values.size() - 1) / 2;
  std::size_t begin = 0;
  std::size_t end = values.size();
  double* const at = values.data();
  for (int rounds = 0; end - begin > few && rounds < 64; ++rounds) {
    const double first = at[begin];
    const double half = at[begin + (end - begin) / 2];
    const double last = at[end - 1];
    const double pivot = std::max(std::min(first, half), std::min(std::max(first, half), last));
    // Those below it to the front, and behind them those that equal it.
    std::size_t below = begin;
    for (std::size_t i = begin; i < end; ++i) {
      const double value = at[i];
      at[i] = at[below];
      at[below] = value;
      below += value < pivot ? 1 : 0;
    }
    if (middle < below) {
      end = below;
      continue;
    }
    std::size_t equal = below;
    for (std::size_t i = below; i < end; ++i) {
      const double value = at[i];
      at[i] = at[equal];
      at[equal] = value;
      equal += value == pivot ? 1 : 0;
    }
    if (middle < equal) return pivot;
    begin = equal;
  }
  std::nth_element(at + begin, at + middle, at + end);
  return at[middle];
}

}  // namespace papaya::report
