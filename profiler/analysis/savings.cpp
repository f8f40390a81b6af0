#include "profiler/analysis/savings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/cost_model.hpp"
#include "base/reason.hpp"
#include "profiler/analysis/alpha.hpp"
#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t no_site = ~std::size_t{0};
constexpr std::size_t most_candidates = 2;
// A core goes to another rank in about so long.
constexpr double switch_ns = 5000;
// Steps of replays, a rank in a call each, until call sites are left without: a few seconds.
constexpr std::uint64_t most_steps = 300'000'000;

// Reasons for which a call stays with MPI that a setting can lift.
bool is_open(std::string_view id) {
  for (const Reason one : {Reason::none, Reason::selected, Reason::table, Reason::few_calls, Reason::several_nodes,
                           Reason::outside_ranges})
    if (id == id_of(one)) return true;
  return false;
}

// The algorithms that a call of so many bytes is modelled with, the preferred first; null: no more.
using Models = std::array<const CostModel*, most_candidates>;
Models models_for(Collective collective, bool across_nodes, std::uint64_t bytes) {
  Models found{};
  std::size_t count = 0;
  for (const CostModel& model : cost_models()) {
    if (model.collective != collective || (model.network_ns != nullptr) != across_nodes || bytes > model.most_bytes)
      continue;
    found[count++] = &model;
    if (!across_nodes || count == found.size()) break;
  }
  return found;
}

// The call that is being replayed.
struct Call {
  Roles roles;
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  std::size_t site = no_site;
  bool open = false;
  Models models{};             // of an open call
  double node_latency_ns = 0;  // L, and the others of the model
  double copy_ns = 0;
  std::array<double, most_candidates> network_ns{};  // of each model
  std::vector<std::vector<std::size_t>> nodes{};     // places in the call by node
  std::vector<std::uint32_t> files{};
  std::vector<double> arrivals_ns{};
  std::vector<double> exits_ns{};
};

enum class Way : std::uint8_t { as_recorded, no_excess, first_candidate, second_candidate };
constexpr Way candidate(std::size_t k) {
  return static_cast<Way>(static_cast<std::size_t>(Way::first_candidate) + k);
}

// How the calls of a replay go: those of one site, or all, in one way, the others as recorded.
struct Plan {
  std::size_t site = no_site;
  std::size_t place = 0;           // 0: without excess; k: the k-1st candidate
  std::vector<double> saved_ns{};  // by file, so far
};
constexpr std::size_t plans_of_site = 1 + most_candidates;

// Gathers what is saved at the calls of one site, or of all.
struct Sum {
  Savings savings;
  std::array<double, most_candidates> ranks_ns{};
  std::array<std::vector<std::string>, most_candidates> names;
};

}  // namespace

class SavingsReplay::Replay {
 public:
  Replay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, std::span<const std::size_t> sites,
         std::uint64_t parts);

  void add(const GroupCall& call, std::size_t site);
  void write(Analysis& analysis) const;

 private:
  bool take_call(const GroupCall& call, std::size_t site);
  void measure();
  void model(Way way, std::span<const double> arrivals, std::span<double> exits);
  double reduced(const std::vector<std::size_t>& node, std::span<const double> arrivals);
  void model_blocks(std::span<const double> arrivals, std::span<double> exits);
  void model_across(Way way, std::span<const double> arrivals, std::span<double> exits);
  void take(double from, double copies, std::span<double> exits) const;
  // The sum over the call's ranks of recorded less modelled exits.
  double saved_by_ranks(Way way);
  void add_to(Sum& sum) const;
  Way way_in(const Plan& plan) const;
  void replay(Plan& plan);
  double saved_by_run(const Plan& plan) const;
  Savings savings_of(const Sum& sum, std::size_t site) const;

  const Run& run_;
  Alpha alpha_;
  std::vector<std::array<bool, trace::reason_capacity>> open_reasons_;  // by file
  double crowding_ = 0;                                                 // ranks to a core where it has more than one
  double span_ns_ = 0;
  std::vector<double> ends_ns_;  // of the run, by file
  std::vector<Plan> plans_;
  Sum all_;
  std::map<std::size_t, Sum> sums_;  // by site
  // Of one call, and room for it.
  Call call_;
  double no_excess_ns_ = 0;
  std::array<double, most_candidates> candidates_ns_{};
  std::vector<double> sorted_;
  std::vector<double> legal_;
  std::vector<double> new_arrivals_;
  std::vector<double> new_exits_;
};

