#include "profiler/report/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/mpi_name.hpp"
#include "profiler/read/units.hpp"
#include "profiler/record/waits.hpp"
#include "profiler/report/notes.hpp"

namespace papaya::report {
namespace {

// Below this share of the run the verdict is that arrivals are balanced.
constexpr double balanced_share = 0.01;
// ... but it still names a rank that is late by much, at least so often and so long.
constexpr double noticeable_lasts = 0.5;
constexpr double noticeable_delay_ns = 100e3;
// Below so many calls the verdict counts them instead of giving a percentage.
constexpr std::uint64_t few_calls = 10;

// "at 87 % of the MPI_Allreduce calls", "at 3 of the 4 MPI_Allreduce calls"
std::string lasts_text(std::uint64_t times, std::uint64_t calls, std::string_view name) {
  if (calls == 1 && times == 1) return fmt::format("at the one {} call", name);
  if (calls < few_calls) return fmt::format("at {} of the {} {} calls", times, calls, name);
  return fmt::format("at {} of the {} calls", share_text(static_cast<double>(times) / static_cast<double>(calls)),
                     name);
}

class Verdict {
 public:
  explicit Verdict(const Analysis& analysis) : analysis_(analysis) {}

  std::string write() const;

 private:
  std::string pending_verdict() const;
  std::string late_verdict() const;
  std::string whole_run_verdict() const;

