#include "profiler/analysis/relief.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/matching.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_sections = 1024;
// Of calls with lateness, and of those without.
constexpr double fewest_calls = 10;
// Those without, part of those with. Where the same rank is late nearly always, few are left but the calls at which
// something held up the others as long: they tell nothing of what the others do without it.
constexpr double least_even = 0.25;
constexpr double late_part = 0.5;
constexpr double even_part = 0.25;
// Where calls with lateness are shorter than the others by more than this part of it, the ranks do other things there.
constexpr double same_work = 0.25;
constexpr double standard_errors = 2;
constexpr double least_lateness_ns = 1e3;

}  // namespace

Section Sections::before(std::size_t communicator, std::size_t site) {
  if (communicator >= last_sites_.size()) last_sites_.resize(communicator + 1, ComparedCall::no_site);
  return {std::exchange(last_sites_[communicator], site), site};
}

void Relief::Calls::add(const Calls& others) {
  count += others.count;
  lateness_ns += others.lateness_ns;
  length_ns += others.length_ns;
  squared_ns += others.squared_ns;
}

double Relief::Calls::variance() const {
  const double mean = mean_length_ns();
  return std::max(0.0, squared_ns / count - mean * mean) / count;
}

void Relief::add(const GroupCall& call, std::size_t site, double median_computed_ns) {
  const Section section = sections_.before(call.group_number, site);
  // Calls of unknown places need not have the same work before them.
  if (section.first == ComparedCall::no_site || site == ComparedCall::no_site || !call.is_computing_known) return;
  const auto found = bins_.size() < most_sections ? bins_.try_emplace(section).first : bins_.find(section);
  if (found == bins_.end()) return;
  double length_ns = std::numeric_limits<double>::lowest();
  for (const Sighting& sighting : call.sightings) length_ns = std::max(length_ns, sighting.computed_ns);
  const double lateness_ns = length_ns - median_computed_ns;
  const double doublings = std::log2(std::max(1.0, lateness_ns / least_lateness_ns));
  const std::size_t bin = std::min(bin_count - 1, static_cast<std::size_t>(doublings));
  found->second[bin].add({1, lateness_ns, length_ns, length_ns * length_ns});
}

void Relief::merge(const Relief& next, std::span<const std::size_t> numbers) {
  for (const auto& [section, bins] : next.bins_) {
    const Section own{numbers[section.first], numbers[section.second]};
    const auto found = bins_.size() < most_sections ? bins_.try_emplace(own).first : bins_.find(own);
    if (found == bins_.end()) continue;
    for (std::size_t b = 0; b < bin_count; ++b) found->second[b].add(bins[b]);
  }
}

void Relief::pack(Archive& archive) {
  archive(bins_);
}

Relieved Relief::judge(std::size_t site, const Bins& bins) {
  Relieved out{.site = site};
  double sum_ns = 0;
  double weighted = 0;
  for (const Calls& calls : bins) {
    if (calls.count == 0) continue;
    sum_ns += calls.lateness_ns;
    weighted += calls.lateness_ns * calls.mean_lateness_ns();
  }
  if (sum_ns <= 0) return out;
  const double usual_ns = weighted / sum_ns;
  Calls late;
  Calls even;
  for (const Calls& calls : bins) {
    if (calls.count == 0) continue;
    if (calls.mean_lateness_ns() >= late_part * usual_ns) late.add(calls);
    if (calls.mean_lateness_ns() <= even_part * usual_ns) even.add(calls);
  }
  if (late.count < fewest_calls || even.count < std::max(fewest_calls, least_even * late.count)) return out;
  const double lateness_ns = late.mean_lateness_ns() - even.mean_lateness_ns();
  const double share = (late.mean_length_ns() - even.mean_length_ns()) / lateness_ns;
  const double error = standard_errors * std::sqrt(late.variance() + even.variance()) / lateness_ns;
  if (share < -same_work || share + error >= 1) return out;
  out.late_calls = static_cast<std::uint64_t>(late.count);
  out.lateness_ns = late.mean_lateness_ns();
  out.cost_share = std::max(0.0, share);
  return out;
}

std::map<Section, Relieved> Relief::relieved() const {
  std::map<Section, Relieved> found;
  for (const auto& [section, bins] : bins_)
    if (const Relieved one = judge(section.second, bins); one.cost_share < 1) found.emplace(section, one);
  return found;
}

}  // namespace papaya::report
