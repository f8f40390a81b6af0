#include "profiler/report/elsewhere.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/analysis/computing.hpp"
#include "profiler/read/units.hpp"
#include "profiler/report/notes.hpp"

namespace papaya::report {
namespace {

// Time outside of blocking collectives is told from this share of the ranks' time on.
constexpr double noticeable = 0.02;
// Of waiting, to do something about it, and to tell of it at all.
constexpr double most_of_it = 0.5;
constexpr double worth_telling = 0.25;
// A rank that computes longer by less than this part of what the others wait is none that they wait for.
constexpr double least_part = 0.1;
// So few ranks may compute longer one after the other; more than that rather do so at the same time.
constexpr std::size_t most_in_turn = 4;

using Ranks = std::vector<const RankFigures*>;

void tell_of_finalize(Elsewhere& elsewhere, Ranks ranks, double finalize_ns, std::string_view share) {
  elsewhere.in_finalize = true;
  const auto by_end = [](const auto* a, const auto* b) { return a->time.finalize_ns < b->time.finalize_ns; };
  std::nth_element(ranks.begin(), ranks.begin() + 1, ranks.end(), by_end);
  const RankFigures& last = **std::min_element(ranks.begin(), ranks.begin() + 2, by_end);
  const double second_ns = std::max(ranks[0]->time.finalize_ns, ranks[1]->time.finalize_ns);
  // Alone, if that is most of the waiting.
  if (second_ns * static_cast<double>(ranks.size() - 1) >= enough_evidence * finalize_ns) {
    elsewhere.ranks = {last.rank};
    elsewhere.text += fmt::format(
        " In MPI_Finalize the others wait for rank {}, which comes there {} after them: {} of all ranks' time.",
        last.rank, time_text(second_ns), share);
    return;
  }
  elsewhere.text += fmt::format(
      " Ranks come to MPI_Finalize at different times and wait there for the last, rank {}: {} of all ranks' time.",
      last.rank, share);
}

// Ranks for which others wait compute while they do.
struct Longest {
  std::size_t count = 0;      // of the ranks that compute most
  double least_more_ns = 0;   // than the median of the others, that one of them computes
  double most_more_ns = 0;    // that one of them does
  double waiting_ns = 0;      // of the others, their mean
  double together_share = 0;  // of that: what is explained if they compute longer at the same time
  double in_turn_share = 0;   // if they do so one after the other