SavingsReplay::Replay::Replay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts,
                              std::span<const std::size_t> sites, std::uint64_t parts)
    : run_(run), alpha_(run.files) {
  double begin = std::numeric_limits<double>::max();
  double end = std::numeric_limits<double>::lowest();
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    const RankFile& file = run.files[f];
    const NodeClock& clock = clocks.of_file(f);
    if (file.header.node_ranks > file.header.cores && file.header.cores > 0)
      crowding_ = std::max(crowding_, static_cast<double>(file.header.node_ranks) / file.header.cores);
    auto& open = open_reasons_.emplace_back();
    for (std::size_t r = 0; r < open.size(); ++r) open[r] = is_open(file.header.reason_ids[r]);
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

// False: nobody knows how long it would have taken.
bool SavingsReplay::Replay::take_call(const GroupCall& recorded, std::size_t site) {
  call_.roles = roles_of(recorded);
  call_.count = recorded.sightings.size();
  call_.site = site;
  call_.bytes = 0;
  call_.open = true;
  call_.files.clear();
  call_.arrivals_ns.clear();
  call_.exits_ns.clear();
  std::map<std::int32_t, std::vector<std::size_t>> nodes;
  for (const Sighting& sighting : recorded.sightings) {
    const trace::Event& event = sighting.event;
    if (event.exit_ticks == 0) return false;
    call_.bytes = std::max(call_.bytes, event.bytes);
    call_.open = call_.open && event.algorithm == 0 && open_reasons_[sighting.file][event.reason];
    nodes[run_.files[sighting.file].header.node].push_back(call_.files.size());
    call_.files.push_back(sighting.file);
    call_.arrivals_ns.push_back(sighting.arrival_ns);
    call_.exits_ns.push_back(sighting.exit_ns);
  }
  call_.nodes.clear();
  for (auto& [node, places] : nodes) call_.nodes.push_back(std::move(places));
  const bool rooted =
      need_of(call_.roles.collective) == Need::root || need_of(call_.roles.collective) == Need::root_needs_all;
  const bool across = call_.nodes.size() > 1;
  call_.models = models_for(call_.roles.collective, across, call_.bytes);
  call_.open = call_.open && call_.models[0] != nullptr && (!rooted || call_.roles.root < call_.count) &&
               alpha_.measured(false) && (!across || alpha_.measured(true));
  if (call_.open) measure();
  return true;
}

void SavingsReplay::Replay::add(const GroupCall& recorded, std::size_t site) {
  if (recorded.match != Match::complete || !take_call(recorded, site)) return;
  new_arrivals_.resize(call_.count);
  new_exits_.resize(call_.count);
  no_excess_ns_ = std::max(0.0, saved_by_ranks(Way::no_excess));
  for (std::size_t k = 0; call_.open && k < most_candidates; ++k)
    candidates_ns_[k] = call_.models[k] == nullptr ? candidates_ns_[0] : saved_by_ranks(candidate(k));
  add_to(all_);
  if (site != no_site) add_to(sums_[site]);
  for (Plan& plan : plans_) replay(plan);
}

void SavingsReplay::Replay::add_to(Sum& sum) const {
  ++sum.savings.calls;
  sum.savings.no_excess.ranks_ns += no_excess_ns_;
  if (!call_.open) return;
  ++sum.savings.open_calls;
  for (std::size_t k = 0; k < most_candidates; ++k) {
    // A collective with one candidate has it in both places, so that sums over collectives compare.
    const std::size_t which = call_.models[k] == nullptr ? 0 : k;
    sum.ranks_ns[k] += candidates_ns_[k];
    if (std::string name(call_.models[which]->algorithm);
        std::find(sum.names[k].begin(), sum.names[k].end(), name) == sum.names[k].end())
      sum.names[k].push_back(std::move(name));
  }
}

Way SavingsReplay::Replay::way_in(const Plan& plan) const {
  if (plan.site != no_site && plan.site != call_.site) return Way::as_recorded;
  if (plan.place == 0) return Way::no_excess;
  if (!call_.open) return Way::as_recorded;
  return candidate(call_.models[plan.place - 1] == nullptr ? 0 : plan.place - 1);
}

void SavingsReplay::Replay::replay(Plan& plan) {
  for (std::size_t i = 0; i < call_.count; ++i) new_arrivals_[i] = call_.arrivals_ns[i] - plan.saved_ns[call_.files[i]];
  model(way_in(plan), new_arrivals_, new_exits_);
  for (std::size_t i = 0; i < call_.count; ++i) plan.saved_ns[call_.files[i]] = call_.exits_ns[i] - new_exits_[i];
}

double SavingsReplay::Replay::saved_by_run(const Plan& plan) const {
  double end = std::numeric_limits<double>::lowest();
  double new_end = end;
  for (std::size_t f = 0; f < ends_ns_.size(); ++f) {
    end = std::max(end, ends_ns_[f]);
    new_end = std::max(new_end, ends_ns_[f] - plan.saved_ns[f]);
  }
  return end - new_end;
}

void SavingsReplay::Replay::measure() {
  call_.node_latency_ns = alpha_.ns(0, false);
  call_.copy_ns = std::max(0.0, alpha_.ns(call_.bytes, false) - call_.node_latency_ns) / 2;
  if (call_.nodes.size() < 2) return;
  std::size_t largest = 0;
  for (const auto& node : call_.nodes) largest = std::max(largest, node.size());
  const NetworkCall network{.nodes = static_cast<double>(call_.nodes.size()),
                            .ranks = static_cast<double>(call_.count),
                            .node_ranks = static_cast<double>(largest),
                            .latency_ns = alpha_.ns(0, true),
                            .message_ns = alpha_.ns(call_.bytes, true),
                            .node_message_ns = alpha_.ns(call_.bytes * largest, true)};
  for (std::size_t k = 0; k < most_candidates; ++k)
    if (call_.models[k] != nullptr) call_.network_ns[k] = call_.models[k]->network_ns(network);
}

double SavingsReplay::Replay::saved_by_ranks(Way way) {
  new_exits_.resize(call_.count);
  model(way, call_.arrivals_ns, new_exits_);
  double saved = 0;
  for (std::size_t i = 0; i < call_.count; ++i) saved += call_.exits_ns[i] - new_exits_[i];
  return saved;
}

// As recorded: as long after the earliest legal exit as it was.
void SavingsReplay::Replay::model(Way way, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  if (way == Way::as_recorded || way == Way::no_excess) {
    earliest_exits(call_.roles, arrivals_ns, exits_ns);
    if (way == Way::no_excess) return;
    legal_.resize(call_.count);
    earliest_exits(call_.roles, call_.arrivals_ns, legal_);
    for (std::size_t i = 0; i < call_.count; ++i) exits_ns[i] += call_.exits_ns[i] - legal_[i];
    return;
  }
  if (call_.nodes.size() > 1) {
    model_across(way, arrivals_ns, exits_ns);
  } else {
    switch (call_.roles.collective) {
      case Collective::allreduce:
        take(reduced(call_.nodes[0], arrivals_ns) + call_.node_latency_ns, 1, exits_ns);
        break;
      case Collective::reduce:
        for (std::size_t i = 0; i < call_.count; ++i) exits_ns[i] = arrivals_ns[i] + call_.copy_ns;
        exits_ns[call_.roles.root] = reduced(call_.nodes[0], arrivals_ns) + call_.node_latency_ns + call_.copy_ns;
        break;
      case Collective::bcast: {
        const double there = arrivals_ns[call_.roles.root] + call_.copy_ns;
        for (std::size_t i = 0; i < call_.count; ++i)
          exits_ns[i] = std::max(arrivals_ns[i], there + call_.node_latency_ns) + call_.copy_ns;
        exits_ns[call_.roles.root] = there;
        break;
      }
      case Collective::barrier:
        take(*std::max_element(arrivals_ns.begin(), arrivals_ns.end()) + call_.node_latency_ns, 0, exits_ns);
        break;
      default:
        model_blocks(arrivals_ns, exits_ns);
        break;
    }
  }
  if (crowding_ == 0) return;
  // Who waited longer than a switch takes gave its core away.
  for (std::size_t i = 0; i < call_.count; ++i)
    if (exits_ns[i] - arrivals_ns[i] > switch_ns) exits_ns[i] += switch_ns * crowding_;
}

void SavingsReplay::Replay::take(double from, double copies, std::span<double> exits_ns) const {
  for (double& exit : exits_ns) exit = from + copies * call_.copy_ns;
}

// When the operands of a node's ranks are one.
double SavingsReplay::Replay::reduced(const std::vector<std::size_t>& node, std::span<const double> arrivals_ns) {
  const auto ranks = static_cast<double>(node.size());
  const std::int32_t cores = run_.files[call_.files[node[0]]].header.cores;
  const double workers = std::max(1.0, std::min(ranks, static_cast<double>(cores)));
  double last_ns = std::numeric_limits<double>::lowest();
  for (const std::size_t i : node) last_ns = std::max(last_ns, arrivals_ns[i]);
  // Who came so early that all operands could have been combined since does not matter.
  const double since_ns = last_ns - ranks * call_.copy_ns / workers;
  sorted_.clear();
  for (const std::size_t i : node)
    if (arrivals_ns[i] >= since_ns) sorted_.push_back(arrivals_ns[i]);
  std::sort(sorted_.begin(), sorted_.end());
  double ready = last_ns;
  for (std::size_t k = 0; k < sorted_.size(); ++k) {
    const auto left = static_cast<double>(sorted_.size() - k);
    ready = std::max(ready, sorted_[k] + call_.copy_ns + left * call_.copy_ns / workers);
  }
  return ready;
}

// Blocks of every rank for every rank, on one node.
void SavingsReplay::Replay::model_blocks(std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  sorted_.assign(arrivals_ns.begin(), arrivals_ns.end());
  std::sort(sorted_.begin(), sorted_.end());
  const double others = static_cast<double>(call_.count - 1);
  const double given = (call_.roles.collective == Collective::alltoall ? others : 1) * call_.copy_ns;
  double last = 0;
  for (std::size_t k = 0; k < sorted_.size(); ++k) {
    const double left = std::min(others, static_cast<double>(sorted_.size() - k));
    const double done = sorted_[k] + given + call_.node_latency_ns + left * call_.copy_ns;
    last = k == 0 ? done : std::max(last, done);
  }
  for (std::size_t i = 0; i < call_.count; ++i)
    exits_ns[i] = std::max(last, arrivals_ns[i] + given + others * call_.copy_ns);
}

void SavingsReplay::Replay::model_across(Way way, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  const double network = call_.network_ns[way == Way::first_candidate ? 0 : 1];
  double ready = std::numeric_limits<double>::lowest();
  for (const auto& node : call_.nodes) ready = std::max(ready, reduced(node, arrivals_ns));
  switch (call_.roles.collective) {
    case Collective::allreduce:
      return take(ready + network + call_.node_latency_ns, 1, exits_ns);
    case Collective::reduce:
      for (std::size_t i = 0; i < call_.count; ++i) exits_ns[i] = arrivals_ns[i] + call_.copy_ns;
      for (const auto& node : call_.nodes) exits_ns[node[0]] = std::max(exits_ns[node[0]], reduced(node, arrivals_ns));
      exits_ns[call_.roles.root] = ready + network + call_.copy_ns;
      return;
    case Collective::bcast: {
      const double there = arrivals_ns[call_.roles.root] + call_.copy_ns;
      for (const auto& node : call_.nodes) {
        const bool own = std::find(node.begin(), node.end(), call_.roles.root) != node.end();
        for (const std::size_t i : node)
          exits_ns[i] = std::max(arrivals_ns[i], there + (own ? 0 : network) + call_.node_latency_ns) + call_.copy_ns;
      }
      exits_ns[call_.roles.root] = there;
      return;
    }
    case Collective::barrier:
      return take(ready + network + 2 * call_.node_latency_ns, 0, exits_ns);
    default:  // allgather, alltoall
      return take(ready + network + call_.node_latency_ns, static_cast<double>(call_.count - 1), exits_ns);
  }
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
                             std::span<const std::size_t> sites, std::uint64_t parts)
    : replay_(std::make_unique<Replay>(run, clocks, facts, sites, parts)) {}
SavingsReplay::~SavingsReplay() = default;

void SavingsReplay::add(const GroupCall& call, std::size_t site) {
  replay_->add(call, site);
}
void SavingsReplay::write(Analysis& analysis) const {
  replay_->write(analysis);
}

const Savings::Candidate* Savings::best() const {
  return candidates.empty() || candidates.front().saving.ranks_ns <= 0 ? nullptr : &candidates.front();
}

}  // namespace papaya::report
