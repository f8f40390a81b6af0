// The decision about a call, over all of its facts: against the list of rules in their order, and that nothing else has
// a say. All ranks must decide alike, so a fact that is not in the list must not change anything.
#include "interpose/decide.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/saturating.hpp"
#include "tests/catch.hpp"

namespace papaya {

namespace {

using Operation = Signature::Operation;

struct Facts {
  CommunicatorFacts communicator;
  CallShape call;
  Signature signature;
};

// What the user has named: for every collective, an algorithm of the built-in table or none.
tuning::Selection selection_of(const char* allreduce, const char* iallreduce) {
  std::vector<std::string> warnings;
  Settings settings;
  settings.set(Variable::allreduce, allreduce);
  if (iallreduce != nullptr) settings.set(Variable::iallreduce, iallreduce);
  tuning::Selection selection(settings, "", warnings);
  CHECK(warnings.empty());
  return selection;
}

// All that may be replaced, and one that never is.
constexpr Collective collectives[] = {Collective::barrier,        Collective::bcast,
                                      Collective::allgather,      Collective::alltoall,
                                      Collective::alltoallv,      Collective::reduce,
                                      Collective::allreduce,      Collective::scan,
                                      Collective::reduce_scatter, Collective::reduce_scatter_block,
                                      Collective::allgatherv,     Collective::gather,
                                      Collective::scatter};

bool leaves_early(Collective collective) {
  return collective == Collective::bcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

// Calls `look` with every combination of values that differ in meaning.
void for_all(const std::function<void(const Facts&)>& look) {
  const bool both[] = {false, true};
  Facts f;
  for (const Collective collective : collectives)
    for (const Form form : {Form::blocking, Form::nonblocking})
      for (const bool is_named : both)
        for (const int flags : {0, 1, 2, 4, 8, 16, 32, 63})
          for (const int ranks : {1, 4})
            for (const int nodes : {1, 2})
              for (const std::int64_t count :
                   {std::int64_t{-1}, std::int64_t{0}, std::int64_t{3}, std::int64_t{1} << 62})
                for (const int root : {-1, 0, 3, 4})
                  for (const std::int64_t element : {-1, 0, 8, 2000})
                    for (const Operation operation :
                         {Operation::none, Operation::unsuitable, Operation::user, Operation::predefined})
                      for (const bool commutative : both) {
                        f.communicator = {.facts = {.ranks = ranks, .nodes = nodes},
                                          .arrival_order = (flags & 1) != 0,
                                          .inter = (flags & 2) != 0,
                                          .outside = (flags & 4) != 0,
                                          .has_copy = (flags & 8) != 0,
                                          .has_due_plans = (flags & 16) != 0,
                                          .has_verdicts = (flags & 32) != 0};
                        f.call = {collective, form, is_named, count, root};
                        f.signature = {element, operation, commutative};
                        look(f);
                      }
}

bool has_sizes(const Facts& f) {
  return f.call.collective != Collective::barrier && f.call.collective != Collective::alltoallv;
}

std::uint64_t bytes_of(const Facts& f) {
  return has_sizes(f) ? saturating::product(static_cast<std::uint64_t>(f.call.count),
                                            static_cast<std::uint64_t>(f.signature.element_bytes))
                      : 0;
}

// The first of these that holds is the reason. What the selection says comes after them.
struct Row {
  Reason reason;
  bool (*holds)(const Facts&);
};
constexpr Row before_types[] = {
    {Reason::no_algorithm, [](const Facts& f) { return f.call.form == Form::nonblocking && !f.call.is_named; }},
    {Reason::intercommunicator, [](const Facts& f) { return f.communicator.inter; }},
    {Reason::outside, [](const Facts& f) { return f.communicator.outside; }},
    {Reason::one_rank, [](const Facts& f) { return f.communicator.facts.ranks == 1; }},
    {Reason::no_copy, [](const Facts& f) { return f.call.form == Form::nonblocking && !f.communicator.has_copy; }},
    {Reason::arguments, [](const Facts& f) { return has_sizes(f) && f.call.count < 0; }},
    {Reason::arguments,
     [](const Facts& f) {
       const bool has_root = leaves_early(f.call.collective);
       return has_root && (f.call.root < 0 || f.call.root >= f.communicator.facts.ranks);
     }},
    {Reason::no_data, [](const Facts& f) { return has_sizes(f) && f.call.count == 0; }},
};
bool is_reduction(const Facts& f) {
  return f.call.collective == Collective::allreduce || f.call.collective == Collective::reduce ||
         f.call.collective == Collective::reduce_scatter || f.call.collective == Collective::reduce_scatter_block;
}
constexpr Row by_types[] = {
    {Reason::unsuitable_operation,
     [](const Facts& f) { return is_reduction(f) && f.signature.operation == Operation::unsuitable; }},
    {Reason::pending_operation,
     [](const Facts& f) {
       return is_reduction(f) && f.call.form == Form::nonblocking && f.signature.operation == Operation::user;
     }},
    {Reason::arguments,
     [](const Facts& f) { return has_sizes(f) && !is_reduction(f) && f.signature.element_bytes < 0; }},
    {Reason::no_data,
     [](const Facts& f) { return has_sizes(f) && !is_reduction(f) && f.signature.element_bytes == 0; }},
    {Reason::too_large, [](const Facts& f) { return bytes_of(f) > (std::uint64_t{1} << 30); }},
};

Reason first_of(std::span<const Row> rows, const Facts& f) {
  for (const Row& row : rows)
    if (row.holds(f)) return row.reason;
  return Reason::none;
}

// An allgatherv as an allgather of the mean of its blocks, by the table up to 128 KiB.
tuning::Choice by_mean_block(const tuning::Selection& selection, const Facts& f, const tuning::Facts& facts) {
  const auto ranks = static_cast<std::uint64_t>(facts.ranks);
  const std::uint64_t mean = (bytes_of(f) + ranks - 1) / ranks;
  const tuning::Choice choice = selection.choose(Collective::allgather, mean, facts, f.call.form);
  if (choice.rule != nullptr && choice.automatic && mean > 131072) return {.reason = Reason::table, .automatic = true};
  const bool is_served = choice.rule == nullptr || choice.rule->algorithm->serves_allgatherv;
  return is_served ? choice : tuning::Choice{.reason = Reason::no_algorithm};
}

bool same(const Decision& one, const Decision& other) {
  return one.choice.rule == other.choice.rule && one.choice.reason == other.choice.reason &&
         one.choice.forced == other.choice.forced && one.choice.named == other.choice.named &&
         one.choice.automatic == other.choice.automatic && !one.choice.at_once && !other.choice.at_once &&
         one.bytes == other.bytes && one.sets_up_due_plans == other.sets_up_due_plans &&
         one.agrees_on_verdicts == other.agrees_on_verdicts && one.may_be_tried == other.may_be_tried;
}

}  // namespace

TEST_CASE("a call goes to an algorithm unless one of the rules, in their order, or the selection says no") {
  for (const tuning::Selection& selection : {selection_of("auto", nullptr), selection_of("sorted_tree", "ring")}) {
    std::size_t wrong = 0;
    std::set<Reason> seen;
    for_all([&](const Facts& f) {
      const Reason early = first_of(before_types, f);
      wrong += excluded(f.communicator, f.call) != early;
      const Decision decision = decide(selection, f.communicator, f.call, f.signature);
      seen.insert(decision.choice.reason);
      wrong += (decision.choice.rule != nullptr) != (decision.choice.reason == Reason::none);
      const Reason reason = early != Reason::none ? early : first_of(by_types, f);
      if (reason != Reason::none) {
        wrong += !same(decision, {.choice = {.reason = reason}});
        return;
      }
      tuning::Facts facts = f.communicator.facts;
      facts.predefined = !is_reduction(f) || f.signature.operation == Operation::predefined;
      facts.may_reorder = f.communicator.arrival_order && f.call.form == Form::blocking &&
                          (!is_reduction(f) || f.signature.commutative);
      tuning::Choice choice =
          f.call.collective == Collective::alltoallv
              ? selection.choose_for_any_size(Collective::alltoall, Collective::alltoallv, f.communicator.facts)
          : f.call.collective == Collective::allgatherv
              ? by_mean_block(selection, f, facts)
              : selection.choose(f.call.collective, bytes_of(f), facts, f.call.form);
      if (choice.rule != nullptr && is_reduction(f) && f.signature.element_bytes > 0 &&
          static_cast<std::size_t>(f.signature.element_bytes) > choice.rule->algorithm->max_element_bytes)
        choice = {.reason = Reason::too_large};
      const bool no_rank_leaves =
          f.call.collective == Collective::barrier || f.call.collective == Collective::allreduce ||
          f.call.collective == Collective::allgather || f.call.collective == Collective::alltoall ||
          f.call.collective == Collective::reduce_scatter_block;
      const bool may_be_tried = choice.automatic && f.call.collective != Collective::alltoallv &&
                                f.call.collective != Collective::allgatherv && facts.predefined &&
                                f.call.form == Form::blocking && !f.communicator.arrival_order;
      const bool meets = f.call.form == Form::blocking && no_rank_leaves;
      wrong += !same(decision, {choice, bytes_of(f), f.communicator.has_due_plans && meets,
                                f.communicator.has_verdicts && meets, may_be_tried});
    });
    CHECK(wrong == 0);
    // The list above has been walked, not only its first rows.
    for (const Reason reason :
         {Reason::none, Reason::no_algorithm, Reason::intercommunicator, Reason::outside, Reason::one_rank,
          Reason::no_copy, Reason::arguments, Reason::no_data, Reason::unsuitable_operation, Reason::pending_operation,
          Reason::too_large, Reason::several_nodes})
      CHECK(seen.count(reason) == 1);
  }
}

TEST_CASE("what MPI calls insignificant, and what another kind of call goes by, changes no decision") {
  const tuning::Selection selection = selection_of("sorted_tree", "ring");
  std::size_t wrong = 0;
  for_all([&](const Facts& f) {
    Facts other = f;
    const bool has_root = leaves_early(f.call.collective);
    if (!has_root) other.call.root = 17;
    if (!is_reduction(f)) {
      other.signature.operation = Operation::unsuitable;
      other.signature.commutative = !f.signature.commutative;
    }
    if (!has_sizes(f)) {
      other.call.count = -5;
      other.signature.element_bytes = -1;
    }
    if (f.call.form == Form::blocking) {
      other.call.is_named = !f.call.is_named;
      other.communicator.has_copy = !f.communicator.has_copy;
    } else {
      other.communicator.has_due_plans = !f.communicator.has_due_plans;
      other.communicator.has_verdicts = !f.communicator.has_verdicts;
      other.communicator.arrival_order = !f.communicator.arrival_order;
      other.signature.commutative = !f.signature.commutative;
    }
    other.communicator.facts.predefined = !f.communicator.facts.predefined;
    other.communicator.facts.may_reorder = !f.communicator.facts.may_reorder;
    wrong += !same(decide(selection, f.communicator, f.call, f.signature),
                   decide(selection, other.communicator, other.call, other.signature));
  });
  CHECK(wrong == 0);
}

TEST_CASE("an algorithm for commutative operations in order of arrival gets those alone") {
  const tuning::Selection selection = selection_of("sorted_tree", nullptr);
  Facts f{{.facts = {.ranks = 4, .nodes = 1}, .arrival_order = true},
          {.collective = Collective::allreduce, .count = 1},
          {.element_bytes = 8, .operation = Operation::predefined, .commutative = true}};
  const auto reason = [&] { return decide(selection, f.communicator, f.call, f.signature).choice.reason; };
  CHECK(reason() == Reason::none);
  f.signature.commutative = false;
  CHECK(reason() == Reason::order);
  f.signature.commutative = true;
  f.communicator.arrival_order = false;
  CHECK(reason() == Reason::order);
}

TEST_CASE("an algorithm that is dropped serves no call of its communicator, others do") {
  const tuning::Selection selection = selection_of("sorted_tree", "ring");
  std::size_t wrong = 0;
  std::set<Collective> left;
  for_all([&](const Facts& f) {
    const tuning::Choice before = decide(selection, f.communicator, f.call, f.signature).choice;
    if (before.rule == nullptr) return;
    for (const Descriptor* one : registry()) {
      CommunicatorFacts communicator = f.communicator;
      communicator.dropped = {&one, 1};
      const tuning::Choice choice = decide(selection, communicator, f.call, f.signature).choice;
      const bool is_it = one == before.rule->algorithm;
      if (is_it) left.insert(f.call.collective);
      wrong += choice.rule != (is_it ? nullptr : before.rule) || (choice.reason == Reason::differs) != is_it;
    }
  });
  CHECK(wrong == 0);
  CHECK(left.size() >= 6);
}

TEST_CASE("the largest message") {
  const tuning::Selection selection = selection_of("auto", nullptr);
  Facts f{{.facts = {.ranks = 4, .nodes = 1}},
          {.collective = Collective::allreduce, .count = std::int64_t{1} << 30},
          {.element_bytes = 1, .operation = Operation::predefined, .commutative = true}};
  const auto reason = [&] { return decide(selection, f.communicator, f.call, f.signature).choice.reason; };
  CHECK(reason() == Reason::none);
  ++f.call.count;
  CHECK(reason() == Reason::too_large);
}

TEST_CASE("when a plan is set up") {
  const tuning::Selection selection = selection_of("auto", nullptr);
  for (const Collective collective : collectives)
    for (const int nodes : {1, 2})
      for (const Form form : {Form::blocking, Form::nonblocking})
        for (const bool forced : {false, true})
          for (const bool is_ready : {false, true})
            for (const Reason failure : {Reason::none, Reason::no_shared_memory})
              for (const std::uint64_t calls : {0, 7, 8, 9}) {
                tuning::Choice choice = selection.choose(collective, collective == Collective::barrier ? 0 : 8, {4, 1});
                if (choice.rule == nullptr) continue;  // not in the table
                choice.forced = forced;
                const Next next = next_step(choice, form, nodes, {is_ready, failure, calls});
                Next expected{Step::set_up, Reason::none};
                if (is_ready)
                  expected = {Step::run, Reason::none};
                else if (failure != Reason::none)
                  expected = {Step::go_native, failure};
                else if (form == Form::blocking && !forced && calls < 8)
                  expected = {Step::go_native, Reason::few_calls};
                else if (form == Form::blocking && leaves_early(collective))
                  expected = nodes == 1 ? Next{Step::join, Reason::few_calls} : Next{Step::postpone, Reason::not_met};
                CHECK(next.step == expected.step);
                CHECK(next.reason == expected.reason);
              }
}

TEST_CASE("an old sentence stands for one reason of today") {
  std::set<std::string_view> names(reason_names.begin(), reason_names.end());
  CHECK(names.size() == reason_names.size());
  for (std::size_t i = 0; i < reason_names.size(); ++i) {
    CHECK(current_reason_name(reason_names[i]) == reason_names[i]);
    if (old_reason_names[i].empty()) continue;
    CHECK(names.insert(old_reason_names[i]).second);
    CHECK(current_reason_name(old_reason_names[i]) == reason_names[i]);
  }
  CHECK(current_reason_name("the communicator has made too few calls yet") == name_of(Reason::few_calls));
  CHECK(current_reason_name("a reason of another version") == "a reason of another version");
}

}  // namespace papaya
