#include "profiler/report/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "profiler/read/units.hpp"
#include "profiler/report/lateness.hpp"
#include "profiler/report/notes.hpp"
#include "profiler/report/uneven.hpp"

namespace papaya::report {
namespace {

// What a late rank costs the run is told from this share of it on.
constexpr double noticeable_cost = 0.02;

class Judge {
 public:
  explicit Judge(const Analysis& analysis) : analysis_(analysis) {}

  Verdict write();

 private:
  std::string abort_verdict();
  std::string pending_verdict();
  std::string arrivals_verdict();
  std::string late_verdict();
  std::string whole_run_verdict();
  std::string elsewhere_verdict();
  std::string weak_verdict() const;
  std::string what_if_verdict() const;

  const Analysis& analysis_;
  Verdict verdict_;
};

// Of the time of all ranks, what passes in MPI outside of blocking collectives, or of that in MPI_Finalize.
double share_elsewhere(const Analysis& analysis, bool in_finalize) {
  double elsewhere_ns = 0;
  double all_ns = 0;
  for (const RankFigures& rank : analysis.late_ranks) {
    if (!rank.time.is_known) continue;
    elsewhere_ns += in_finalize ? rank.time.finalize_ns : rank.time.elsewhere_ns();
    all_ns += analysis.run_ns;
  }
  return all_ns > 0 ? elsewhere_ns / all_ns : 0.0;
}

// Of all calls, also those that are no longer in the record one by one. Empty if it has all of them.
std::string Judge::whole_run_verdict() {
  const WholeRun& whole = analysis_.whole_run;
  if (!analysis_.is_overwritten || whole.all.calls == 0) return {};
  const std::string waiting =
      fmt::format("over the whole run waiting for late ranks{} costs {}",
                  analysis_.nodes > 1 ? " of the same node" : "", share_text(analysis_.whole_run_share));
  if (analysis_.whole_run_share < balanced_share || whole.last.empty()) return little_waiting(analysis_, waiting);
  const WholeRun::Last& top = whole.last.front();
  const double share = whole.all.waiting_ns > 0 ? top.caused_ns / whole.all.waiting_ns : 0;
  return fmt::format(
      "Ranks are late: {}, {} for rank {}, which arrives last at {} of the {} calls{}; the longest wait is {}.",
      waiting, share_text(share * analysis_.whole_run_share), top.rank, count_text(top.times_last),
      count_text(top.calls), analysis_.nodes > 1 ? " of its node" : "", time_text(whole.all.most_ns));
}

std::string Judge::arrivals_verdict() {
  const std::string whole = whole_run_verdict();
  if (whole.empty()) return late_verdict();
  std::string text = fmt::format("{} Of the calls recorded one by one: {}", whole, decapitalised(late_verdict()));
  verdict_.finding = analysis_.whole_run_share < balanced_share ? Finding::balanced : Finding::overwritten;
  return text;
}

std::string Judge::late_verdict() {
  Lateness lateness = lateness_of(analysis_);
  verdict_.finding = lateness.finding;
  verdict_.rank = lateness.rank;
  verdict_.is_explained = lateness.is_explained;
  return std::move(lateness.text);
}

std::string Judge::elsewhere_verdict() {
  Elsewhere& elsewhere = verdict_.elsewhere;
  elsewhere = elsewhere_of(analysis_, verdict_.rank);
  const double in_collectives = analysis_.is_overwritten ? analysis_.whole_run_share : analysis_.waiting_share;
  const bool is_same = elsewhere.ranks.size() == 1 && elsewhere.ranks.front() == verdict_.rank;
  verdict_.is_mostly_elsewhere = (elsewhere.in_finalize || !(elsewhere.ranks.empty() || is_same)) &&
                                 share_elsewhere(analysis_, elsewhere.in_finalize) > in_collectives;
  // Who comes late to MPI_Finalize may have been so all the time, at calls where nobody waits for it.
  Uneven uneven;
  if (elsewhere.in_finalize)
    uneven = uneven_before_the_end(analysis_);
  else if (elsewhere.text.empty() && in_collectives < balanced_share)
    uneven = uneven_computing(analysis_);
  if (!uneven.ranks.empty()) {
    elsewhere.text += text_of(uneven);
    elsewhere.ranks = std::move(uneven.ranks);
    elsewhere.more = uneven.more;
    elsewhere.in_finalize = false;
  }
  return elsewhere.text;
}

// What late ranks cost where the program, or PAPAYA_APPROX, has weakly consistent collectives.
std::string Judge::weak_verdict() const {
  const double ranks_ns = analysis_.run_ns * static_cast<double>(analysis_.ranks_read);
  double waited_ns = 0;
  const WeakFigures* most = nullptr;
  for (const WeakFigures& weak : analysis_.weak) {
    waited_ns += weak.sums.waited_ns;
    if (most == nullptr || weak.sums.waited_ns > most->sums.waited_ns) most = &weak;
  }
  if (most == nullptr || waited_ns < noticeable_cost * ranks_ns) return {};
  const auto last = std::max_element(most->ranks.begin(), most->ranks.end(),
                                     [](const WeakRank& a, const WeakRank& b) { return a.caused_ns < b.caused_ns; });
  return fmt::format(
      " In weakly consistent collectives, which that does not include, waiting costs {}, most in {}{}.",
      share_text(waited_ns / ranks_ns), most->collective,
      last == most->ranks.end() || last->caused_ns <= 0 ? "" : fmt::format("; rank {} is late there", last->rank));
}

// What the rank that was named first costs the run.
std::string Judge::what_if_verdict() const {
  const std::vector<std::int32_t>& elsewhere = verdict_.elsewhere.ranks;
  const std::int32_t rank = verdict_.is_mostly_elsewhere && elsewhere.size() == 1 ? elsewhere.front() : verdict_.rank;
  const std::vector<WhatIf::Rank>& ranks = analysis_.what_if.ranks;
  const auto own = std::find_if(ranks.begin(), ranks.end(), [&](const WhatIf::Rank& one) { return one.rank == rank; });
  if (rank >= 0 && analysis_.what_if.is_relief(rank, noticeable_cost * analysis_.run_ns))
    return fmt::format(
        " But the run would hardly be shorter if rank {} computed no longer than the others: they compute shorter "
        "where it computes long.",
        rank);
  if (own == ranks.end() || own->ns < noticeable_cost * analysis_.run_ns) return {};
  return fmt::format(" If rank {} computed no longer than the others, the run would take about {} instead of {}.", rank,
                     time_text(analysis_.run_ns - own->ns), time_text(analysis_.run_ns));
}

Verdict Judge::write() {
  // A job that was killed in the middle of its work has ranks inside a call, too.
  const std::string abort = abort_verdict();
  const std::string pending = pending_verdict();
  if (!abort.empty() || !pending.empty()) {
    verdict_.text = abort + (abort.empty() || pending.empty() ? "" : " ") + pending;
    if (analysis_.compared_calls > 0 && analysis_.ranks > 1)
      verdict_.text += " Until then, " + decapitalised(arrivals_verdict());
    verdict_.finding = abort.empty() ? Finding::unfinished : Finding::aborted;
  } else if (analysis_.collectives.empty() && analysis_.events_kept == 0) {
    verdict_.text =
        (analysis_.weak.empty()
             ? "The program made no collective calls, so there are no arrivals to compare."
             : "The program called none of MPI's collectives, only weakly consistent ones: their table is below.") +
        elsewhere_verdict();
  } else if (analysis_.ranks == 1) {
    verdict_.text = "The job has one rank, so no rank can be late.";
  } else if (analysis_.compared_calls == 0) {
    const bool blocking = std::any_of(analysis_.collectives.begin(), analysis_.collectives.end(),
                                      [](const CollectiveFigures& c) { return c.form == Form::blocking; });
    verdict_.text =
        (analysis_.record.intercommunicator_calls > 0 ? "Arrivals cannot be compared: the blocking collective calls "
                                                        "are on intercommunicators, whose groups wait for each other."
         : blocking ? "Arrivals cannot be compared: no blocking collective call of two or more ranks is in "
                      "the record of all of them."
                    : "Arrivals cannot be compared: the program made no blocking collective calls.") +
        elsewhere_verdict();
  } else {
    std::string arrivals = arrivals_verdict();  // first: it names a rank
    const std::string elsewhere = elsewhere_verdict();
    if (!verdict_.is_mostly_elsewhere)
      verdict_.text = arrivals + elsewhere;
    else if (arrivals.find("n collective calls") != std::string::npos)
      verdict_.text = elsewhere.substr(1) + " " + arrivals;
    else
      verdict_.text = elsewhere.substr(1) + " In collective calls, " + decapitalised(std::move(arrivals));
    verdict_.text += what_if_verdict() + weak_verdict();
  }
  return std::move(verdict_);
}

// "Rank 1 called MPI_Abort with code 3." Empty if none did.
std::string Judge::abort_verdict() {
  std::vector<std::int32_t> ranks;
  const std::vector<RecordFacts::Abort>& aborts = analysis_.record.aborts;
  for (const RecordFacts::Abort& abort : aborts) ranks.push_back(abort.rank);
  if (ranks.empty()) return {};
  std::sort(ranks.begin(), ranks.end());
  std::string who = ranks_text(to_ranges(ranks));
  who[0] = 'R';
  const bool is_one_code =
      std::all_of(aborts.begin(), aborts.end(), [&](const auto& abort) { return abort.code == aborts.front().code; });
  return who + " called MPI_Abort" + (is_one_code ? fmt::format(" with code {}.", aborts.front().code) : ".");
}

// Ranks that wait for one that never came are what the user of a hung job looks for.
std::string Judge::pending_verdict() {
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

}  // namespace

Verdict verdict_on(const Analysis& analysis) {
  const RecordFacts& facts = analysis.record;
  Verdict verdict;
  if (!facts.failure.empty())
    verdict.text = fmt::format("The record could not be analysed: {}.", facts.failure);
  else if (!analysis.usable)
    verdict.text =
        facts.problems.empty() ? "There is no record of a run here." : "None of the records here could be read.";
  else
    verdict = Judge(analysis).write();
  return verdict;
}

}  // namespace papaya::report
