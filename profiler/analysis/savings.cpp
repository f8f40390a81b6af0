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

// One call of the replay; its ranks are `count` from `first` in the lists of files, arrivals and exits.
struct Call {
  Roles roles;
  std::uint64_t bytes = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t site = no_site;
  bool open = false;
  Models models{};  // of an open call
  double last_ns = 0;
  double node_latency_ns = 0;  // L, and the others of the model
  double copy_ns = 0;
  std::array<double, most_candidates> network_ns{};  // of each model
  std::vector<std::vector<std::size_t>> nodes{};     // places in the call by node
};

enum class Way : std::uint8_t { as_recorded, no_excess, first_candidate, second_candidate };
constexpr Way candidate(std::size_t k) {
  return static_cast<Way>(static_cast<std::size_t>(Way::first_candidate) + k);
}

class Replay {
 public:
  Replay(const Run& run, const Clocks& clocks) : run_(run), clocks_(clocks), alpha_(run.files) {
    for (const RankFile& file : run.files)
      if (file.header.node_ranks > file.header.cores && file.header.cores > 0)
        crowding_ = std::max(crowding_, static_cast<double>(file.header.node_ranks) / file.header.cores);
    for (const RankFile& file : run.files) {
      auto& open = open_reasons_.emplace_back();
      for (std::size_t r = 0; r < open.size(); ++r) open[r] = is_open(file.header.reason_ids[r]);
    }
  }

  void add(const MatchedCall& matched, std::size_t site);
  void finish();
  std::span<const Call> calls() const { return calls_; }
  std::uint64_t steps() const { return files_.size(); }

  // The sum over the call's ranks of recorded less modelled exits.
  double saved_by_ranks(const Call& call, Way way);
  // `way_of` says how each call goes.
  template <class WayOf>
  double saved_by_run(WayOf&& way_of);
  double span_ns() const { return span_ns_; }

 private:
  std::span<const double> arrivals(const Call& call) const { return {arrivals_.data() + call.first, call.count}; }
  std::span<const double> exits(const Call& call) const { return {exits_.data() + call.first, call.count}; }
  double end_of(std::size_t file) const;
  void measure(Call& call);
  void model(const Call& call, Way way, std::span<const double> arrivals, std::span<double> exits);
  double reduced(const Call& call, const std::vector<std::size_t>& node, std::span<const double> arrivals);
  void model_blocks(const Call& call, std::span<const double> arrivals, std::span<double> exits);
  void model_across(const Call& call, Way way, std::span<const double> arrivals, std::span<double> exits);
  void take(const Call& call, double from, double copies, std::span<double> exits) const;

  const Run& run_;
  const Clocks& clocks_;
  Alpha alpha_;
  std::vector<std::array<bool, trace::reason_capacity>> open_reasons_;  // by file
  double crowding_ = 0;                                                 // ranks to a core where it has more than one
  std::vector<Call> calls_;
  std::vector<std::uint32_t> files_;
  std::vector<double> arrivals_;
  std::vector<double> exits_;
  double span_ns_ = 0;
  std::vector<double> ends_ns_;  // of the run, by file
  // Room for one call.
  std::vector<double> sorted_;
  std::vector<double> legal_;
  std::vector<double> new_arrivals_;
  std::vector<double> new_exits_;
  std::vector<double> saved_;  // by file, so far
};

void Replay::add(const MatchedCall& matched, std::size_t site) {
  Call call;
  call.roles = roles_of(run_, matched);
  call.first = files_.size();
  call.count = matched.ranks.size();
  call.site = site;
  call.last_ns = matched.ranks[matched.order.last].arrival_ns;
  call.open = true;
  std::map<std::int32_t, std::vector<std::size_t>> nodes;
  for (const RankInCall& rank : matched.ranks) {
    const trace::Event& event = run_.files[rank.file].events[rank.event];
    if (event.exit_ticks == 0) {  // nobody knows how long it would have taken
      files_.resize(call.first);
      arrivals_.resize(call.first);
      exits_.resize(call.first);
      return;
    }
    const trace::Header& header = run_.files[rank.file].header;
    call.bytes = std::max(call.bytes, event.bytes);
    call.open = call.open && event.algorithm == 0 && open_reasons_[rank.file][event.reason];
    nodes[header.node].push_back(files_.size() - call.first);
    files_.push_back(rank.file);
    arrivals_.push_back(rank.arrival_ns);
    exits_.push_back(clocks_.of_file(rank.file).ns(event.exit_ticks));
  }
  for (auto& [node, places] : nodes) call.nodes.push_back(std::move(places));
  const bool rooted =
      need_of(call.roles.collective) == Need::root || need_of(call.roles.collective) == Need::root_needs_all;
  const bool across = call.nodes.size() > 1;
  call.models = models_for(call.roles.collective, across, call.bytes);
  call.open = call.open && call.models[0] != nullptr && (!rooted || call.roles.root < call.count) &&
              alpha_.measured(false) && (!across || alpha_.measured(true));
  if (call.open) measure(call);
  calls_.push_back(std::move(call));
}

