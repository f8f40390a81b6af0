#include "interpose/trial_classes.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <utility>

namespace papaya::trials {

namespace {

// Built-in rules were measured on nodes of that many cores at most: beyond, MPI serves until a trial has shown who is
// quicker.
constexpr int trusted_ranks = 8;

// Guessed: regions are registered and connected.
constexpr std::int64_t set_up_across_nodes_ns = 5'000'000;

// Where nothing is tried: of which exchanges may take a fifth.
constexpr std::int64_t share_of_watching = 10'000;

// Of a communicator; what comes later is served as without trials.
constexpr std::size_t most_trials = 64;

std::atomic<std::int64_t> trial_count{0};

tuning::Clocks clocks_for(const Communicator& state, Collective collective) noexcept {
  if (state.facts.nodes == 1) return tuning::Clocks::one;
  return is_rooted(collective) ? tuning::Clocks::several_rooted : tuning::Clocks::several;
}

int size_class_of(std::uint64_t bytes) noexcept {
  return bytes == 0 ? 0 : static_cast<int>(std::bit_width(bytes - 1));
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

Class* class_of(const Communicator& state, Collective collective, int size_class, bool tries) noexcept {
  if (state.trials == nullptr) return nullptr;
  for (const std::unique_ptr<Class>& one : state.trials->classes)
    if (one->collective == collective && one->size_class == size_class && one->tries == tries) return one.get();
  return nullptr;
}

// All that could serve such calls, MPI first. `choice` is among them if it is an algorithm.
std::vector<const tuning::Rule*> candidates_for(const Communicator& state, const Class& of,
                                                const tuning::SitePeriod::Place& place, std::uint64_t bytes,
                                                const tuning::Choice& choice, const Job& job) {
  const tuning::Selection& selection = selection_for(job, state, of.collective, Form::blocking);
  std::vector<const tuning::Rule*> candidates{nullptr};
  std::vector<const tuning::Rule*> defaults = tuning::Selection::candidates(
      of.collective, most_bytes_of(of), state.facts, communicators::between_nodes().network());
  candidates.insert(candidates.end(), defaults.begin(), defaults.end());
  add(choice.rule, candidates, defaults);
  if (selection.goes_by_arrivals(of.collective))
    for (std::size_t i = 1; i < tuning::arrival_names.size(); ++i)
      add(choice_under({static_cast<tuning::ArrivalClass>(i), place.named}, selection, state, of.collective, bytes)
              .rule,
          candidates, defaults);
  return candidates;
}

// Who serves first: `choice`, if it may.
std::size_t first_in_use(const Communicator& state, const tuning::Choice& choice,
                         const std::vector<const tuning::Rule*>& candidates) noexcept {
  return choice.of_file || state.size <= trusted_ranks ? find(choice.rule, candidates) : tuning::Trial::native;
}

// A trial from the beginning.
One& begin(Communicator& state, Class& of, const tuning::SitePeriod::Place& place, std::uint64_t bytes,
           const tuning::Choice& choice, const Job& job) {
  std::vector<const tuning::Rule*> candidates{nullptr};
  tuning::Trial::Terms terms{.share = of.tries ? job.adapt_share : share_of_watching,
                             .clocks = clocks_for(state, of.collective)};
  if (state.facts.nodes > 1) {
    terms.set_up_ns = set_up_across_nodes_ns;
    // Not whether there is a transport by now: another rank may have begun this trial in a call before that.
    terms.lacks_candidates = of.tries && !communicators::between_nodes().was_ready_at_start();
  }
  if (of.tries && !terms.lacks_candidates) {
    candidates = candidates_for(state, of, place, bytes, choice, job);
    terms.in_use = first_in_use(state, choice, candidates);
  }
  terms.candidates = candidates.size();
  std::vector<std::unique_ptr<One>>& all = state.trials->all;
  all.push_back(std::make_unique<One>(of, place, bytes, std::move(candidates), tuning::Trial(terms)));
  return *all.back();
}

}  // namespace

One::One(Class& class_of_it, tuning::SitePeriod::Place place_of_it, std::uint64_t bytes_of_first,
         std::vector<const tuning::Rule*> rules, tuning::Trial begin) noexcept
    : of(class_of_it),
      place(place_of_it),
      bytes(bytes_of_first),
      candidates(std::move(rules)),
      trial(std::move(begin)) {
  of.parts.push_back(this);
  trial_count.fetch_add(1, std::memory_order_relaxed);
}

One::~One() {
  trial_count.fetch_sub(1, std::memory_order_relaxed);
}

std::int64_t count() noexcept {
  return trial_count.load(std::memory_order_relaxed);
}

std::uint64_t most_bytes_of(const Class& one) noexcept {
  return one.size_class >= 63 ? std::numeric_limits<std::uint64_t>::max() : std::uint64_t{1} << one.size_class;
}

std::size_t find(const tuning::Rule* rule, std::span<const tuning::Rule* const> candidates) noexcept {
  return static_cast<std::size_t>(std::find(candidates.begin(), candidates.end(), rule) - candidates.begin());
}

tuning::Choice choice_under(const tuning::Learnt& learnt, const tuning::Selection& selection, const Communicator& state,
                            Collective collective, std::uint64_t bytes) noexcept {
  tuning::Facts facts = state.facts;
  facts.arrivals = learnt.arrivals;
  facts.sites = learnt.sites;
  return selection.choose(collective, bytes, facts);
}

void admit_candidates(Communicator& state, One& one, const Job& job) {
  const tuning::Selection& selection = selection_for(job, state, one.of.collective, Form::blocking);
  const tuning::Choice choice = choice_under(one.learnt(), selection, state, one.of.collective, one.bytes);
  one.candidates = candidates_for(state, one.of, one.place, one.bytes, choice, job);
  one.trial.admit(one.candidates.size(), first_in_use(state, choice, one.candidates));
}

One* find(Communicator& state, const Arguments& arguments, const Decision& decision, const Job& job) noexcept {
  const Collective collective = arguments.collective;
  const tuning::Selection& selection = selection_for(job, state, collective, Form::blocking);
  const bool may_try = state.facts.nodes == 1 || communicators::between_nodes().may_be_tried();
  const bool tries = job.adapt_share != 0 && may_try && (decision.is_exact || !job.adapt_exactly);
  const bool knows_arrivals = clocks_for(state, collective) != tuning::Clocks::several_rooted;
  const bool watches =
      (knows_arrivals && selection.goes_by_arrivals(collective)) || selection.sites_of(collective) != 0;
  // A call that is verified takes longer than it would.
  if (job.verify_every != 0 || (!tries && !watches)) return nullptr;
  const int size_class = size_class_of(decision.bytes);
  if (Class* const known = class_of(state, collective, size_class, tries); known != nullptr) return known->current;
  if (state.trials == nullptr) state.trials = std::make_shared<OnCommunicator>();
  if (state.trials->all.size() == most_trials) return nullptr;
  std::vector<std::unique_ptr<Class>>& classes = state.trials->classes;
  classes.push_back(std::make_unique<Class>(Class{.collective = collective, .tries = tries, .size_class = size_class}));
  Class& made = *classes.back();
  made.current = &begin(state, made, {}, decision.bytes, decision.choice, job);
  made.current->trial.note_all(made.sites.notes_all());
  return made.current;
}

const One* find(const Communicator& state, Collective collective, std::uint64_t bytes) noexcept {
  const Class* known = class_of(state, collective, size_class_of(bytes), true);
  if (known == nullptr) known = class_of(state, collective, size_class_of(bytes), false);
  return known == nullptr ? nullptr : known->current;
}

One& part_of(Communicator& state, Class& of, const tuning::SitePeriod::Place& place, const Job& job, bool& is_new) {
  is_new = false;
  for (One* const one : of.parts)
    if (one->place == place) return *one;
  if (state.trials->all.size() == most_trials) return of.whole();
  is_new = true;
  One& whole = of.whole();
  const tuning::Selection& selection = selection_for(job, state, of.collective, Form::blocking);
  One* part = nullptr;
  if (place.named != 0) {
    const tuning::Learnt learnt{whole.arrivals.pattern, place.named};
    part =
        &begin(state, of, place, whole.bytes, choice_under(learnt, selection, state, of.collective, whole.bytes), job);
  } else {
    state.trials->all.push_back(std::make_unique<One>(of, place, whole.bytes, whole.candidates, whole.trial.part()));
    part = state.trials->all.back().get();
  }
  part->arrivals = whole.arrivals;
  part->latest = whole.latest;
  return *part;
}

}  // namespace papaya::trials