  const Analysis& analysis_;
};

// What the calls that are left do not tell.
std::string Verdict::whole_run_verdict() const {
  const WholeRun& whole = analysis_.whole_run;
  if (!analysis_.is_overwritten || whole.all.calls == 0) return {};
  std::string text = fmt::format(" Over the whole run waiting for late ranks{} costs {}",
                                 analysis_.nodes > 1 ? " of the same node" : "", share_text(analysis_.whole_run_share));
  if (analysis_.whole_run_share >= balanced_share && !whole.last.empty()) {
    const WholeRun::Last& top = whole.last.front();
    text += fmt::format(", {} of that for rank {}", share_text(top.caused_ns / whole.all.waiting_ns), top.rank);
  }
  return text + ".";
}

std::string Verdict::write() const {
  // A job that was killed in the middle of its work has ranks inside a call, too.
  if (const std::string stuck = pending_verdict(); !stuck.empty()) {
    if (analysis_.compared_calls == 0 || analysis_.ranks == 1) return stuck;
    std::string before = late_verdict();
    before[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(before[0])));
    return stuck + " Until then, " + before + whole_run_verdict();
  }
  if (analysis_.collectives.empty() && analysis_.events_kept == 0) {
    return analysis_.weak.empty()
               ? "The program made no collective calls, so there are no arrivals to compare."
               : "The program called none of MPI's collectives, only weakly consistent ones: their table is below.";
  }
  if (analysis_.ranks == 1) return "The job has one rank, so no rank can be late.";
  if (analysis_.compared_calls == 0) {
    const bool blocking = std::any_of(analysis_.collectives.begin(), analysis_.collectives.end(),
                                      [](const CollectiveFigures& c) { return c.form == Form::blocking; });
    return blocking ? "Arrivals cannot be compared: no blocking collective call of two or more ranks is in "
                      "the record "
                      "of all of them."
                    : "Arrivals cannot be compared: the program made no blocking collective calls.";
  }
  return late_verdict() + whole_run_verdict();
}

// Ranks that wait for one that never came are what the user of a hung job looks for.
std::string Verdict::pending_verdict() const {
  const PendingCall* worst = nullptr;
  for (const PendingCall& pending : analysis_.pending) {
    if (!pending.conflict.empty()) {
      return fmt::format("Ranks disagree about the collective: {}, and the record ends there.", pending.conflict);
    }
    if (pending.not_arrived.empty() && pending.unknown_not_arrived == 0) continue;
    if (worst == nullptr || pending.waited_ns > worst->waited_ns) worst = &pending;
  }
  if (worst == nullptr) return {};
  const bool one = worst->inside.size() == 1 && worst->inside.front().first == worst->inside.front().last;
  const std::string absent = worst->not_arrived.empty() ? fmt::format("{} of its ranks", worst->unknown_not_arrived)
                                                        : ranks_text(worst->not_arrived);
  std::string who = ranks_text(worst->inside);
  who[0] = 'R';
  return fmt::format("{} {} inside {}, call {} on {}, when the record ended, and {} had not arrived there.", who,
                     one ? "was" : "were", worst->name, worst->call, worst->communicator, absent);
}

std::string Verdict::late_verdict() const {
  const std::string prefix = analysis_.record.missing.empty()
                                 ? ""
                                 : fmt::format("Of the {} of {} ranks read: ", analysis_.ranks_read, analysis_.ranks);
  const std::string cost = fmt::format("waiting for late ranks costs {} of the {}", share_text(analysis_.waiting_share),
                                       analysis_.is_overwritten ? "recorded part of the run" : "run");
  const auto begin = [&](std::string sentence) {
    if (!prefix.empty()) sentence[0] = static_cast<char>(sentence[0] - 'A' + 'a');
    return prefix + sentence;
  };

  std::vector<const RankFigures*> by_cost;
  for (const RankFigures& rank : analysis_.late_ranks)
    if (rank.compared > 0) by_cost.push_back(&rank);
  std::sort(by_cost.begin(), by_cost.end(), [](const auto* a, const auto* b) { return a->rank < b->rank; });
  const auto count = static_cast<double>(by_cost.size());
  // Leaves them by what the others waited for them; the first of them stands out if it causes twice its part of all
  // that waiting (of two ranks three quarters; never less than a quarter), and no other much more than half as much.
  const double enough = by_cost.size() == 2 ? 0.75 : std::clamp(2 / count, 0.25, 0.5);
  const auto one_stands_out = [&](const auto& caused_ns, double all_ns) {
    std::stable_sort(by_cost.begin(), by_cost.end(),
                     [&](const auto* a, const auto* b) { return caused_ns(*a) > caused_ns(*b); });
    const double second_ns = by_cost.size() > 1 ? caused_ns(*by_cost[1]) : 0.0;
    return all_ns > 0 && caused_ns(*by_cost[0]) >= enough * all_ns && second_ns <= 0.6 * caused_ns(*by_cost[0]);
  };
  const auto most = [](const std::array<double, collective_count>& values) {
    return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
  };
  std::array<double, collective_count> waiting{};
  std::array<double, collective_count> worst_ns{};
  for (const CollectiveFigures& figures : analysis_.collectives) {
    if (figures.form != Form::blocking) continue;
    waiting[index_of(figures.collective)] = figures.waiting_ns;
    worst_ns[index_of(figures.collective)] = figures.imbalance.cluster.worst_ns;
  }
  const std::size_t worst = most(waiting);
  const auto caused_at_worst = [worst](const RankFigures& rank) { return rank.caused_ns_in[worst]; };
  const auto caused = [](const RankFigures& rank) { return rank.caused_ns; };
  // At the collective that most waiting is at, and if not there, then in all.
  const bool one_there =
      waiting[worst] >= 0.5 * analysis_.waiting_ns && one_stands_out(caused_at_worst, waiting[worst]);
  const RankFigures* const there = by_cost.front();
  const bool one_in_all = one_stands_out(caused, analysis_.waiting_ns);
  const bool one_rank = one_in_all || one_there;
  const RankFigures& top = one_in_all ? *by_cost.front() : *there;
  std::string one_rank_text;
  double lasts = 0;
  double delay_ns = 0;
  if (one_rank) {
    const std::size_t c = one_in_all ? most(top.caused_ns_in) : worst;
    const auto collective = static_cast<Collective>(c);
    const std::string name = mpi_name(collective, Form::blocking);
    delay_ns = top.delay_ns_in[c] / static_cast<double>(std::max<std::uint64_t>(1, top.delays_in[c]));
    const bool is_root = need_of(collective) == Need::root;
    const std::uint64_t times = is_root ? top.delays_in[c] : top.times_last_in[c];
    lasts = static_cast<double>(times) / static_cast<double>(top.compared_in[c]);
    one_rank_text =
        fmt::format("{} {}{}, by {} on average", is_root ? "it keeps the others waiting" : "it arrives last",
                    lasts_text(times, top.compared_in[c], name), is_root ? " as their root" : "", time_text(delay_ns));
    // Seldom, and by much.
    if (lasts < 0.5)
      one_rank_text += fmt::format(", which is {} of the waiting there", share_text(top.caused_ns_in[c] / waiting[c]));
  }
  if (analysis_.waiting_share < balanced_share) {
    if (one_rank && lasts >= noticeable_lasts && delay_ns >= noticeable_delay_ns) {
      return begin(fmt::format("Rank {} is late but it costs little: {}; {}.", top.rank, one_rank_text, cost));
    }
    return begin(fmt::format("Arrivals are balanced: {}.", cost));
  }
  if (one_rank) return begin(fmt::format("Rank {} is late: {}; {}.", top.rank, one_rank_text, cost));

  // A few ranks stand out if two, or at most a quarter, of four or more cause three quarters of the waiting.
  std::vector<std::int32_t> few;
  double caused_by_few = 0;
  for (const RankFigures* rank : by_cost) {
    if (caused_by_few >= 0.75 * analysis_.waiting_ns) break;
    caused_by_few += rank->caused_ns;
    few.push_back(rank->rank);
  }
  if (few.size() >= 2 && static_cast<double>(few.size()) <= std::max(2.0, count / 4) && count >= 4) {
    std::sort(few.begin(), few.end());
    std::string who = ranks_text(to_ranges(few));
    who[0] = 'R';
    return begin(fmt::format("{} are late: {} of all waiting is for them; {}.", who,
                             share_text(caused_by_few / analysis_.waiting_ns), cost));
  }
  one_stands_out(caused_at_worst, waiting[worst]);
  return begin(
      fmt::format("Arrivals are imbalanced and no single rank is responsible: at {} the last rank arrives {} after "
                  "the first on average; the most waiting there, {}, is for rank {}; {}.",
                  mpi_name(static_cast<Collective>(worst), Form::blocking), time_text(worst_ns[worst]),
                  share_text(caused_at_worst(*by_cost.front()) / waiting[worst]), by_cost.front()->rank, cost));
}

}  // namespace

std::string verdict_on(const Analysis& analysis) {
  const RecordFacts& facts = analysis.record;
  if (!facts.failure.empty()) return fmt::format("The record could not be analysed: {}.", facts.failure);
  if (!analysis.usable)
    return facts.problems.empty() ? "There is no record of a run here." : "None of the records here could be read.";
  return Verdict(analysis).write();
}

}  // namespace papaya::report