void Replay::measure(Call& call) {
  call.node_latency_ns = alpha_.ns(0, false);
  call.copy_ns = std::max(0.0, alpha_.ns(call.bytes, false) - call.node_latency_ns) / 2;
  if (call.nodes.size() < 2) return;
  std::size_t largest = 0;
  for (const auto& node : call.nodes) largest = std::max(largest, node.size());
  const NetworkCall network{.nodes = static_cast<double>(call.nodes.size()),
                            .ranks = static_cast<double>(call.count),
                            .node_ranks = static_cast<double>(largest),
                            .latency_ns = alpha_.ns(0, true),
                            .message_ns = alpha_.ns(call.bytes, true),
                            .node_message_ns = alpha_.ns(call.bytes * largest, true)};
  for (std::size_t k = 0; k < most_candidates; ++k)
    if (call.models[k] != nullptr) call.network_ns[k] = call.models[k]->network_ns(network);
}

double Replay::end_of(std::size_t file) const {
  const RankFile& own = run_.files[file];
  std::uint64_t ticks = own.header.end_ticks;
  if (ticks == 0)
    for (const trace::Event& event : own.events) ticks = std::max({ticks, event.arrival_ticks, event.exit_ticks});
  return clocks_.of_file(file).ns(ticks);
}

// In the order of their last arrivals: whoever makes two of them makes the first one first.
void Replay::finish() {
  std::stable_sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) { return a.last_ns < b.last_ns; });
  double begin = std::numeric_limits<double>::max();
  double end = std::numeric_limits<double>::lowest();
  for (std::size_t f = 0; f < run_.files.size(); ++f) {
    const RankFile& file = run_.files[f];
    const bool wrapped = file.overwritten_events > 0 && !file.events.empty();
    begin =
        std::min(begin, clocks_.of_file(f).ns(wrapped ? file.events.front().arrival_ticks : file.header.init_ticks));
    ends_ns_.push_back(end_of(f));
    end = std::max(end, ends_ns_.back());
  }
  span_ns_ = std::max(0.0, end - begin);
}

double Replay::saved_by_ranks(const Call& call, Way way) {
  new_exits_.resize(call.count);
  model(call, way, arrivals(call), new_exits_);
  double saved = 0;
  for (std::size_t i = 0; i < call.count; ++i) saved += exits(call)[i] - new_exits_[i];
  return saved;
}

template <class WayOf>
double Replay::saved_by_run(WayOf&& way_of) {
  saved_.assign(run_.files.size(), 0);
  for (const Call& call : calls_) {
    new_arrivals_.resize(call.count);
    new_exits_.resize(call.count);
    for (std::size_t i = 0; i < call.count; ++i) new_arrivals_[i] = arrivals(call)[i] - saved_[files_[call.first + i]];
    model(call, way_of(call), new_arrivals_, new_exits_);
    for (std::size_t i = 0; i < call.count; ++i) saved_[files_[call.first + i]] = exits(call)[i] - new_exits_[i];
  }
  double end = std::numeric_limits<double>::lowest();
  double new_end = end;
  for (std::size_t f = 0; f < ends_ns_.size(); ++f) {
    end = std::max(end, ends_ns_[f]);
    new_end = std::max(new_end, ends_ns_[f] - saved_[f]);
  }
  return end - new_end;
}

// As recorded: as long after the earliest legal exit as it was.
void Replay::model(const Call& call, Way way, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  if (way == Way::as_recorded || way == Way::no_excess) {
    earliest_exits(call.roles, arrivals_ns, exits_ns);
    if (way == Way::no_excess) return;
    legal_.resize(call.count);
    earliest_exits(call.roles, arrivals(call), legal_);
    for (std::size_t i = 0; i < call.count; ++i) exits_ns[i] += exits(call)[i] - legal_[i];
    return;
  }
  if (call.nodes.size() > 1) {
    model_across(call, way, arrivals_ns, exits_ns);
  } else {
    switch (call.roles.collective) {
      case Collective::allreduce:
        take(call, reduced(call, call.nodes[0], arrivals_ns) + call.node_latency_ns, 1, exits_ns);
        break;
      case Collective::reduce:
        for (std::size_t i = 0; i < call.count; ++i) exits_ns[i] = arrivals_ns[i] + call.copy_ns;
        exits_ns[call.roles.root] = reduced(call, call.nodes[0], arrivals_ns) + call.node_latency_ns + call.copy_ns;
        break;
      case Collective::bcast: {
        const double there = arrivals_ns[call.roles.root] + call.copy_ns;
        for (std::size_t i = 0; i < call.count; ++i)
          exits_ns[i] = std::max(arrivals_ns[i], there + call.node_latency_ns) + call.copy_ns;
        exits_ns[call.roles.root] = there;
        break;
      }
      case Collective::barrier:
        take(call, *std::max_element(arrivals_ns.begin(), arrivals_ns.end()) + call.node_latency_ns, 0, exits_ns);
        break;
      default:
        model_blocks(call, arrivals_ns, exits_ns);
        break;
    }
  }
  if (crowding_ == 0) return;
  // Who waited longer than a switch takes gave its core away.
  for (std::size_t i = 0; i < call.count; ++i)
    if (exits_ns[i] - arrivals_ns[i] > switch_ns) exits_ns[i] += switch_ns * crowding_;
}

