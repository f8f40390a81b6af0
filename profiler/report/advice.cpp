#include "profiler/report/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/mpi_name.hpp"
#include "profiler/analysis/computing.hpp"
#include "profiler/read/units.hpp"
#include "profiler/report/elsewhere.hpp"
#include "profiler/report/notes.hpp"

namespace papaya::report {
namespace {

// From this share of the run on, time is told in the sentence for everybody.
constexpr double noticeable = 0.02;
// From this share of the time outside MPI on, what passes without a core is no computing.
constexpr double told_asleep = 0.1;

class Adviser {
 public:
  Adviser(const Analysis& analysis, const Verdict& verdict) : analysis_(analysis), verdict_(verdict) {}

  std::string in_short() const;
  std::vector<std::string> steps();

 private:
  void late_rank(std::int32_t number);
  void aborted();
  void costly_calls();
  void late_ranks();
  void elsewhere();
  void shared_cores();
  void algorithm();
  bool is_in_use(const std::string& collective, const std::string& algorithm) const;
  void step(std::string sentence) { steps_.push_back(std::move(sentence)); }

  const RankFigures* figures_of(std::int32_t number) const;
  double share_of_run(double ns) const { return analysis_.run_ns > 0 ? ns / analysis_.run_ns : 0.0; }

  const Analysis& analysis_;
  const Verdict& verdict_;
  std::vector<std::string> steps_;
};

const RankFigures* Adviser::figures_of(std::int32_t number) const {
  const auto found = std::find_if(analysis_.late_ranks.begin(), analysis_.late_ranks.end(),
                                  [number](const RankFigures& rank) { return rank.rank == number; });
  return found == analysis_.late_ranks.end() ? nullptr : &*found;
}

std::string Adviser::in_short() const {
  const double ranks_ns = analysis_.run_ns * static_cast<double>(analysis_.ranks_read);
  if (ranks_ns <= 0 || analysis_.ranks < 2) return {};
  // Others have no record that could be read, or PAPAYA_RANKS leaves them out.
  const std::string all = count_text(static_cast<std::uint64_t>(analysis_.ranks));
  const std::string ranks = analysis_.ranks_read < static_cast<std::uint64_t>(analysis_.ranks)
                                ? fmt::format("{} of the {} ranks", count_text(analysis_.ranks_read), all)
                                : fmt::format("the {} ranks", all);
  // Over the whole run where its beginning is no longer known call by call: then within nodes.
  const double waiting = analysis_.is_overwritten ? analysis_.whole_run_share : analysis_.waiting_ns / ranks_ns;
  if (!analysis_.efficiency.is_known)
    return fmt::format("{} of the time of {} is lost by waiting for late ones in collective calls.",
                       share_text(std::min(1.0, waiting)), ranks);
  double computing_ns = 0;
  double without_core_ns = 0;
  for (const RankFigures& rank : analysis_.late_ranks) {
    computing_ns += rank.time.computing_ns;
    without_core_ns += asleep_ns(analysis_, rank);
  }
  const double computing = std::min(1.0, computing_ns / ranks_ns);
  const double unrecorded = std::min(1.0, analysis_.unrecorded_ns / ranks_ns);
  std::string text = fmt::format(
      "{} of the time of {} {}", share_text(computing), ranks,
      without_core_ns >= told_asleep * computing_ns
          ? fmt::format("passes outside MPI ({} or more on no core)", share_text(without_core_ns / ranks_ns))
          : "goes into computing");
  if (unrecorded >= noticeable) text += fmt::format(", {} is not recorded", share_text(unrecorded));
  const double rest = 1 - computing - unrecorded;
  if (rest >= noticeable && waiting >= noticeable) {
    text +=
        fmt::format(", {} is lost by waiting in collective calls for late ranks", share_text(std::min(waiting, rest)));
    if (rest - waiting >= noticeable)
      text += fmt::format(", and {} passes in MPI otherwise", share_text(rest - waiting));
  } else if (rest >= noticeable) {
    text += fmt::format(", {} passes in MPI", share_text(rest));
  }
  text += ".";
  if (analysis_.what_if.is_known && analysis_.what_if.all_ns >= noticeable * analysis_.run_ns)
    text += fmt::format(
        " If no rank computed longer than the median of the ranks, the run would take about {} instead of {}.",
        time_text(analysis_.run_ns - analysis_.what_if.all_ns), time_text(analysis_.run_ns));
  return text;
}

// Where to look, and what for.
void Adviser::late_rank(std::int32_t number) {
  const RankFigures* const rank = figures_of(number);
  if (rank == nullptr) return;
  const double median_ns = median_computing_ns(analysis_);
  const double more_ns = rank->time.is_known ? rank->time.computing_ns - median_ns : 0.0;
  const double least_ns = worth_a_step * analysis_.run_ns;
  // What reached others through one that it holds up is caused by that one, and begun by it.
  const double cost_ns = std::max(rank->caused_ns, rank->began_ns);
  if (more_ns < least_ns && cost_ns < worth_a_step * analysis_.recorded_ns) return;
  if (analysis_.what_if.is_relief(number, noticeable * analysis_.run_ns))
    return step(
        fmt::format("Look at what the ranks share (memory, files, a device): where rank {} computes long the others "
                    "compute shorter, so less work for it alone would not make the run shorter.",
                    number));
  switch (why_slow(number, rank->usage, analysis_.median_usage).reason) {
    case SlowReason::no_core:
      return step(
          fmt::format("Give rank {} a core of its own (`papaya doctor` under the same launcher shows how ranks are "
                      "bound), and look for what else runs on {}its node.",
                      number, rank->usage.core < 0 ? "" : fmt::format("core {} of ", rank->usage.core)));
    case SlowReason::pages_from_disk:
      return step(fmt::format("Look at the memory and the file system of rank {}'s node: it waits for pages from disk.",
                              number));
    case SlowReason::unknown:
      break;
  }
  const std::vector<NamedFrame>& frames = rank->late_at.empty() ? rank->long_at : rank->late_at;
  const bool has_collectives = analysis_.compared_calls > 0 || analysis_.functions.empty();
  const std::string where = !frames.empty()   ? "the call at " + frame_text(frames.front())
                            : has_collectives ? "its collective calls"
                                              : "its calls of " + analysis_.functions.front().name;
  const double computing_ns = rank->time.computing_ns;
  if (more_ns < least_ns) {
    step(
        fmt::format("Look at what rank {} does before {}: `papaya trace --chrome -o trace.json FOLDER` shows it beside "
                    "the other ranks.",
                    number, where));
    return;
  }
  if (is_mostly_asleep(analysis_, *rank)) {
    step(
        fmt::format("Look at what rank {} waits for outside MPI before {}: it spends {} there, the median of the ranks "
                    "{}, but uses a core only {} of the run. Files, locks and sleeps do that.",
                    number, where, time_text(computing_ns), time_text(median_ns), share_text(rank->usage.cpu_share)));
    return;
  }
  step(fmt::format(
      "Give rank {} less work, or make what it computes before {} quicker: it computes {}, the median of the "
      "ranks {}.",
      number, where, time_text(computing_ns), time_text(median_ns)));
}

// A rank that ends the job knows why.
void Adviser::aborted() {
  const std::int32_t rank = analysis_.record.aborts.front().rank;
  std::string before;
  for (const PendingCall& pending : analysis_.pending)
    for (const LastSign& sign : pending.last_signs)
      if (sign.rank == rank && !sign.name.empty() && before.empty())
        before = fmt::format(" after {}, call {} on {}{}", sign.name, count_text(sign.call), sign.communicator,
                             sign.call_site.empty() ? "" : ", at " + frame_text(sign.call_site.front()));
  step(fmt::format("Look for why rank {} called MPI_Abort{}, and at what it wrote before.", rank, before));
}

void Adviser::costly_calls() {
  if (analysis_.costly_calls.empty()) return;
  const CostlyCall& call = analysis_.costly_calls.front();
  const double begin_s = call.begin_ns / 1e9;
  const double end_s = (call.begin_ns + call.delay_ns) / 1e9;
  // Seconds with enough digits to see the call and a little before it.
  const double margin = std::max(1e-3, 0.25 * (end_s - begin_s));
  const auto at = [](const std::vector<NamedFrame>& frames) {
    return frames.empty() ? std::string() : " at " + frame_text(frames.front());
  };
  const std::string which = fmt::format("call {} of {}{}", count_text(call.call), call.name, at(call.frames));
  const std::string who = ranks_text(call.late);
  const bool is_one = call.late.size() == 1 && call.late.front().first == call.late.front().last;
  const CostlyCall::Meanwhile& meanwhile = call.meanwhile;
  const std::string calls =
      meanwhile.calls == 0 ? ""
                           : fmt::format("; meanwhile {} makes {}{}", is_one ? "it" : fmt::format("rank {}", call.rank),
                                         counted(meanwhile.calls, meanwhile.name + " call", meanwhile.name + " calls"),
                                         at(meanwhile.frames));
  step(
      fmt::format("{}{}: `papaya trace --chrome --from {:.3f} --to {:.3f} -o trace.json FOLDER` shows it.",
                  call.waits_alone >= 0
                      ? fmt::format("Give rank {} some of the work of {}: it comes to {} {} before them",
                                    call.waits_alone, who, which, time_text(call.delay_ns))
                      : fmt::format("Look at what {} {} before {}, {} into the run{}", who, is_one ? "does" : "do",
                                    which, time_text(call.begin_ns), call.is_first ? ", while the program starts" : ""),
                  calls, std::max(0.0, begin_s - margin), end_s + margin));
}

void Adviser::late_ranks() {
  const CallSiteFigures* worst = nullptr;
  for (const CallSiteFigures& site : analysis_.call_sites)
    if (worst == nullptr || site.waiting_ns > worst->waiting_ns) worst = &site;
  if (worst == nullptr || worst->waiting_ns <= 0 || worst->waiting_ns < worth_a_step * analysis_.recorded_ns) return;
  step(
      fmt::format("Spread the work before {} more evenly: {} of the waiting in collective calls is there. `papaya "
                  "report --html` shows which "
                  "ranks are late when.",
                  worst->frames.empty() ? worst->name : "the call at " + frame_text(worst->frames.front()),
                  share_text(analysis_.waiting_ns > 0 ? worst->waiting_ns / analysis_.waiting_ns : 0)));
}

void Adviser::elsewhere() {
  const std::vector<std::int32_t>& ranks = verdict_.elsewhere.ranks;
  if (verdict_.elsewhere.in_finalize)
    return step(
        !ranks.empty()
            ? fmt::format("Look at what rank {} does alone after the last call of the others: spread that work, "
                          "or let the others do something meanwhile.",
                          ranks.front())
            : std::string("Spread the work at the end of the program more evenly."));
  if (ranks.size() > 1)
    step(fmt::format("Give {} less work, or make it quicker: they compute {} longer than the median of the others.",
                     ranks_text(to_ranges(ranks)), verdict_.elsewhere.more));
  else if (!ranks.empty() && ranks.front() != verdict_.rank)
    late_rank(ranks.front());
}

void Adviser::shared_cores() {
  if (analysis_.crowded_ranks == 0) return;
  step(
      fmt::format("Start at most {} on a node, one for each core, and measure again: {} ranks share {} now, and a rank "
                  "without a core is late whatever its work.",
                  counted(static_cast<std::uint64_t>(std::max(1, analysis_.crowded_cores)), "rank", "ranks"),
                  analysis_.crowded_ranks,
                  counted(static_cast<std::uint64_t>(std::max(1, analysis_.crowded_cores)), "core", "cores")));
}

// It serves calls of the collective already: what is left to gain is in those before it did.
bool Adviser::is_in_use(const std::string& collective, const std::string& algorithm) const {
  return std::any_of(analysis_.algorithms.begin(), analysis_.algorithms.end(), [&](const AlgorithmFigures& one) {
    return one.collective == collective && one.algorithm == algorithm && one.calls > 0;
  });
}

// The collective for which another algorithm brings most.
void Adviser::algorithm() {
  const CallSiteFigures* most = nullptr;
  double most_ns = 0;
  for (const CallSiteFigures& site : analysis_.call_sites) {
    const Savings::Candidate* const best = site.savings.best();
    if (best == nullptr || std::isnan(best->saving.run_ns) || best->saving.run_ns <= most_ns) continue;
    if (is_in_use(site.name, best->algorithm)) continue;
    most = &site;
    most_ns = best->saving.run_ns;
  }
  if (most == nullptr || most_ns < worth_a_step * most->savings.span_ns) return;
  const std::string& algorithm = most->savings.best()->algorithm;
  std::string variable(mpi_name(most->collective, Form::blocking).substr(std::string_view("MPI_").size()));
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  const std::string gain = share_text(most_ns / most->savings.span_ns);
  if (algorithm.find(',') == std::string::npos)
    step(fmt::format("Try PAPAYA_{}={}: a model of the run expects it to be {} shorter then{}.", variable, algorithm,
                     gain, analysis_.crowded_ranks > 0 ? ", but does not know what sharing cores costs" : ""));
  else
    step(
        fmt::format("Try papaya's algorithms for {} (Estimated savings, below): a model of the run expects it to be {} "
                    "shorter then.",
                    most->name, gain));
}

std::vector<std::string> Adviser::steps() {
  if (analysis_.ranks < 2) return {};
  const bool is_whole = verdict_.finding != Finding::unfinished && verdict_.finding != Finding::aborted;
  if (is_whole && verdict_.is_mostly_elsewhere) elsewhere();
  switch (verdict_.finding) {
    case Finding::aborted:
      aborted();
      break;
    case Finding::unfinished:
      step(
          "Look at what the missing ranks did last (below) and at the stacks in the folder's "
          "stall-*.txt, "
          "if there are any; PAPAYA_STALL_SECONDS=5 or SIGUSR1 to a rank writes them while the job hangs.");
      break;
    case Finding::costly_rank:
      if (!verdict_.is_explained) shared_cores();
      late_rank(verdict_.rank);
      break;
    case Finding::costly_calls:
      costly_calls();
      break;
    case Finding::late_ranks:
    case Finding::imbalanced:
    case Finding::overwritten:
      late_ranks();
      break;
    case Finding::nothing:
    case Finding::balanced:
    case Finding::late_rank:
      break;
  }
  if (verdict_.finding == Finding::overwritten)
    step("Record all calls: with PAPAYA_PROFILE=trace the figures call by call are of the whole run.");
  if (is_whole) {
    if (!verdict_.is_mostly_elsewhere) elsewhere();
    if (verdict_.finding != Finding::balanced && verdict_.finding != Finding::nothing && verdict_.is_explained)
      shared_cores();
    algorithm();
  }
  if (steps_.size() > most_steps) steps_.resize(most_steps);
  return std::move(steps_);
}

}  // namespace

Advice advice_on(const Analysis& analysis, const Verdict& verdict) {
  if (!analysis.usable || !analysis.record.failure.empty()) return {};
  Adviser adviser(analysis, verdict);
  Advice advice;
  advice.in_short = adviser.in_short();
  advice.next = adviser.steps();
  return advice;
}

}  // namespace papaya::report
