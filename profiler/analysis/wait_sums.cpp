#include "profiler/analysis/wait_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "profiler/analysis/archive.hpp"

namespace papaya::report {

void WaitSums::add(Collective collective, const Arrivals& arrivals) {
  const std::size_t kind = index_of(wait_kind_of(collective));
  for (std::size_t i = 0; i < arrivals.size(); ++i) waited_ns_[arrivals.files[i]][kind] += arrivals.waits_ns[i];
  if (wait_names[kind].late_exit.empty()) return;
  double first_ns = std::numeric_limits<double>::max();
  for (const double exit_ns : arrivals.exits_ns)
    if (!std::isnan(exit_ns)) first_ns = std::min(first_ns, exit_ns);
  // By clocks that are off, a rank may leave before another one arrives.
  first_ns = std::max(first_ns, arrivals.arrivals_ns[arrivals.order.last]);
  for (const double exit_ns : arrivals.exits_ns)
    if (!std::isnan(exit_ns)) late_exit_ns_[kind] += std::max(0.0, exit_ns - first_ns);
}

void WaitSums::merge(const WaitSums& next) {
  for (std::size_t kind = 0; kind < wait_kind_count; ++kind) {
    late_exit_ns_[kind] += next.late_exit_ns_[kind];
    for (std::size_t f = 0; f < waited_ns_.size(); ++f) waited_ns_[f][kind] += next.waited_ns_[f][kind];
  }
}

void WaitSums::pack(Archive& archive) {
  archive(waited_ns_, late_exit_ns_);
}

void WaitSums::write(std::vector<RankFigures>& ranks, Analysis& analysis) const {
  for (std::size_t kind = 0; kind < wait_kind_count; ++kind) {
    WaitFigures& figures = analysis.waits[kind];
    figures.late_exit_ns = late_exit_ns_[kind];
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const double ns = waited_ns_[i][kind];
      ranks[i].waited_ns_in[kind] = ns;
      figures.ns += ns;
      if (ns <= figures.most_ns) continue;
      figures.most_ns = ns;
      figures.most_rank = ranks[i].rank;
    }
  }
}

}  // namespace papaya::report
