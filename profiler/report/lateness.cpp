#include "profiler/report/lateness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <vector>

#include "base/mpi_name.hpp"
#include "profiler/analysis/computing.hpp"
#include "profiler/read/units.hpp"
#include "profiler/record/waits.hpp"
#include "profiler/report/elsewhere.hpp"
#include "profiler/report/notes.hpp"
#include "profiler/report/uneven.hpp"

namespace papaya::report {
namespace {

// A rank that costs little is still named if it is late by much, at least so often and so long.
constexpr double noticeable_lasts = 0.5;
constexpr double noticeable_delay_ns = 100e3;
// A largest delay below this times the median is not worth telling beside it.
constexpr double alike = 1.25;
// Delays that are half of the waiting and are this share of the calls or less are outliers.
constexpr double seldom = 0.1;

// What begins with a rank is told beside what it causes itself if it is so many times as much.
constexpr double passed_on_from = 1.1;

// Calls at which most is waited are told one by one if they are at most this share of the calls ...
constexpr double few_calls_share = 0.05;
// ... and make up at least so much of the waiting.
constexpr double concentrated_share = 0.5;
// More ranges of ranks than this are no answer to the question who is late.
constexpr std::size_t most_ranges_named = 8;

// "at 87 of the 100 MPI_Allreduce calls", "at all 4 MPI_Allreduce calls"
std::string calls_text(std::uint64_t times, std::uint64_t calls, std::string_view name) {
  if (times != calls) return fmt::format("at {} of the {} {} calls", count_text(times), count_text(calls), name);
  if (calls == 1) return fmt::format("at the one {} call", name);
  return calls == 2 ? fmt::format("at both {} calls", name)
                    : fmt::format("at all {} {} calls", count_text(calls), name);
}

class Judge {
 public:
  explicit Judge(const Analysis& analysis) : analysis_(analysis) {}

  Lateness judge() {
    lateness_.text = late_verdict();
    return std::move(lateness_);
  }

 private:
  std::string late_verdict();
  std::string costly_calls_verdict();
  std::string common_origin_verdict();
  const RankFigures* origin_of(const RankFigures& rank) const;
  std::string reason_of(const RankFigures& rank);
  std::string habit_of(const RankFigures& rank, std::size_t collective, const std::string& subject = "it") const;
  std::string share_of_time(double waiting_ns) const;

  // What every share is of.
  std::string_view what() const { return analysis_.is_overwritten ? "the recorded part of the run" : "the run"; }

