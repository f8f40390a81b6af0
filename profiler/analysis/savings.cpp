#include "profiler/analysis/savings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/exit_model.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t no_site = ~std::size_t{0};
// Steps of replays, a rank in a call each, until call sites are left without: a few seconds.
constexpr std::uint64_t most_steps = 300'000'000;

// How the calls of a replay go: those of one site, or all, in one way, the others as recorded.
struct Plan {
  std::size_t site = no_site;
  std::size_t place = 0;           // 0: without excess; k: the k-1st candidate
  std::vector<double> saved_ns{};  // by file, so far
  double parts_ns = 0;             // what the run saves in its parts before
};
constexpr std::size_t plans_of_site = 1 + most_candidates;

// Gathers what is saved at the calls of one site, or of all.
struct Sum {
  Savings savings;
  std::array<double, most_candidates> ranks_ns{};
  std::array<std::vector<std::string>, most_candidates> names;

  void pack(Archive& archive) {
    archive(savings.calls, savings.open_calls, savings.no_excess.ranks_ns, ranks_ns, names);
  }
};

}  // namespace

class SavingsReplay::Replay {
 public:
  Replay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, std::span<const std::size_t> sites,
         std::uint64_t parts, ExitModel& model);

  void add(std::size_t site);
  void end_part(const Clocks& clocks, std::span<const EventFacts> facts);
  void merge(const Replay& next);
  void pack(Archive& archive);
  void write(Analysis& analysis) const;

 private:
  // The sum over the call's ranks of recorded less modelled exits.
  double saved_by_ranks(Way way);
  void add_to(Sum& sum) const;
  Way way_in(const Plan& plan, std::size_t site) const;
  void replay(Plan& plan, std::size_t site);
  double saved_by_run(const Plan& plan) const;
  Savings savings_of(const Sum& sum, std::size_t site) const;

  ExitModel& model_;
  const ReplayedCall& call_;  // the one that is replayed
  double span_ns_ = 0;
  std::vector<double> ends_ns_;  // of the run, by file
  std::vector<Plan> plans_;
  Sum all_;
  std::map<std::size_t, Sum> sums_;  // by site
  // Of one call, and room for it.
  double no_excess_ns_ = 0;
  std::array<double, most_candidates> candidates_ns_{};
  std::vector<double> new_arrivals_;
  std::vector<double> new_exits_;
};

SavingsReplay::Replay::Replay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts,
                              std::span<const std::size_t> sites, std::uint64_t parts, ExitModel& model)
    : model_(model), call_(model.call()) {
  double begin = std::numeric_limits<double>::max();
  double end = std::numeric_limits<double>::lowest();
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    const RankFile& file = run.files[f];
    const NodeClock& clock = clocks.of_file(f);
    const bool wrapped = file.overwritten_events > 0 && facts[f].kept > 0;
    begin = std::min(begin, clock.ns(wrapped ? facts[f].first_ticks : file.header.init_ticks));
    ends_ns_.push_back(clock.ns(file.header.end_ticks != 0 ? file.header.end_ticks : facts[f].last_ticks));
    end = std::max(end, ends_ns_.back());
  }
  span_ns_ = std::max(0.0, end - begin);
  const auto add_plans = [&](std::size_t site) {
    for (std::size_t place = 0; place < plans_of_site; ++place)
      plans_.push_back({site, place, std::vector<double>(run.files.size())});
  };
  add_plans(no_site);
  std::uint64_t steps = 0;
  for (const std::size_t site : sites) {
    steps += plans_of_site * parts;
    if (steps > most_steps) break;
    add_plans(site);
  }
}

void SavingsReplay::Replay::add(std::size_t site) {
  new_arrivals_.resize(call_.count);
  new_exits_.resize(call_.count);
  no_excess_ns_ = std::max(0.0, saved_by_ranks(Way::no_excess));
  for (std::size_t k = 0; call_.open && k < most_candidates; ++k)
    candidates_ns_[k] = call_.place_of(k) == k ? saved_by_ranks(call_.way_with(k)) : candidates_ns_[0];
  add_to(all_);
  if (site != no_site) add_to(sums_[site]);
  for (Plan& plan : plans_) replay(plan, site);
}

void SavingsReplay::Replay::add_to(Sum& sum) const {
  ++sum.savings.calls;
  sum.savings.no_excess.ranks_ns += no_excess_ns_;
  if (!call_.open) return;
  ++sum.savings.open_calls;
  for (std::size_t k = 0; k < most_candidates; ++k) {
    sum.ranks_ns[k] += candidates_ns_[k];
    if (std::string name(call_.algorithm(k));
        std::find(sum.names[k].begin(), sum.names[k].end(), name) == sum.names[k].end())
      sum.names[k].push_back(std::move(name));
  }
}

Way SavingsReplay::Replay::way_in(const Plan& plan, std::size_t site) const {
  if (plan.site != no_site && plan.site != site) return Way::as_recorded;
  return plan.place == 0 ? Way::no_excess : call_.way_with(plan.place - 1);
}

