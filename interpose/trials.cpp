#include "interpose/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "interpose/attention.hpp"
#include "interpose/combine.hpp"
#include "interpose/ready_plan.hpp"
#include "profiler/analysis/patterns_of_sites.hpp"

namespace papaya::trials {

namespace {

// Built-in rules were measured on nodes of that many cores at most: beyond, MPI serves until a trial has shown who is
// quicker.
constexpr int trusted_ranks = 8;

// Guessed: regions are registered and connected.
constexpr std::int64_t set_up_across_nodes_ns = 5'000'000;

// Where nothing is tried: of which exchanges may take a fifth.
constexpr std::int64_t share_of_watching = 10'000;

// Fewer calls have no pattern.
constexpr std::size_t fewest_seen = 16;

// Of a communicator; what comes later is served as without trials.
constexpr std::size_t most_trials = 64;

// The trials of the process, and what all of them, also those that have ended, have cost.
std::atomic<std::int64_t> trial_count{0};
std::atomic<std::int64_t> spent_ns{0};

int size_class_of(std::uint64_t bytes) noexcept {
  return bytes == 0 ? 0 : static_cast<int>(std::bit_width(bytes - 1));
}

std::uint64_t largest_of(int size_class) noexcept {
  return size_class >= 63 ? std::numeric_limits<std::uint64_t>::max() : std::uint64_t{1} << size_class;
}

std::int64_t ns_between(const Job& job, std::uint64_t begin, std::uint64_t end) noexcept {
  return static_cast<std::int64_t>(static_cast<double>(end - begin) * job.ns_per_tick);
}

std::int64_t ns_of(const Job& job, std::uint64_t ticks) noexcept {
  return ns_between(job, job.origin.ticks, ticks);
}

tuning::Clocks clocks_for(const Communicator& state, Collective collective) noexcept {
  if (state.facts.nodes == 1) return tuning::Clocks::one;
  return is_rooted(collective) ? tuning::Clocks::several_rooted : tuning::Clocks::several;
}

std::string_view name_of(const One& one, std::size_t candidate) noexcept {
  const tuning::Rule* const rule = one.candidates[candidate];
  return rule == nullptr ? "native" : rule->algorithm->name;
}

std::string calls_text(const Communicator& state, const One& one) {
  return fmt::format(
      "MPI_{}{} on a communicator of {} ranks", papaya::name_of(one.collective),
      one.collective == Collective::barrier ? "" : fmt::format(" of up to {} bytes", largest_of(one.size_class)),
      state.size);
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
  log::info(fmt::format("{}: {} from call {} on (trial {}: {}; {:.1f} ms lost by trying so far)",
                        calls_text(state, one), name_of(one, trial.in_use()), trial.calls(), trial.trials(), standings,
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
  row.collective = static_cast<std::uint8_t>(one.collective);
  row.size_class = static_cast<std::uint8_t>(one.size_class);
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
  if (is_rooted(ended.collective) || state.facts.nodes > 1) return;
  for (std::size_t i = 1; i < ended.candidates.size(); ++i) {
    bool is_used = false;
    for (const std::unique_ptr<One>& one : state.trials->all)
      is_used = is_used || (one->collective == ended.collective &&
                            (one->candidates[one->trial.in_use()] == ended.candidates[i] || one->trial.is_trying()));
    if (!is_used && !combines_by(state, *ended.candidates[i])) state.plans.give_back(*ended.candidates[i]);
  }
}

std::size_t find(const tuning::Rule* rule, const std::vector<const tuning::Rule*>& candidates) noexcept {
  return static_cast<std::size_t>(std::find(candidates.begin(), candidates.end(), rule) - candidates.begin());
}

// A rule is a candidate, in the place of the same algorithm with its default parameters if that is still there.
void add(const tuning::Rule* rule, std::vector<const tuning::Rule*>& candidates,
         std::vector<const tuning::Rule*>& defaults) {
  if (find(rule, candidates) != candidates.size()) return;
  for (const tuning::Rule*& one : defaults) {
    if (one == nullptr || one->algorithm != rule->algorithm) continue;
    candidates[find(one, candidates)] = rule;
    one = nullptr;
    return;
  }
  candidates.push_back(rule);
}

tuning::Choice choice_under(tuning::ArrivalClass arrivals, const tuning::Selection& selection,
                            const Communicator& state, Collective collective, std::uint64_t bytes) noexcept {
  tuning::Facts facts = state.facts;
  facts.arrivals = arrivals;
  return selection.choose(collective, bytes, facts);
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

// What was exchanged tells the pattern of arrivals. It counts once two exchanges in a row say the same, or the first
// does.
void follow_arrivals(const Communicator& state, One& one, const CallFacts& facts) {
  if (one.trial.seen().size() < fewest_seen) return;
  const Arrivals now = arrivals_of(one.trial.seen(), state.size);
  const bool counts = now == one.latest || one.arrivals.pattern == tuning::ArrivalClass::unknown;
  one.latest = now;
  if (!counts || now == one.arrivals || now.pattern == tuning::ArrivalClass::unknown) return;
  const tuning::Selection& selection = selection_for(facts.job, state, one.collective, Form::blocking);
  const auto in_use = [&] {
    if (one.candidates.size() > 1) return number_of(one, one.trial.in_use());
    const tuning::Rule* const rule =
        choice_under(one.arrivals.pattern, selection, state, one.collective, one.bytes).rule;
    return rule == nullptr ? 0 : trace_number(*rule->algorithm);
  };
  const std::uint32_t before = in_use();
  one.arrivals = now;
  one.trial.note_pattern(static_cast<std::int64_t>(now.pattern) + 8 * std::int64_t{now.straggler + 1});
  if (one.candidates.size() > 1 && selection.goes_by_arrivals(one.collective))
    one.trial.prefer(find(choice_under(now.pattern, selection, state, one.collective, one.bytes).rule, one.candidates));
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
  record(state, one, before, in_use(), facts.records.recorder);
}

}  // namespace

One::One(Collective of, std::uint64_t bytes_of_first, bool is_tried, std::vector<const tuning::Rule*> rules,
         const tuning::Trial::Terms& terms) noexcept
    : collective(of),
      size_class(size_class_of(bytes_of_first)),
      bytes(bytes_of_first),
      tries(is_tried),
      candidates(std::move(rules)),
      trial(terms) {
  trial_count.fetch_add(1, std::memory_order_relaxed);
}

One::~One() {
  trial_count.fetch_sub(1, std::memory_order_relaxed);
}

One* find(Communicator& state, const Arguments& arguments, const Decision& decision, const Job& job) noexcept {
  const tuning::Choice& choice = decision.choice;
  const std::uint64_t bytes = decision.bytes;
  const tuning::Selection& selection = selection_for(job, state, arguments.collective, Form::blocking);
  const bool tries = job.adapt_share != 0 && (decision.is_exact || !job.adapt_exactly);
  // A call that is verified takes longer than it would.
  if (job.verify_every != 0) return nullptr;
  const tuning::Clocks clocks = clocks_for(state, arguments.collective);
  if (!tries && (clocks == tuning::Clocks::several_rooted || !selection.goes_by_arrivals(arguments.collective)))
    return nullptr;
  const int size_class = size_class_of(bytes);
  if (state.trials == nullptr) state.trials = std::make_shared<OnCommunicator>();
  std::vector<std::unique_ptr<One>>& all = state.trials->all;
  for (const std::unique_ptr<One>& one : all)
    if (one->collective == arguments.collective && one->size_class == size_class && one->tries == tries)
      return one.get();
  if (all.size() == most_trials) return nullptr;
  std::vector<const tuning::Rule*> candidates{nullptr};
  tuning::Trial::Terms terms{.share = tries ? job.adapt_share : share_of_watching, .clocks = clocks};
  if (state.facts.nodes > 1) terms.set_up_ns = set_up_across_nodes_ns;
  if (tries) {
    std::vector<const tuning::Rule*> defaults =
        tuning::Selection::candidates(arguments.collective, largest_of(size_class), state.facts, job.network);
    candidates.insert(candidates.end(), defaults.begin(), defaults.end());
    add(choice.rule, candidates, defaults);
    if (selection.goes_by_arrivals(arguments.collective))
      for (std::size_t i = 1; i < tuning::arrival_names.size(); ++i)
        add(choice_under(static_cast<tuning::ArrivalClass>(i), selection, state, arguments.collective, bytes).rule,
            candidates, defaults);
    if (choice.of_file || state.size <= trusted_ranks) terms.in_use = find(choice.rule, candidates);
  }
  terms.candidates = candidates.size();
  all.push_back(std::make_unique<One>(arguments.collective, bytes, tries, std::move(candidates), terms));
  return all.back().get();
}

const One* find(const Communicator& state, Collective collective, std::uint64_t bytes) noexcept {
  if (state.trials == nullptr) return nullptr;
  for (const std::unique_ptr<One>& one : state.trials->all)
    if (one->collective == collective && one->size_class == size_class_of(bytes)) return one.get();
  return nullptr;
}

tuning::Choice present_choice(Communicator& state, One& one, const tuning::Choice& by_table,
                              Recorder& recorder) noexcept {
  if (one.candidates.size() == 1) return by_table;
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
  if (is_rooted(one.collective)) return;
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
  const nonblocking::InsideMpi inside_mpi;
  const std::uint64_t begin = clock::ticks();
  spent_ns.fetch_add(ns_between(facts.job, set_up_begin, begin), std::memory_order_relaxed);
  // MPI_Init is part of the run.
  const std::int64_t elapsed = ns_between(facts.job, facts.job.load_ticks, begin);
  const std::int64_t spent = spent_ns.load(std::memory_order_relaxed);
  const std::int64_t count = trial_count.load(std::memory_order_relaxed);
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
    const std::vector<std::int64_t> numbers = one->trial.largest(elapsed, spent - one->trial.spent_ns(), count);
    due.push_back({one.get(), mine.size(), numbers.size(), 0, 0});
    mine.insert(mine.end(), numbers.begin(), numbers.end());
  }
  const std::vector<std::int64_t> largest = combined(mine, MPI_MAX);
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
    const std::uint32_t before = number_of(one, one.trial.in_use());
    one.trial.take(largest_of(each), std::span(sums).subspan(each.sums_begin, each.sums_size), state.size);
    one.trial.note_exchange(took / static_cast<std::int64_t>(due.size()));
    spent_ns.fetch_add(one.trial.spent_ns() - spent_before, std::memory_order_relaxed);
    state.last[index_of(one.collective)] = {};
    follow_arrivals(state, one, facts);
    if (one.trial.trials() == trials_before) continue;
    if (state.rank == 0) {
      report(state, one);
      record(state, one, before, number_of(one, one.trial.in_use()), facts.records.recorder);
    }
    give_back(state, one);
  }
}

namespace detail {

void keep(One& one, const Outcome& outcome, const Communicator& state, const Job& job, std::uint64_t arrival_ticks,
          std::uint64_t exit_ticks) noexcept {
  const std::size_t candidate = one.trial.candidate();
  const tuning::Rule* const rule = one.candidates[candidate];
  const bool is_trial = one.candidates.size() > 1;
  if (is_trial && outcome.algorithm != (rule == nullptr ? 0 : trace_number(*rule->algorithm))) return;
  const bool is_root = outcome.root == state.rank;
  one.trial.keep(one.trial.slot(), candidate,
                 {.arrival_ns = ns_of(job, arrival_ticks),
                  .exit_ns = ns_of(job, exit_ticks),
                  .is_waited_for = one.collective != Collective::bcast || is_root,
                  .waits = one.collective != Collective::reduce || is_root});
}

void move_on(Communicator& state, One& one) noexcept {
  state.last[index_of(one.collective)] = {};
  if (!one.trial.wants_exchange()) return;
  // The next call of any collective asks.
  state.last.fill({});
  state.has_due_exchange = true;
}

}  // namespace detail

}  // namespace papaya::trials
