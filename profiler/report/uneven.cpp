#include "profiler/report/uneven.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/read/units.hpp"
#include "profiler/report/elsewhere.hpp"
#include "profiler/report/notes.hpp"

namespace papaya::report {
namespace {

// Of the run, for a rank to compute much longer.
constexpr double much = 0.05;
// Of what the rank that computes longest does so longer: for others to be like it, and to name the call site.
constexpr double most_of_it = 0.8;

// Came to MPI_Finalize as late as the last, if the wait there was no longer than this part of the longest one.
constexpr double as_last = 0.1;

using Ranks = std::vector<const RankFigures*>;

// Empty unless all their times are known.
Ranks ranks_of(const Analysis& analysis) {
  Ranks ranks;
  for (const RankFigures& rank : analysis.late_ranks) {
    if (!rank.time.is_known) return {};
    ranks.push_back(&rank);
  }
  return ranks.size() < 2 ? Ranks() : ranks;
}

// Of `ranks` those that compute at least so much longer.
Uneven uneven_among(const Analysis& analysis, const Ranks& ranks, double least_ns) {
  if (ranks.empty()) return {};
  const RankFigures& top = **std::max_element(ranks.begin(), ranks.end(), [](const auto* a, const auto* b) {
    return a->time.computing_ns < b->time.computing_ns;
  });
  const double median_ns = median_computing_ns(analysis);
  const double more_ns = top.time.computing_ns - median_ns;
  if (more_ns <= 0 || more_ns < least_ns) return {};
  Uneven uneven;
  for (const RankFigures* rank : ranks)
    if (rank->time.computing_ns - median_ns >= most_of_it * more_ns) uneven.ranks.push_back(rank->rank);
  std::sort(uneven.ranks.begin(), uneven.ranks.end());
  uneven.more = time_text(more_ns);
  uneven.is_asleep = is_mostly_asleep(analysis, top);
  if (top.long_ns < most_of_it * more_ns) return uneven;
  uneven.where = top.long_at.empty() ? "before its collective calls"
                                     : fmt::format("before calls at {}{}", frame_text(top.long_at.front()),
                                                   top.long_there_ns < most_of_it * more_ns ? " and other lines" : "");
  return uneven;
}

}  // namespace

Uneven uneven_computing(const Analysis& analysis) {
  return uneven_among(analysis, ranks_of(analysis), much * analysis.run_ns);
}

Uneven uneven_before_the_end(const Analysis& analysis) {
  const Ranks all = ranks_of(analysis);
  double longest_ns = 0;
  for (const RankFigures* rank : all) longest_ns = std::max(longest_ns, rank->time.finalize_ns);
  Ranks last;
  for (const RankFigures* rank : all)
    if (rank->time.finalize_ns <= as_last * longest_ns) last.push_back(rank);
  const Uneven uneven = uneven_among(analysis, last, std::max(most_of_it * longest_ns, much * analysis.run_ns));
  return uneven.where.empty() ? Uneven() : uneven;
}

std::string text_of(const Uneven& uneven) {
  const bool is_one = uneven.ranks.size() == 1;
  std::string who = ranks_text(to_ranges(uneven.ranks));
  who[0] = 'R';
  const char* const does = uneven.is_asleep ? (is_one ? "is outside MPI" : "are outside MPI up to")
                           : is_one         ? "computes"
                                            : "compute up to";
  return fmt::format(" {} {} {} longer than the median of the ranks{}.", who, does, uneven.more,
                     uneven.where.empty() ? "" : ", " + uneven.where);
}

}  // namespace papaya::report