void SavingsReplay::Replay::replay(Plan& plan, std::size_t site) {
  for (std::size_t i = 0; i < call_.count; ++i) new_arrivals_[i] = call_.arrivals_ns[i] - plan.saved_ns[call_.files[i]];
  model_.exits(way_in(plan, site), new_arrivals_, new_exits_);
  for (std::size_t i = 0; i < call_.count; ++i) plan.saved_ns[call_.files[i]] = call_.exits_ns[i] - new_exits_[i];
}

double SavingsReplay::Replay::saved_by_run(const Plan& plan) const {
  double end = std::numeric_limits<double>::lowest();
  double new_end = end;
  for (std::size_t f = 0; f < ends_ns_.size(); ++f) {
    end = std::max(end, ends_ns_[f]);
    new_end = std::max(new_end, ends_ns_[f] - plan.saved_ns[f]);
  }
  return plan.parts_ns + end - new_end;
}

void SavingsReplay::Replay::end_part(const Clocks& clocks, std::span<const EventFacts> facts) {
  for (std::size_t f = 0; f < facts.size(); ++f) ends_ns_[f] = clocks.of_file(f).ns(facts[f].last_ticks);
}

void SavingsReplay::Replay::merge(const Replay& next) {
  const auto add = [](Sum& own, const Sum& other) {
    own.savings.calls += other.savings.calls;
    own.savings.open_calls += other.savings.open_calls;
    own.savings.no_excess.ranks_ns += other.savings.no_excess.ranks_ns;
    for (std::size_t k = 0; k < most_candidates; ++k) {
      own.ranks_ns[k] += other.ranks_ns[k];
      for (const std::string& name : other.names[k])
        if (std::find(own.names[k].begin(), own.names[k].end(), name) == own.names[k].end())
          own.names[k].push_back(name);
    }
  };
  add(all_, next.all_);
  for (const auto& [site, sum] : next.sums_) add(sums_[site], sum);
  for (std::size_t p = 0; p < plans_.size(); ++p) plans_[p].parts_ns += next.saved_by_run(next.plans_[p]);
}

// Of merged parts.
void SavingsReplay::Replay::pack(Archive& archive) {
  archive(all_, sums_);
  for (Plan& plan : plans_) archive(plan.parts_ns);
}

double SavingsReplay::Replay::saved_by_ranks(Way way) {
  new_exits_.resize(call_.count);
  model_.exits(way, call_.arrivals_ns, new_exits_);
  double saved = 0;
  for (std::size_t i = 0; i < call_.count; ++i) saved += call_.exits_ns[i] - new_exits_[i];
  return saved;
}

Savings SavingsReplay::Replay::savings_of(const Sum& sum, std::size_t site) const {
  Savings savings = sum.savings;
  savings.span_ns = span_ns_;
  const auto plan = std::find_if(plans_.begin(), plans_.end(), [site](const Plan& one) { return one.site == site; });
  const bool has_run = plan != plans_.end();
  if (has_run) savings.no_excess.run_ns = saved_by_run(*plan);
  if (savings.open_calls == 0) return savings;
  for (std::size_t k = 0; k < most_candidates; ++k) {
    if (k > 0 && sum.names[k] == sum.names[0]) continue;
    Savings::Candidate one{fmt::format("{}", fmt::join(sum.names[k], ", ")), {}};
    one.saving.ranks_ns = sum.ranks_ns[k];
    if (has_run) one.saving.run_ns = saved_by_run(*(plan + 1 + static_cast<std::ptrdiff_t>(k)));
    savings.candidates.push_back(std::move(one));
  }
  std::stable_sort(savings.candidates.begin(), savings.candidates.end(),
                   [](const auto& a, const auto& b) { return a.saving.ranks_ns > b.saving.ranks_ns; });
  return savings;
}

void SavingsReplay::Replay::write(Analysis& analysis) const {
  if (all_.savings.calls == 0) return;
  analysis.savings = savings_of(all_, no_site);
  for (CallSiteFigures& site : analysis.call_sites)
    if (const auto sum = sums_.find(site.number); sum != sums_.end())
      site.savings = savings_of(sum->second, site.number);
}

SavingsReplay::SavingsReplay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts,
                             std::span<const std::size_t> sites, std::uint64_t parts, ExitModel& model)
    : replay_(std::make_unique<Replay>(run, clocks, facts, sites, parts, model)) {}
SavingsReplay::~SavingsReplay() = default;
SavingsReplay::SavingsReplay(SavingsReplay&&) noexcept = default;

void SavingsReplay::add(std::size_t site) {
  replay_->add(site);
}
void SavingsReplay::end_part(const Clocks& clocks, std::span<const EventFacts> facts) {
  replay_->end_part(clocks, facts);
}
void SavingsReplay::merge(const SavingsReplay& next) {
  replay_->merge(*next.replay_);
}
void SavingsReplay::pack(Archive& archive) {
  replay_->pack(archive);
}
void SavingsReplay::write(Analysis& analysis) const {
  replay_->write(analysis);
}

const Savings::Candidate* Savings::best() const {
  const auto found = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& one) {
    return one.saving.ranks_ns > 0 && !(one.saving.run_ns <= 0);
  });
  return found == candidates.end() ? nullptr : &*found;
}

}  // namespace papaya::report