  const Analysis& analysis_;
  Lateness lateness_;
};

// "3.4 % of the run": the one denominator of every sentence here is the time of all ranks together.
std::string Judge::share_of_time(double waiting_ns) const {
  return share_text(analysis_.recorded_ns > 0 ? std::min(1.0, waiting_ns / analysis_.recorded_ns) : 0.0);
}

// The rank that most of the delay of a late one began with; null: the late one itself, or that is not known.
const RankFigures* Judge::origin_of(const RankFigures& rank) const {
  if (rank.caused_ns <= 0 || rank.most_passed_on_ns < enough_evidence * rank.caused_ns) return nullptr;
  const auto from = std::find_if(analysis_.late_ranks.begin(), analysis_.late_ranks.end(),
                                 [&](const RankFigures& other) { return other.rank == rank.passed_on_from; });
  return from == analysis_.late_ranks.end() ? nullptr : &*from;
}

// What is known of why the rank is late itself.
std::string Judge::reason_of(const RankFigures& rank) {
  if (const WhySlow why = why_slow(rank.rank, rank.usage, analysis_.median_usage); why.reason != SlowReason::unknown)
    return " " + why.text;
  if (!rank.time.is_known || rank.unknown_origin_ns + rank.passed_on_ns < enough_evidence * rank.caused_ns) return {};
  lateness_.is_explained = false;
  if (rank.time.computing_ns > alike * median_computing_ns(analysis_))
    return fmt::format(" What it computes longer than the others is not all of that{}.",
                       analysis_.crowded_ranks > 0 ? ": ranks share cores" : "");
  return fmt::format(
      " But rank {} computes no longer than the others between its calls: where its delay comes from is not known.",
      rank.rank);
}

// A few calls that cost more than all the others together are neither a habit nor an average.
std::string Judge::costly_calls_verdict() {
  const std::vector<CostlyCall>& costly = analysis_.costly_calls;
  double waiting_ns = 0;
  std::size_t count = 0;
  while (count < costly.size() && waiting_ns < concentrated_share * analysis_.waiting_ns)
    waiting_ns += costly[count++].waiting_ns;
  if (count == 0 || waiting_ns < concentrated_share * analysis_.waiting_ns ||
      static_cast<double>(count) > few_calls_share * static_cast<double>(analysis_.compared_calls))
    return {};
  const CostlyCall& top = costly.front();
  const bool is_one_rank = std::all_of(costly.begin(), costly.begin() + static_cast<std::ptrdiff_t>(count),
                                       [&](const CostlyCall& call) { return call.rank == top.rank; });
  std::string text = count == 1
                         ? fmt::format("One of the {} calls compared costs", count_text(analysis_.compared_calls))
                         : fmt::format("{} of the {} calls compared cost", count, count_text(analysis_.compared_calls));
  text += fmt::format(" {} of {}", share_of_time(waiting_ns), what());
  if (count > 1)
    text += is_one_rank ? fmt::format(", all for rank {}; the longest is", top.rank) : "; the longest is";
  else
    text += ":";
  text += fmt::format(" {}, call {} on {}", top.name, count_text(top.call), top.communicator);
  if (!top.frames.empty()) text += ", at " + frame_text(top.frames.front());
  text += top.waits_alone >= 0
              ? fmt::format(", where rank {} alone waited, {}, for {}", top.waits_alone, time_text(top.delay_ns),
                            ranks_text(top.late))
              : fmt::format(", where the longest wait was {}, for {}", time_text(top.delay_ns), ranks_text(top.late));
  return text + fmt::format(". Waiting for late ranks at all other calls costs {}.",
                            share_of_time(analysis_.waiting_ns - waiting_ns));
}

// "it arrives last at 87 of the 100 MPI_Allreduce calls, typically by 1.92 ms, at most by 2.1 ms"
std::string Judge::habit_of(const RankFigures& rank, std::size_t collective, const std::string& subject) const {
  const auto which = static_cast<Collective>(collective);
  const bool is_root = need_of(which) == Need::root;
  const std::uint64_t times = is_root ? rank.delays_in[collective] : rank.times_last_in[collective];
  const double median_ns = rank.median_delay_ns_in[collective];
  const double largest_ns = rank.largest_delay_ns_in[collective];
  std::string text =
      fmt::format(fmt::runtime(is_root ? "as root {} keeps the others waiting {}, " : "{} arrives last {}, "), subject,
                  calls_text(times, rank.compared_in[collective], mpi_name(which, Form::blocking)));
  // Often last by next to nothing: what is told is how often it is late by more.
  if (const std::uint64_t notable = rank.notable_delays_in[collective]; notable > 0 && notable < times)
    return text + fmt::format("{} of them by {}{}, else by next to nothing", count_text(notable),
                              time_text(rank.notable_delay_ns_in[collective]),
                              largest_ns < alike * rank.notable_delay_ns_in[collective]
                                  ? ""
                                  : fmt::format(" on average, at most by {}", time_text(largest_ns)));
  text += largest_ns < alike * median_ns
              ? fmt::format("by {}", time_text(median_ns))
              : fmt::format("typically by {}, at most by {}", time_text(median_ns), time_text(largest_ns));
  const std::uint64_t long_ones = rank.long_delays_in[collective];
  if (static_cast<double>(long_ones) < seldom * static_cast<double>(times))
    text += fmt::format("; {} of them, by about {} or more, are half of the waiting for it there",
                        count_text(long_ones), time_text(rank.long_delay_ns_in[collective]));
  return text;
}

// Several ranks hold up others, but all of that began with one. Empty if it did not.
std::string Judge::common_origin_verdict() {
  const auto origin = std::max_element(analysis_.late_ranks.begin(), analysis_.late_ranks.end(),
                                       [](const auto& a, const auto& b) { return a.began_ns < b.began_ns; });
  if (origin == analysis_.late_ranks.end() || origin->began_ns < enough_evidence * analysis_.waiting_ns) return {};
  const RankFigures* through = nullptr;  // most of what it began
  for (const RankFigures& rank : analysis_.late_ranks)
    if (rank.passed_on_from == origin->rank && rank.rank != origin->rank &&
        (through == nullptr || rank.most_passed_on_ns > through->most_passed_on_ns))
      through = &rank;
  lateness_.finding = Finding::costly_rank;
  lateness_.rank = origin->rank;
  std::string text = fmt::format("Rank {} is late{}: waiting that begins with it costs {} of {}", origin->rank,
                                 origin->late_at.empty() ? "" : ", at " + frame_text(origin->late_at.front()),
                                 share_of_time(origin->began_ns), what());
  if (through != nullptr && through->most_passed_on_ns >= 0.5 * origin->began_ns)
    text += fmt::format(", most of it where rank {} holds up the others in turn", through->rank);
  return text + ".";
}

std::string Judge::late_verdict() {
  const std::string prefix = analysis_.record.missing.empty()
                                 ? ""
                                 : fmt::format("Of the {} of {} ranks read: ", analysis_.ranks_read, analysis_.ranks);
  const std::string cost =
      fmt::format("waiting for late ranks costs {} of {}", share_text(analysis_.waiting_share), what());
  const auto begin = [&](std::string sentence) {
    return prefix.empty() ? sentence : prefix + decapitalised(std::move(sentence));
  };
  // "12 % of the run, for all late ranks 13 %"
  const auto cost_of = [&](double caused_ns) {
    const std::string own = share_of_time(caused_ns);
    const std::string all = share_text(analysis_.waiting_share);
    return fmt::format("{} of {}{}", own, what(), own == all ? "" : ", for all late ranks " + all);
  };
  // "49 % of the run, with what other ranks pass on of it 74 %"
  const auto cost_with_passed_on = [&](const RankFigures& rank) {
    if (rank.began_ns < passed_on_from * rank.caused_ns) return cost_of(rank.caused_ns);
    const std::string with = share_of_time(rank.began_ns);
    const std::string all = share_text(analysis_.waiting_share);
    return fmt::format("{} of {}, with what other ranks pass on of it {}{}", share_of_time(rank.caused_ns), what(),
                       with, with == all ? "" : ", for all late ranks " + all);
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
  const std::size_t where = one_in_all ? most(top.caused_ns_in) : worst;
  if (analysis_.waiting_share < balanced_share) {
    const bool is_noticeable =
        one_rank && top.median_delay_ns_in[where] >= noticeable_delay_ns &&
        static_cast<double>(top.delays_in[where]) >= noticeable_lasts * static_cast<double>(top.compared_in[where]);
    lateness_.finding = is_noticeable ? Finding::late_rank : Finding::balanced;
    if (!is_noticeable) return begin(little_waiting(analysis_, cost));
    return begin(fmt::format("Rank {} is late but it costs little: {}; {}.", top.rank, habit_of(top, where), cost));
  }
  if (const std::string concentrated = costly_calls_verdict(); !concentrated.empty()) {
    lateness_.finding = Finding::costly_calls;
    return begin(concentrated);
  }
  if (one_rank) {
    const RankFigures* const origin = origin_of(top);
    lateness_.finding = Finding::costly_rank;
    lateness_.rank = (origin == nullptr ? top : *origin).rank;
    if (origin != nullptr)
      return begin(fmt::format("Rank {} is late{} and holds up rank {}: waiting for that costs {}; {}.", origin->rank,
                               origin->late_at.empty() ? "" : ", at " + frame_text(origin->late_at.front()) + ",",
                               top.rank, cost_of(top.caused_ns),
                               habit_of(top, where, fmt::format("rank {}", top.rank))));
    return begin(fmt::format("Rank {} is late: waiting for it costs {}; {}.{}", top.rank, cost_with_passed_on(top),
                             habit_of(top, where), reason_of(top)));
  }

  if (std::string origin = common_origin_verdict(); !origin.empty()) return begin(std::move(origin));

  // A few ranks stand out if two, or at most a quarter, of four or more cause three quarters of the waiting.
  std::vector<std::int32_t> few;
  double caused_by_few = 0;
  std::uint64_t delays = 0;
  for (const RankFigures* rank : by_cost) {
    if (caused_by_few >= 0.75 * analysis_.waiting_ns) break;
    caused_by_few += rank->caused_ns;
    few.push_back(rank->rank);
    delays = std::accumulate(rank->delays_in.begin(), rank->delays_in.end(), delays);
  }
  // With more ranks than calls some cause it all by chance, once each.
  if (few.size() >= 2 && static_cast<double>(few.size()) <= std::max(2.0, count / 4) && count >= 4 &&
      delays >= 2 * few.size()) {
    std::sort(few.begin(), few.end());
    const std::vector<RankRange> ranges = to_ranges(few);
    if (ranges.size() <= most_ranges_named) {
      std::string who = ranks_text(ranges);
      who[0] = 'R';
      lateness_.finding = Finding::late_ranks;
      return begin(fmt::format("{} are late: waiting for them costs {}.", who, cost_of(caused_by_few)));
    }
  }
  one_stands_out(caused, analysis_.waiting_ns);
  lateness_.finding = Finding::imbalanced;
  return begin(fmt::format(
      "Arrivals are imbalanced and no single rank is responsible: {}, the most at {}, where the longest wait is {} "
      "on average; of all ranks, rank {} causes most, {}.",
      cost, mpi_name(static_cast<Collective>(worst), Form::blocking), time_text(worst_ns[worst]), by_cost.front()->rank,
      share_of_time(by_cost.front()->caused_ns)));
}

}  // namespace

std::string decapitalised(std::string sentence) {
  sentence[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(sentence[0])));
  return sentence;
}

// That nobody waits tells that arrivals are balanced where all wait for all, or where ranks are known to compute alike:
// for a late receiver of a bcast nobody waits.
std::string little_waiting(const Analysis& analysis, const std::string& cost) {
  const bool all_wait = std::all_of(
      analysis.collectives.begin(), analysis.collectives.end(),
      [](const CollectiveFigures& one) { return one.form != Form::blocking || need_of(one.collective) == Need::all; });
  const bool are_known = std::all_of(analysis.late_ranks.begin(), analysis.late_ranks.end(),
                                     [](const RankFigures& rank) { return rank.time.is_known; });
  const bool is_told = (all_wait || are_known) && uneven_computing(analysis).ranks.empty();
  return fmt::format("{}: {}.", is_told ? "Arrivals are balanced" : "In collective calls nobody waits long", cost);
}

Lateness lateness_of(const Analysis& analysis) {
  return Judge(analysis).judge();
}

}  // namespace papaya::report
