#include "profiler/report/elsewhere.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/read/units.hpp"

namespace papaya::report {
namespace {

// Time outside of blocking collectives is told from this share of the ranks' time on.
constexpr double noticeable = 0.02;
// Of waiting, to name the rank that is to blame for it.
constexpr double enough_evidence = 0.8;

using Ranks = std::vector<const RankFigures*>;

Elsewhere in_finalize(Ranks ranks, double finalize_ns, std::string_view share) {
  const auto by_end = [](const auto* a, const auto* b) { return a->time.finalize_ns < b->time.finalize_ns; };
  std::nth_element(ranks.begin(), ranks.begin() + 1, ranks.end(), by_end);
  const RankFigures& last = **std::min_element(ranks.begin(), ranks.begin() + 2, by_end);
  const double second_ns = std::max(ranks[0]->time.finalize_ns, ranks[1]->time.finalize_ns);
  // Alone, if that is most of the waiting.
  if (second_ns * static_cast<double>(ranks.size() - 1) >= enough_evidence * finalize_ns)
    return {fmt::format(
                " In MPI_Finalize the others wait for rank {}, which comes there {} after them: {} of all ranks' time.",
                last.rank, time_text(second_ns), share),
            last.rank, true};
  return {fmt::format(" Ranks come to MPI_Finalize at different times and wait there for the last, rank {}: {} of all "
                      "ranks' time.",
                      last.rank, share),
          -1, true};
}

}  // namespace

double median_computing_ns(const Analysis& analysis) {
  std::vector<double> values;
  for (const RankFigures& rank : analysis.late_ranks)
    if (rank.time.is_known) values.push_back(rank.time.computing_ns);
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Elsewhere elsewhere_of(const Analysis& analysis, std::int32_t named) {
  Ranks ranks;
  double elsewhere_ns = 0;
  double finalize_ns = 0;
  for (const RankFigures& rank : analysis.late_ranks) {
    if (!rank.time.is_known) continue;
    ranks.push_back(&rank);
    elsewhere_ns += rank.time.elsewhere_ns();
    finalize_ns += rank.time.finalize_ns;
  }
  const double all_ns = analysis.run_ns * static_cast<double>(ranks.size());
  if (ranks.size() < 2 || elsewhere_ns < noticeable * all_ns) return {};
  const auto share = [all_ns](double ns) { return share_text(std::min(1.0, ns / all_ns)); };
  if (finalize_ns >= 0.5 * elsewhere_ns) return in_finalize(std::move(ranks), finalize_ns, share(finalize_ns));

  Elsewhere elsewhere;
  elsewhere.text =
      fmt::format(" Outside of blocking collectives {} of all ranks' time passes in MPI", share(elsewhere_ns));
  if (!analysis.functions.empty())
    elsewhere.text +=
        fmt::format(", most in {} ({})", analysis.functions.front().name, share(analysis.functions.front().ns));
  // A rank for which the others wait computes while they do.
  std::sort(ranks.begin(), ranks.end(),
            [](const auto* a, const auto* b) { return a->time.computing_ns > b->time.computing_ns; });
  const RankFigures& top = *ranks.front();
  const double more_ns = top.time.computing_ns - ranks[ranks.size() / 2]->time.computing_ns;
  std::vector<double> others_ns;
  for (const RankFigures* rank : ranks)
    if (rank != &top) others_ns.push_back(rank->time.elsewhere_ns() + rank->waited_ns);
  const auto middle = others_ns.begin() + static_cast<std::ptrdiff_t>(others_ns.size() / 2);
  std::nth_element(others_ns.begin(), middle, others_ns.end());
  const double waiting_ns = *middle - top.time.elsewhere_ns() - top.waited_ns;
  if (waiting_ns < 0.5 * *middle || more_ns < enough_evidence * waiting_ns) {
    elsewhere.text += fmt::format("; no rank computes enough longer than the others to explain it{}.",
                                  analysis.crowded_ranks > 0 ? ", and ranks share cores" : "");
    return elsewhere;
  }
  elsewhere.rank = top.rank;
  elsewhere.text += named == top.rank ? "."
                                      : fmt::format(
                                            ": rank {} computes {} longer than the median of the ranks, and the "
                                            "others wait meanwhile.",
                                            top.rank, time_text(more_ns));
  return elsewhere;
}

}  // namespace papaya::report
