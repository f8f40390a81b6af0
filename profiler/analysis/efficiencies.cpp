#include "profiler/analysis/efficiencies.hpp"

#include <numeric>

namespace papaya::report {

void measure_efficiencies(const Run& run, std::span<const Group> groups, const std::vector<RankTime>& ranks,
                          Analysis& analysis) {
  std::vector<std::size_t> files(ranks.size());
  std::iota(files.begin(), files.end(), std::size_t{0});
  analysis.efficiency = efficiency_of(run, ranks, files, analysis.run_ns);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    if (group.members.size() != static_cast<std::size_t>(group.size)) continue;
    files.clear();
    for (const Member& member : group.members) files.push_back(member.file);
    analysis.communicators[g].efficiency = efficiency_of(run, ranks, files, analysis.run_ns);
  }
}

}  // namespace papaya::report
