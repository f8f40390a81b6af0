#include "interpose/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "interpose/attention.hpp"
#include "interpose/combine.hpp"
#include "interpose/ready_plan.hpp"
#include "interpose/trial_sites.hpp"
#include "profiler/analysis/patterns_of_sites.hpp"

namespace papaya::trials {

namespace {

// What the trials of the process, also those that have ended, have cost.
std::atomic<std::int64_t> spent_ns{0};

// And what their calls take.
std::atomic<std::int64_t> calls_ns{0};

// Fewer calls have no pattern.
constexpr std::size_t fewest_seen = 16;

std::int64_t ns_between(const Job& job, std::uint64_t begin, std::uint64_t end) noexcept {
  return static_cast<std::int64_t>(static_cast<double>(end - begin) * job.ns_per_tick);
}

std::int64_t ns_of(const Job& job, std::uint64_t ticks) noexcept {
  return ns_between(job, job.origin.ticks, ticks);
}

std::string_view name_of(const One& one, std::size_t candidate) noexcept {
  const tuning::Rule* const rule = one.candidates[candidate];
  return rule == nullptr ? "native" : rule->algorithm->name;
}

std::string calls_text(const Communicator& state, const One& one) {
  return fmt::format(
      "MPI_{}{} on a communicator of {} ranks{}", papaya::name_of(one.of.collective),
      one.of.collective == Collective::barrier ? "" : fmt::format(" of up to {} bytes", most_bytes_of(one.of)),
      state.size, one.place == tuning::SitePeriod::Place{} ? "" : ", from one place");
}

// What serves stays though another took less in the last trial.
bool is_doubtful(const tuning::Trial& trial) {
  const std::int64_t in_use_ns = trial.standing(trial.in_use()).median_ns;
  for (std::size_t i = 0; i < trial.candidates(); ++i)
    if (const tuning::Trial::Standing one = trial.standing(i);
        one.is_left && one.samples != 0 && one.median_ns < in_use_ns)
      return true;
  return false;
}

void report(const Communicator& state, const One& one) {
  const tuning::Trial& trial = one.trial;
  std::string standings;
  for (std::size_t i = 0; i < trial.candidates(); ++i) {
    const tuning::Trial::Standing standing = trial.standing(i);
    standings +=
        fmt::format("{}{} {}", standings.empty() ? "" : ", ", name_of(one, i),
                    standing.failed         ? "cannot serve"
                    : standing.samples == 0 ? "was not measured"
                                            : fmt::format("{:.1f} us", static_cast<double>(standing.median_ns) * 1e-3));
  }
  log::info(fmt::format("{}: {} from call {} on (trial {}: {}{}; {:.1f} ms lost by trying so far)",
                        calls_text(state, one), name_of(one, trial.in_use()), trial.calls(), trial.trials(), standings,
                        is_doubtful(trial) ? ", none quicker beyond chance" : "",
                        static_cast<double>(trial.spent_ns()) * 1e-6));
}

trace::TriedState state_of(const tuning::Trial::Standing& standing) noexcept {
  if (standing.failed) return trace::TriedState::cannot_serve;
  if (standing.samples == 0) return trace::TriedState::not_measured;
  return standing.is_left ? trace::TriedState::kept : trace::TriedState::slower;
}

std::uint32_t number_of(const One& one, std::size_t candidate) noexcept {
  const tuning::Rule* const rule = one.candidates[candidate];
  return rule == nullptr ? 0 : trace_number(*rule->algorithm);
}

trace::TrialRow* row_of(One& one, Recorder& recorder) noexcept {
  if (one.row == nullptr && !one.has_no_row && recorder.is_open()) {
    one.row = recorder.add_trials();
    one.has_no_row = one.row == nullptr;
  }
  return one.row;
}

// A trial has ended, or what serves is another. `before`: the algorithm that served until then.
void record(const Communicator& state, One& one, std::uint32_t before, std::uint32_t in_use,
            Recorder& recorder) noexcept {
  if (row_of(one, recorder) == nullptr) return;
  const tuning::Trial& trial = one.trial;
  trace::TrialRow& row = *one.row;
  row.communicator = state.id;
  row.collective = static_cast<std::uint8_t>(one.of.collective);
  row.size_class = static_cast<std::uint8_t>(one.of.size_class);
  row.call_site = static_cast<std::uint16_t>(one.call_site);
  row.calls = static_cast<std::uint64_t>(trial.calls());
  row.spent_ns = static_cast<std::uint64_t>(trial.spent_ns());
  row.in_use = in_use;
  row.tried_count =
      trial.trials() == 0 ? 0 : static_cast<std::uint32_t>(std::min(trial.candidates(), trace::tried_capacity));
  for (std::size_t i = 0; i < row.tried_count; ++i) {
    const tuning::Trial::Standing standing = trial.standing(i);
    row.tried[i] = {.algorithm = number_of(one, i),
                    .state = static_cast<std::uint32_t>(state_of(standing)),
                    .median_ns = static_cast<std::uint64_t>(standing.median_ns),
                    .samples = static_cast<std::uint32_t>(standing.samples)};
  }
  if (row.in_use != before)
    row.change[row.changes++ % trace::trial_change_capacity] = {clock::ticks(), row.calls, row.in_use, before};
  row.trials = static_cast<std::uint32_t>(trial.trials());
}

void fail(const Communicator& state, One& one, std::size_t candidate, Recorder& recorder) noexcept {
  const std::uint32_t before = number_of(one, one.trial.in_use());
  one.trial.fail(candidate);
  // Without a row no trial has ended, and what the first one finds is recorded then.
  const std::uint32_t in_use = number_of(one, one.trial.in_use());
  if (one.row != nullptr && in_use != before) record(state, one, before, in_use, recorder);
}

// What no trial of the communicator uses any more gives its memory back. Every rank is in the exchange, so none is in
// a call of it. A bcast or reduce is set up over several calls, in the order of its communicator's plans: it stays. So
// does what other nodes may still write to.
void give_back(Communicator& state, const One& ended) noexcept {
  if (is_rooted(ended.of.collective) || state.facts.nodes > 1) return;
  for (std::size_t i = 1; i < ended.candidates.size(); ++i) {
    bool is_used = false;
    for (const std::unique_ptr<One>& one : state.trials->all)
      is_used = is_used || (one->of.collective == ended.of.collective &&
                            (one->candidates[one->trial.in_use()] == ended.candidates[i] || one->trial.is_trying()));
    if (!is_used && !combines_by(state, *ended.candidates[i])) state.plans.give_back(*ended.candidates[i]);
  }
}

static_assert(static_cast<int>(tuning::ArrivalClass::random) == static_cast<int>(report::PatternClass::random) &&
              static_cast<int>(tuning::ArrivalClass::persistent) == static_cast<int>(report::PatternClass::persistent));

// By the same definitions as the report's, but that a message's time is not known here: half of what the call takes
// stands for imbalanced_factor of them.
Arrivals arrivals_of(std::span<const tuning::MeasuredCall> seen, int ranks) {
  std::vector<report::CallOfSite> calls;
  for (const tuning::MeasuredCall& one : seen)
    calls.push_back({.communicator = 0,
                     .ranks = ranks,
                     .last = one.late,
                     .rank = one.late,
                     .worst_ns = static_cast<double>(std::max<std::int64_t>(one.wait_ns, 0)),
                     .least_ns = 2 * static_cast<double>(std::max<std::int64_t>(one.cost_ns, 1000))});
  const report::SitePattern found = report::pattern_of(calls);
  return {static_cast<tuning::ArrivalClass>(found.pattern), found.straggler()};
}

std::uint32_t in_use(const Communicator& state, const One& one, const Job& job) noexcept {
  if (one.has_choice()) return number_of(one, one.trial.in_use());
  const tuning::Selection& selection = selection_for(job, state, one.of.collective, Form::blocking);
  const tuning::Rule* const rule = choice_under(one.learnt(), selection, state, one.of.collective, one.bytes).rule;
  return rule == nullptr ? 0 : trace_number(*rule->algorithm);
}

// What was exchanged tells the pattern of arrivals. It counts once two exchanges in a row say the same, or the first
// does.
void follow_arrivals(const Communicator& state, One& one, const CallFacts& facts) {
  if (one.trial.seen().size() < fewest_seen) return;
  const Arrivals now = arrivals_of(one.trial.seen(), state.size);
  const bool counts = now == one.latest || one.arrivals.pattern == tuning::ArrivalClass::unknown;
  one.latest = now;
  if (!counts || now == one.arrivals || now.pattern == tuning::ArrivalClass::unknown) return;
  const tuning::Selection& selection = selection_for(facts.job, state, one.of.collective, Form::blocking);
  const std::uint32_t before = in_use(state, one, facts.job);
  one.arrivals = now;
  one.trial.note_pattern(static_cast<std::int64_t>(now.pattern) + 8 * std::int64_t{now.straggler + 1});
  if (one.has_choice() && selection.goes_by_arrivals(one.of.collective))
    one.trial.prefer(
        find(choice_under(one.learnt(), selection, state, one.of.collective, one.bytes).rule, one.candidates));
  if (state.rank != 0) return;
  log::info(fmt::format("{}: arrivals are {} from call {} on{}", calls_text(state, one), tuning::name_of(now.pattern),
                        one.trial.calls(),
                        now.straggler < 0 ? "" : fmt::format(", rank {} is the late one", now.straggler)));
  trace::TrialRow* const row = row_of(one, facts.records.recorder);
  if (row == nullptr) return;
  row->arrivals[row->arrivals_changes % trace::trial_change_capacity] = {
      clock::ticks(), static_cast<std::uint64_t>(one.trial.calls()), now.straggler,
      static_cast<std::uint32_t>(now.pattern)};
  ++row->arrivals_changes;
  record(state, one, before, in_use(state, one, facts.job), facts.records.recorder);
}

// Algorithms between nodes join the trial as soon as there is what carries their data; whoever has all ranks of the job
// makes that ready where it may pay.
void admit_if_ready(Communicator& state, One& one, const Job& job) {
  if (!one.trial.lacks_candidates()) return;
  BetweenNodes& between_nodes = communicators::between_nodes();
  const bool has_all = state.size == job.ranks && !state.outside;
  if (has_all && !between_nodes.is_done() && one.trial.may_pay(BetweenNodes::to_make_ready_ns)) {
    const std::uint64_t begin = clock::ticks();
    between_nodes.make_ready();
    spent_ns.fetch_add(ns_between(job, begin, clock::ticks()), std::memory_order_relaxed);
  }
  if (between_nodes.is_ready()) admit_candidates(state, one, job);
}

// Which call sites of a class are told apart, and what serves those that now are.
void follow_sites(Communicator& state, Class& of, const CallFacts& facts) {
  const auto before = of.by_place;
  const bool was_split = of.is_split;
  const std::vector<One*> made = sites::follow(state, of, facts);
  if (state.rank != 0 || (of.is_split ? was_split && before == of.by_place : !was_split)) return;
  for (One* const part : made) {
    const std::uint32_t now = in_use(state, *part, facts.job);
    record(state, *part, now, now, facts.records.recorder);
  }
  const std::string calls = calls_text(state, of.whole());
  if (of.is_split)
    log::info(fmt::format("{}: their call sites have a period of {}, and are told apart from call {} on", calls,
                          of.sites.period(), of.calls()));
  else
    log::info(fmt::format("{}: their call sites are not told apart any more from call {} on", calls, of.calls()));
}

}  // namespace

tuning::Choice present_choice(Communicator& state, One& one, const tuning::Choice& by_table,
                              Recorder& recorder) noexcept {
  if (!one.has_choice()) return by_table;
  const tuning::Trial& trial = one.trial;
  for (std::size_t i = 1; i < one.candidates.size() && !state.dropped.empty(); ++i)
    if (is_dropped(facts_of(state), *one.candidates[i]->algorithm)) fail(state, one, i, recorder);
  if (const tuning::Rule* const rule = one.candidates[trial.candidate()]; rule != nullptr)
    // Who is tried is set up at once; what the table chose, as without trials, after some calls.
    return {.rule = rule, .at_once = trial.trials() > 0 || trial.is_trying(), .automatic = true};
  const bool has_won = trial.trials() > 0 && !trial.is_trying();
  if (!has_won && !trial.is_trying() && by_table.rule == nullptr) return by_table;
  return {.reason = has_won ? Reason::quickest : Reason::in_turn, .automatic = true};
}

void note_failure(const Communicator& state, One& one, Reason reason, Recorder& recorder) noexcept {
  // No rank waits in the set-up of a bcast or reduce: each finds out at another call that there is too little memory,
  // or one alone does. That the candidate serves no call shows in the exchange.
  if (is_rooted(one.of.collective)) return;
  // It may serve later calls.
  if (reason == Reason::few_calls || reason == Reason::not_met) return;
  fail(state, one, one.trial.candidate(), recorder);
}

void exchange(Communicator& state, const CallFacts& facts, Outcome& outcome) noexcept {
  state.has_due_exchange = false;
  const std::uint64_t set_up_begin = clock::ticks();
  const Combine combined(state, facts, outcome);
  // It waits for all ranks: where this one is must be known.
  begin_event(facts, outcome);
  std::vector<Class*> classes;
  for (const std::unique_ptr<One>& one : state.trials->all)
    if (one->trial.wants_exchange() && std::find(classes.begin(), classes.end(), &one->of) == classes.end())
      classes.push_back(&one->of);
  const nonblocking::InsideMpi inside_mpi;
  const bool has_news = sites::have_news(state, classes, facts);
  const std::uint64_t begin = clock::ticks();
  spent_ns.fetch_add(ns_between(facts.job, set_up_begin, begin), std::memory_order_relaxed);
  // MPI_Init is part of the run.
  const std::int64_t elapsed = ns_between(facts.job, facts.job.load_ticks, begin);
  const std::int64_t spent = spent_ns.load(std::memory_order_relaxed);
  const std::int64_t all_calls_ns = calls_ns.load(std::memory_order_relaxed);
  std::int64_t foreseen = 0;  // to be lost yet by the communicator's trials under way; equal on all ranks
  for (const std::unique_ptr<One>& one : state.trials->all) foreseen += one->trial.foreseen_ns();
  struct Due {
    One* one;
    std::size_t begin, size;  // of its numbers
    std::size_t sums_begin, sums_size;
  };
  std::vector<Due> due;
  std::vector<std::int64_t> mine;
  for (const std::unique_ptr<One>& one : state.trials->all) {
    if (!one->trial.wants_exchange()) continue;
    if (const std::int64_t ns = mean_set_up_ns(state.facts.nodes > 1); ns >= 0) one->trial.note_set_up(ns);
    const std::vector<std::int64_t> numbers =
        one->trial.largest(elapsed, spent - one->trial.spent_ns(), count(), all_calls_ns - one->trial.calls_ns());
    due.push_back({one.get(), mine.size(), numbers.size(), 0, 0});
    mine.insert(mine.end(), numbers.begin(), numbers.end());
  }
  mine.push_back(has_news ? 1 : 0);
  const std::vector<std::int64_t> largest = combined(mine, MPI_MAX);
  if (largest.back() != 0) sites::exchange(state, classes, combined, facts);
  const auto largest_of = [&](const Due& one) { return std::span(largest).subspan(one.begin, one.size); };
  mine.clear();
  for (Due& one : due) {
    const std::vector<std::int64_t> numbers = one.one->trial.sums(largest_of(one), state.rank);
    one.sums_begin = mine.size();
    one.sums_size = numbers.size();
    mine.insert(mine.end(), numbers.begin(), numbers.end());
  }
  const std::vector<std::int64_t> sums = combined(mine, MPI_SUM);
  const std::int64_t took = ns_between(facts.job, begin, clock::ticks());
  for (const Due& each : due) {
    One& one = *each.one;
    const std::int64_t trials_before = one.trial.trials();
    const std::int64_t spent_before = one.trial.spent_ns();
    const std::int64_t calls_ns_before = one.trial.calls_ns();
    const std::uint32_t before = number_of(one, one.trial.in_use());
    foreseen -= one.trial.foreseen_ns();
    one.trial.take(largest_of(each), std::span(sums).subspan(each.sums_begin, each.sums_size), state.size, foreseen);
    one.trial.note_exchange(took / static_cast<std::int64_t>(due.size()));
    spent_ns.fetch_add(one.trial.spent_ns() - spent_before, std::memory_order_relaxed);
    calls_ns.fetch_add(one.trial.calls_ns() - calls_ns_before, std::memory_order_relaxed);
    state.last[index_of(one.of.collective)] = {};
    follow_arrivals(state, one, facts);
    admit_if_ready(state, one, facts.job);
    foreseen += one.trial.foreseen_ns();
    if (one.trial.trials() == trials_before) continue;
    if (state.rank == 0) {
      report(state, one);
      record(state, one, before, number_of(one, one.trial.in_use()), facts.records.recorder);
    }
    give_back(state, one);
  }
  for (Class* const one : classes) follow_sites(state, *one, facts);
}

namespace detail {

namespace {

void keep(One& one, const Outcome& outcome, const Communicator& state, const Job& job, std::uint64_t arrival_ticks,
          std::uint64_t exit_ticks) noexcept {
  const std::size_t candidate = one.trial.candidate();
  const tuning::Rule* const rule = one.candidates[candidate];
  const bool is_trial = one.has_choice();
  if (is_trial && outcome.algorithm != (rule == nullptr ? 0 : trace_number(*rule->algorithm))) return;
  const bool is_root = outcome.root == state.rank;
  one.trial.keep(one.trial.slot(), candidate,
                 {.arrival_ns = ns_of(job, arrival_ticks),
                  .exit_ns = ns_of(job, exit_ticks),
                  .is_waited_for = is_root || !is_rooted(one.of.collective) || root_waits(one.of.collective),
                  .waits = is_root || !root_waits(one.of.collective)});
}

}  // namespace

void leave(Communicator& state, const Outcome& outcome, const Job& job, std::uint64_t arrival_ticks,
           std::uint64_t exit_ticks) noexcept {
  One& one = *outcome.trial;
  // A call from elsewhere is not like the others of its place.
  if (sites::note(one.of, outcome.call_site) && one.trial.slot() >= 0)
    keep(one, outcome, state, job, arrival_ticks, exit_ticks);
  count(state, one);
  sites::move_on(state, one.of);
}

void move_on(Communicator& state, One& one) noexcept {
  state.last[index_of(one.of.collective)] = {};
  if (!one.trial.wants_exchange()) return;
  // The next call of any collective asks.
  state.last.fill({});
  state.has_due_exchange = true;
}

}  // namespace detail

}  // namespace papaya::trials