void Replay::take(const Call& call, double from, double copies, std::span<double> exits_ns) const {
  for (double& exit : exits_ns) exit = from + copies * call.copy_ns;
}

// When the operands of a node's ranks are one.
double Replay::reduced(const Call& call, const std::vector<std::size_t>& node, std::span<const double> arrivals_ns) {
  sorted_.clear();
  for (const std::size_t i : node) sorted_.push_back(arrivals_ns[i]);
  std::sort(sorted_.begin(), sorted_.end());
  const auto ranks = static_cast<double>(node.size());
  const std::int32_t cores = run_.files[files_[call.first + node[0]]].header.cores;
  const double workers = std::max(1.0, std::min(ranks, static_cast<double>(cores)));
  double ready = sorted_.back();
  for (std::size_t k = 0; k < sorted_.size(); ++k)
    ready = std::max(ready, sorted_[k] + call.copy_ns + (ranks - static_cast<double>(k)) * call.copy_ns / workers);
  return ready;
}

// Blocks of every rank for every rank, on one node.
void Replay::model_blocks(const Call& call, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  sorted_.assign(arrivals_ns.begin(), arrivals_ns.end());
  std::sort(sorted_.begin(), sorted_.end());
  const double others = static_cast<double>(call.count - 1);
  const double given = (call.roles.collective == Collective::alltoall ? others : 1) * call.copy_ns;
  double last = 0;
  for (std::size_t k = 0; k < sorted_.size(); ++k) {
    const double left = std::min(others, static_cast<double>(sorted_.size() - k));
    const double done = sorted_[k] + given + call.node_latency_ns + left * call.copy_ns;
    last = k == 0 ? done : std::max(last, done);
  }
  for (std::size_t i = 0; i < call.count; ++i)
    exits_ns[i] = std::max(last, arrivals_ns[i] + given + others * call.copy_ns);
}

void Replay::model_across(const Call& call, Way way, std::span<const double> arrivals_ns, std::span<double> exits_ns) {
  const double network = call.network_ns[way == Way::first_candidate ? 0 : 1];
  double ready = std::numeric_limits<double>::lowest();
  for (const auto& node : call.nodes) ready = std::max(ready, reduced(call, node, arrivals_ns));
  switch (call.roles.collective) {
    case Collective::allreduce:
      return take(call, ready + network + call.node_latency_ns, 1, exits_ns);
    case Collective::reduce:
      for (std::size_t i = 0; i < call.count; ++i) exits_ns[i] = arrivals_ns[i] + call.copy_ns;
      for (const auto& node : call.nodes)
        exits_ns[node[0]] = std::max(exits_ns[node[0]], reduced(call, node, arrivals_ns));
      exits_ns[call.roles.root] = ready + network + call.copy_ns;
      return;
    case Collective::bcast: {
      const double there = arrivals_ns[call.roles.root] + call.copy_ns;
      for (const auto& node : call.nodes) {
        const bool own = std::find(node.begin(), node.end(), call.roles.root) != node.end();
        for (const std::size_t i : node)
          exits_ns[i] = std::max(arrivals_ns[i], there + (own ? 0 : network) + call.node_latency_ns) + call.copy_ns;
      }
      exits_ns[call.roles.root] = there;
      return;
    }
    case Collective::barrier:
      return take(call, ready + network + 2 * call.node_latency_ns, 0, exits_ns);
    default:  // allgather, alltoall
      return take(call, ready + network + call.node_latency_ns, static_cast<double>(call.count - 1), exits_ns);
  }
}

using SiteKey = std::tuple<std::vector<Frame>, std::uint8_t>;

std::map<SiteKey, std::size_t> sites_by_key(const Analysis& analysis) {
  std::map<SiteKey, std::size_t> index;
  for (std::size_t s = 0; s < analysis.call_sites.size(); ++s) {
    const CallSiteFigures& site = analysis.call_sites[s];
    if (site.form == Form::blocking)
      index.emplace(SiteKey(std::vector<Frame>(site.frames.begin(), site.frames.end()),
                            static_cast<std::uint8_t>(site.collective)),
                    s);
  }
  return index;
}

