#include "profiler/read/read_trials.hpp"

#include <algorithm>
#include <limits>

#include "base/collective.hpp"

namespace papaya::report {
namespace {

constexpr std::uint32_t last_pattern = 5;
constexpr std::uint64_t most_bytes = trace::trial_capacity * sizeof(trace::TrialRow);

bool is_possible(const trace::TrialRow& row, std::size_t algorithms, std::size_t call_sites) {
  const auto is_known = [&](std::uint32_t algorithm) { return algorithm < algorithms; };
  const std::size_t changes = std::min<std::size_t>(row.changes, trace::trial_change_capacity);
  const std::size_t patterns = std::min<std::size_t>(row.arrivals_changes, trace::trial_change_capacity);
  return (row.trials > 0 || patterns > 0 || row.call_site != 0) && row.collective < collective_count &&
         row.size_class <= 64 && row.call_site <= call_sites && is_known(row.in_use) &&
         row.tried_count <= trace::tried_capacity &&
         std::all_of(row.tried, row.tried + row.tried_count,
                     [&](const trace::TriedAlgorithm& one) {
                       return is_known(one.algorithm) &&
                              one.state <= static_cast<std::uint32_t>(trace::TriedState::not_measured);
                     }) &&
         std::all_of(row.change, row.change + changes,
                     [&](const trace::TrialChange& one) { return is_known(one.algorithm) && is_known(one.before); }) &&
         std::all_of(row.arrivals, row.arrivals + patterns,
                     [](const trace::ArrivalsChange& one) { return one.pattern > 0 && one.pattern <= last_pattern; });
}

}  // namespace

std::uint64_t end_of_trials(const trace::Header& header) {
  if (header.trials_offset == 0) return 0;
  return header.trials_offset > std::numeric_limits<std::uint64_t>::max() - most_bytes
             ? std::numeric_limits<std::uint64_t>::max()
             : header.trials_offset + most_bytes;
}

void read_trials(const Source& source, const trace::Header& header, RankFile& file) {
  if (header.trials_offset == 0 || header.trial_count == 0) return;
  file.trials.resize(std::min(header.trial_count, trace::trial_capacity));
  if (!source.read(header.trials_offset, file.trials.data(), file.trials.size() * sizeof(trace::TrialRow)))
    file.trials.clear();
  // One that is being written, while the job runs, too.
  std::erase_if(file.trials, [&](const trace::TrialRow& row) {
    return !is_possible(row, file.algorithms->size(), file.call_sites->size());
  });
}

}  // namespace papaya::report
