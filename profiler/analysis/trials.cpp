#include "profiler/analysis/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/mpi_name.hpp"
#include "profiler/analysis/communicator_names.hpp"
#include "profiler/read/units.hpp"

namespace papaya::report {
namespace {

std::uint64_t power_of_two(int exponent) {
  return exponent > 63 ? ~std::uint64_t{0} : std::uint64_t{1} << exponent;
}

// Of a row's changes of one kind, those that are still there.
std::uint32_t kept_of(std::uint32_t changes) {
  return std::min<std::uint32_t>(changes, trace::trial_change_capacity);
}

TrialFigures figures_of(const trace::TrialRow& row, const RankFile& file, const NodeClock& clock, double begin_ns) {
  TrialFigures out;
  const auto collective = static_cast<Collective>(row.collective);
  out.name = mpi_name(collective, Form::blocking);
  out.has_bytes = collective != Collective::barrier;
  out.least_bytes = row.size_class == 0 ? 0 : power_of_two(row.size_class - 1) + 1;
  out.most_bytes = power_of_two(row.size_class);
  out.call_site = frames_of(file, row.call_site);
  out.calls = row.calls;
  out.trials = row.trials;
  out.algorithm = algorithm_name(file, row.in_use);
  for (std::size_t i = 0; i < row.tried_count; ++i)
    out.tried.push_back({algorithm_name(file, row.tried[i].algorithm),
                         static_cast<trace::TriedState>(row.tried[i].state),
                         static_cast<double>(row.tried[i].median_ns), row.tried[i].samples});
  std::stable_sort(out.tried.begin(), out.tried.end(), [](const auto& a, const auto& b) {
    return std::tie(a.state, a.median_ns) < std::tie(b.state, b.median_ns);
  });
  out.changes = row.changes;
  for (std::uint32_t n = row.changes - kept_of(row.changes); n < row.changes; ++n) {
    const trace::TrialChange& change = row.change[n % trace::trial_change_capacity];
    out.last_changes.push_back({algorithm_name(file, change.before), algorithm_name(file, change.algorithm),
                                change.calls, clock.ns(change.ticks) - begin_ns});
  }
  out.arrivals_changes = row.arrivals_changes;
  for (std::uint32_t n = row.arrivals_changes - kept_of(row.arrivals_changes); n < row.arrivals_changes; ++n) {
    const trace::ArrivalsChange& change = row.arrivals[n % trace::trial_change_capacity];
    out.last_arrivals.push_back(
        {static_cast<PatternClass>(change.pattern), change.straggler, change.calls, clock.ns(change.ticks) - begin_ns});
  }
  out.spent_ns = static_cast<double>(row.spent_ns);
  return out;
}

}  // namespace

std::string_view state_name(trace::TriedState state) {
  switch (state) {
    case trace::TriedState::kept:
      return "kept";
    case trace::TriedState::slower:
      return "slower";
    case trace::TriedState::cannot_serve:
      return "cannot_serve";
    case trace::TriedState::not_measured:
      break;
  }
  return "not_measured";
}

std::string TrialFigures::tried_text() const {
  std::string text;
  for (const Tried& one : tried) {
    text += text.empty() ? "" : ", ";
    switch (one.state) {
      case trace::TriedState::kept:
        text += fmt::format("{} {}", one.algorithm, time_text(one.median_ns));
        break;
      case trace::TriedState::slower:
        text += fmt::format("{} {} (dropped)", one.algorithm, time_text(one.median_ns));
        break;
      case trace::TriedState::cannot_serve:
        text += one.algorithm + " cannot serve";
        break;
      case trace::TriedState::not_measured:
        text += one.algorithm + " served no call";
        break;
    }
  }
  // The quickest comes first.
  const auto serves = std::find_if(tried.begin(), tried.end(), [&](const Tried& one) {
    return one.algorithm == algorithm && one.state == trace::TriedState::kept;
  });
  if (serves != tried.end() && serves->median_ns > tried.front().median_ns)
    text += fmt::format("; the difference may be chance, so {} stays", algorithm);
  return text;
}

std::string TrialFigures::site_text() const {
  return call_site.empty() ? std::string() : "from " + call_site_text(call_site);
}

std::string TrialFigures::change_text() const {
  if (last_changes.empty()) return {};
  const Change& last = last_changes.back();
  return fmt::format("{} instead of {} from call {} on, {} after MPI_Init", last.algorithm, last.before,
                     count_text(last.calls), time_text(last.at_ns));
}

std::string TrialFigures::Arrivals::text() const {
  const std::string name = name_of(pattern);
  return straggler < 0 ? name : fmt::format("{}, rank {} late", name, straggler);
}

std::string TrialFigures::arrivals_text() const {
  if (last_arrivals.empty()) return {};
  const Arrivals& last = last_arrivals.back();
  std::string text = fmt::format("arrivals {} from call {} on, {} after MPI_Init", last.text(), count_text(last.calls),
                                 time_text(last.at_ns));
  if (last_arrivals.size() > 1) text += ", before that " + last_arrivals[last_arrivals.size() - 2].text();
  return text;
}

std::vector<TrialFigures> trial_figures(const Run& run, const Clocks& clocks, double begin_ns) {
  std::vector<TrialFigures> all;
  std::map<std::uint64_t, std::string> names;
  for (std::size_t f = 0; f < run.files.size(); ++f)
    for (const trace::TrialRow& row : run.files[f].trials) {
      if (names.empty()) names = communicator_names(run);
      all.push_back(figures_of(row, run.files[f], clocks.of_file(f), begin_ns));
      const auto name = names.find(row.communicator);
      all.back().communicator =
          name == names.end() ? fmt::format("communicator {:06x}", row.communicator & 0xffffff) : name->second;
    }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.calls > b.calls; });
  return all;
}

}  // namespace papaya::report