// A call belongs to the place its lowest rank made it from.
std::size_t site_of(const Run& run, const std::map<SiteKey, std::size_t>& sites, const MatchedCall& call) {
  const RankInCall& lowest = *std::min_element(call.ranks.begin(), call.ranks.end(),
                                               [](const auto& a, const auto& b) { return a.rank < b.rank; });
  const trace::Event& event = run.files[lowest.file].events[lowest.event];
  if (event.call_site == 0) return no_site;
  const auto found = sites.find({run.files[lowest.file].call_sites[event.call_site - 1], event.collective});
  return found == sites.end() ? no_site : found->second;
}

// Gathers what is saved at the calls of one site, or of all.
struct Sum {
  Savings savings;
  std::array<double, most_candidates> ranks_ns{};
  std::array<std::vector<std::string>, most_candidates> names;

  void add(Replay& replay, const Call& call) {
    ++savings.calls;
    savings.no_excess.ranks_ns += std::max(0.0, replay.saved_by_ranks(call, Way::no_excess));
    if (!call.open) return;
    ++savings.open_calls;
    for (std::size_t k = 0; k < most_candidates; ++k) {
      // A collective with one candidate has it in both places, so that sums over collectives compare.
      const std::size_t which = call.models[k] == nullptr ? 0 : k;
      ranks_ns[k] += replay.saved_by_ranks(call, candidate(which));
      if (std::string name(call.models[which]->algorithm);
          std::find(names[k].begin(), names[k].end(), name) == names[k].end())
        names[k].push_back(std::move(name));
    }
  }
};

// How a call goes under candidate k.
Way way_of(const Call& call, std::size_t k) {
  if (!call.open) return Way::as_recorded;
  return candidate(call.models[k] == nullptr ? 0 : k);
}

void finish(Sum& sum, Replay& replay, std::size_t site, bool with_run) {
  Savings& savings = sum.savings;
  savings.span_ns = replay.span_ns();
  const auto is_own = [site](const Call& call) { return site == no_site || call.site == site; };
  if (with_run)
    savings.no_excess.run_ns =
        replay.saved_by_run([&](const Call& call) { return is_own(call) ? Way::no_excess : Way::as_recorded; });
  if (savings.open_calls == 0) return;
  for (std::size_t k = 0; k < most_candidates; ++k) {
    if (k > 0 && sum.names[k] == sum.names[0]) continue;
    Savings::Candidate one{fmt::format("{}", fmt::join(sum.names[k], ", ")), {}};
    one.saving.ranks_ns = sum.ranks_ns[k];
    if (with_run)
      one.saving.run_ns =
          replay.saved_by_run([&](const Call& call) { return is_own(call) ? way_of(call, k) : Way::as_recorded; });
    savings.candidates.push_back(std::move(one));
  }
  std::stable_sort(savings.candidates.begin(), savings.candidates.end(),
                   [](const auto& a, const auto& b) { return a.saving.ranks_ns > b.saving.ranks_ns; });
}

}  // namespace

const Savings::Candidate* Savings::best() const {
  return candidates.empty() || candidates.front().saving.ranks_ns <= 0 ? nullptr : &candidates.front();
}

void add_savings(const Run& run, const Clocks& clocks, Analysis& analysis) {
  const std::map<SiteKey, std::size_t> index = sites_by_key(analysis);
  Replay replay(run, clocks);
  for (const MatchedCall& call : matched_calls(run, clocks))
    if (call.is_complete) replay.add(call, site_of(run, index, call));
  if (replay.calls().empty()) return;
  replay.finish();
  Sum all;
  std::vector<Sum> sums(analysis.call_sites.size());
  for (const Call& call : replay.calls()) {
    all.add(replay, call);
    if (call.site != no_site) sums[call.site].add(replay, call);
  }
  finish(all, replay, no_site, true);
  analysis.savings = std::move(all.savings);
  std::vector<std::size_t> by_excess;
  for (std::size_t s = 0; s < sums.size(); ++s)
    if (sums[s].savings.calls > 0) by_excess.push_back(s);
  std::stable_sort(by_excess.begin(), by_excess.end(), [&](std::size_t a, std::size_t b) {
    return sums[a].savings.no_excess.ranks_ns > sums[b].savings.no_excess.ranks_ns;
  });
  std::uint64_t steps = 0;
  for (const std::size_t s : by_excess) {
    steps += (1 + most_candidates) * replay.steps();
    finish(sums[s], replay, s, steps <= most_steps);
    analysis.call_sites[s].savings = std::move(sums[s].savings);
  }
}

}  // namespace papaya::report