  double share() const { return std::max(together_share, in_turn_share); }
};

// `ranks` by computing, most first. The fewest ranks that explain enough, with all that are like them; or else those
// that explain most.
Longest longest_of(const Ranks& ranks) {
  const std::size_t size = ranks.size();
  const auto computing = [&](std::size_t i) { return ranks[i]->time.computing_ns; };
  double waiting_ns = 0;  // of the ranks from `count` on
  for (const RankFigures* rank : ranks) waiting_ns += rank->time.elsewhere_ns() + rank->waited_ns;
  double sum_ns = 0;  // of the first `count`
  Longest best;
  for (std::size_t count = 1; count < size; ++count) {
    const RankFigures& added = *ranks[count - 1];
    waiting_ns -= added.time.elsewhere_ns() + added.waited_ns;
    sum_ns += added.time.computing_ns;
    const double median_ns = computing(count + (size - count) / 2);
    Longest one{.count = count,
                .least_more_ns = computing(count - 1) - median_ns,
                .most_more_ns = computing(0) - median_ns,
                .waiting_ns = waiting_ns / static_cast<double>(size - count)};
    const bool next_is_alike = computing(count) - median_ns >= enough_evidence * one.most_more_ns;
    if (next_is_alike || one.waiting_ns <= 0 || one.least_more_ns < least_part * one.waiting_ns) continue;
    one.together_share = one.most_more_ns / one.waiting_ns;
    if (count > 1 && count <= most_in_turn)
      one.in_turn_share = (sum_ns - static_cast<double>(count) * median_ns) / one.waiting_ns;
    if (one.share() > best.share()) best = one;
    if (best.share() >= enough_evidence) break;
  }
  return best;
}

void tell_of_longest(const Analysis& analysis, Elsewhere& elsewhere, Ranks ranks, std::int32_t named) {
  std::sort(ranks.begin(), ranks.end(),
            [](const auto* a, const auto* b) { return a->time.computing_ns > b->time.computing_ns; });
  const Longest longest = longest_of(ranks);
  if (longest.share() < worth_telling) {
    elsewhere.text +=
        "; no rank computes enough longer than the others to explain it: ranks may be late in turn, or MPI "
        "takes that time itself. Only blocking collectives are compared call by call.";
    return;
  }
  std::vector<std::int32_t> numbers;
  bool are_asleep = true;
  for (std::size_t i = 0; i < longest.count; ++i) {
    numbers.push_back(ranks[i]->rank);
    are_asleep = are_asleep && is_mostly_asleep(analysis, *ranks[i]);
  }
  std::sort(numbers.begin(), numbers.end());
  const std::string least = time_text(longest.least_more_ns);
  const std::string most = time_text(longest.most_more_ns);
  elsewhere.more = least == most ? most : fmt::format("{} to {}", least, most);
  const bool is_one = longest.count == 1;
  const bool is_explained = longest.share() >= enough_evidence;
  if (is_explained && is_one && numbers.front() == named) {
    elsewhere.text += ".";
  } else {
    const char* const does = are_asleep ? (is_one ? "is outside MPI" : "are outside MPI")
                             : is_one   ? "computes"
                                        : "compute";
    elsewhere.text += fmt::format(": {} {} {} longer than the median of the others, ", ranks_text(to_ranges(numbers)),
                                  does, elsewhere.more);
    if (longest.together_share >= enough_evidence) {
      elsewhere.text += "which wait meanwhile.";
    } else {
      elsewhere.text +=
          fmt::format("which explains {} of what those wait", share_text(std::min(1.0, longest.together_share)));
      if (longest.in_turn_share > 0)
        elsewhere.text +=
            fmt::format(", or {} if they do so at different times", share_text(std::min(1.0, longest.in_turn_share)));
      elsewhere.text += ". Only blocking collectives are compared call by call.";
    }
  }
  if (longest.share() >= most_of_it) elsewhere.ranks = std::move(numbers);
}

}  // namespace

double asleep_ns(const Analysis& analysis, const RankFigures& rank) {
  if (!rank.usage.is_known || !rank.time.is_known) return 0;
  const double busy = rank.usage.cpu_share + (rank.usage.knows_core_wait ? rank.usage.core_wait_share : 0);
  return std::max(0.0, rank.time.computing_ns - busy * analysis.run_ns);
}

bool is_mostly_asleep(const Analysis& analysis, const RankFigures& rank) {
  return rank.time.computing_ns > 0 && asleep_ns(analysis, rank) >= 0.5 * rank.time.computing_ns;
}

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
  if (ranks.size() < 2) return {};
  const auto share = [all_ns](double ns) { return share_text(std::min(1.0, ns / all_ns)); };
  Elsewhere elsewhere;
  if (const double ns = analysis.record.intercommunicator_ns; ns >= noticeable * all_ns)
    elsewhere.text = fmt::format(
        " In collectives on intercommunicators, which are not compared, {} of all ranks' time passes.", share(ns));
  if (elsewhere_ns < noticeable * all_ns) return elsewhere;
  if (finalize_ns >= 0.5 * elsewhere_ns) {
    tell_of_finalize(elsewhere, std::move(ranks), finalize_ns, share(finalize_ns));
    return elsewhere;
  }
  elsewhere.text +=
      fmt::format(" Outside of blocking collectives {} of all ranks' time passes in MPI", share(elsewhere_ns));
  if (!analysis.functions.empty())
    elsewhere.text +=
        fmt::format(", most in {} ({})", analysis.functions.front().name, share(analysis.functions.front().ns));
  tell_of_longest(analysis, elsewhere, std::move(ranks), named);
  return elsewhere;
}

}  // namespace papaya::report
