#include "profiler/analysis/what_if.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/computing.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {

namespace {

constexpr std::size_t most_ranks = 8;
// Longer runs are left out: 0.3 GB, and a second or two.
constexpr std::uint64_t most_events = 5'000'000;

// A rank in a call.
struct Part {
  std::uint32_t file;
  std::uint32_t event;
  std::uint32_t since;   // its event after the call before on the communicator
  std::uint32_t origin;  // place in the call of the rank that its delay came from in messages; its own: from none
  double arrival_ns;
  double exit_ns;
  double excess_ns;  // computed longer than the median of the call's ranks
  double relief_ns;  // how much earlier it would come without its origin's excess, at most
};

struct Step {
  Roles roles;
  std::size_t first;
  std::size_t count;
};

class Replay {
 public:
  Replay(const Run& run, const Clocks& clocks, const Computing& computing)
      : run_(run), clocks_(clocks), computing_(computing) {
    find_ends();
    for (const MatchedCall& call : matched_calls(run, clocks)) add(call);
    std::stable_sort(order_.begin(), order_.end());
  }

  // `is_quick(file)`: this rank computes no longer than the median.
  template <class IsQuick>
  double saved_ns(IsQuick&& is_quick);

 private:
  void find_ends();
  void add(const MatchedCall& call);
  void find_origins(std::span<Part> parts);

  const Run& run_;
  const Clocks& clocks_;
  const Computing& computing_;
  std::vector<Part> parts_;
  std::vector<Step> steps_;
  std::vector<std::pair<double, std::size_t>> order_;                       // last arrival, step
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> since_;  // by communicator and file
  std::vector<double> ends_ns_;                                             // by file
  std::vector<double> tail_excess_ns_;                                      // by file: after its last call
  std::vector<double> values_;
  std::vector<double> arrivals_;
  std::vector<double> legal_;
  std::vector<double> new_legal_;
};

void Replay::find_ends() {
  std::vector<double> tails;
  for (std::size_t f = 0; f < run_.files.size(); ++f) {
    const RankFile& file = run_.files[f];
    const NodeClock& clock = clocks_.of_file(f);
    double last_ns = clock.ns(file.header.init_ticks);
    for (const trace::Event& event : file.events)
      last_ns = std::max(last_ns, clock.ns(std::max(event.arrival_ticks, event.exit_ticks)));
    const double end_ns = file.header.end_ticks == 0 ? last_ns : clock.ns(file.header.end_ticks);
    double timed_ns = 0;
    for (const trace::TimedFunction& row : file.timed) timed_ns += static_cast<double>(row.ticks) * clock.ns_per_tick;
    const auto events = static_cast<std::uint32_t>(file.events.size());
    if (events > 0) timed_ns -= computing_.timed_ns(static_cast<std::uint32_t>(f), 0, events - 1);
    ends_ns_.push_back(end_ns);
    tails.push_back(std::max(0.0, end_ns - last_ns - std::max(0.0, timed_ns)));
  }
  tail_excess_ns_ = tails;
  if (tails.empty()) return;
  const double median_ns = lower_median(tails);
  for (double& tail : tail_excess_ns_) tail = std::max(0.0, tail - median_ns);
}

void Replay::add(const MatchedCall& call) {
  const std::size_t first = parts_.size();
  values_.clear();
  for (const RankInCall& rank : call.ranks) {
    const trace::Event& event = run_.files[rank.file].events[rank.event];
    std::uint32_t& since = since_[{call.communicator, rank.file}];
    const double computed_ns = computing_.ns(rank.file, since, rank.event);
    values_.push_back(computed_ns);
    const double exit_ns = event.exit_ticks == 0 ? rank.arrival_ns : clocks_.of_file(rank.file).ns(event.exit_ticks);
    parts_.push_back({rank.file, rank.event, since, static_cast<std::uint32_t>(parts_.size() - first), rank.arrival_ns,
                      exit_ns, computed_ns, 0});
    since = rank.event + 1;
  }
  const std::span<Part> parts(parts_.data() + first, parts_.size() - first);
  const double median_ns = lower_median(values_);
  for (Part& part : parts) part.excess_ns -= median_ns;
  find_origins(parts);
  order_.emplace_back(call.ranks[call.order.last].arrival_ns, steps_.size());
  steps_.push_back({roles_of(run_, call), first, parts.size()});
}

// The rank with the largest excess is taken for what others waited for in messages, if they did so for about as long.
void Replay::find_origins(std::span<Part> parts) {
  const auto most = static_cast<std::uint32_t>(
      std::max_element(parts.begin(), parts.end(),
                       [](const Part& a, const Part& b) { return a.excess_ns < b.excess_ns; }) -
      parts.begin());
  const double excess_ns = parts[most].excess_ns;
  if (excess_ns <= 0) return;
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const double timed_ns = computing_.timed_ns(parts[i].file, parts[i].since, parts[i].event);
    if (i == most || timed_ns < enough_evidence * excess_ns) continue;
    parts[i].origin = most;
    parts[i].relief_ns = std::min(excess_ns, timed_ns);
  }
}

template <class IsQuick>
double Replay::saved_ns(IsQuick&& is_quick) {
  std::vector<double> saved(run_.files.size());                    // by file, when it left its last call
  std::vector<double> removed(run_.files.size());                  // by file, so far, of its computing
  std::vector<std::vector<double>> removed_at(run_.files.size());  // the same at each event
  for (std::size_t f = 0; f < run_.files.size(); ++f)
    if (is_quick(f)) removed_at[f].resize(run_.files[f].events.size());
  for (const auto& [last_ns, number] : order_) {
    const Step& step = steps_[number];
    const std::span<const Part> parts(parts_.data() + step.first, step.count);
    arrivals_.resize(step.count);
    legal_.resize(step.count);
    new_legal_.resize(step.count);
    for (std::size_t i = 0; i < step.count; ++i) arrivals_[i] = parts[i].arrival_ns;
    earliest_exits(step.roles, arrivals_, legal_);
    for (std::size_t i = 0; i < step.count; ++i) {
      const Part& part = parts[i];
      double earlier_ns = saved[part.file];
      if (is_quick(part.file)) {
        const double before = part.since == 0 ? 0.0 : removed_at[part.file][part.since - 1];
        const double extra = std::max(0.0, part.excess_ns - (removed[part.file] - before));
        removed[part.file] += extra;
        removed_at[part.file][part.event] = removed[part.file];
        earlier_ns += extra;
      }
      if (part.origin != i && is_quick(parts[part.origin].file)) earlier_ns += part.relief_ns;
      arrivals_[i] -= earlier_ns;
    }
    earliest_exits(step.roles, arrivals_, new_legal_);
    for (std::size_t i = 0; i < step.count; ++i) saved[parts[i].file] = legal_[i] - new_legal_[i];
  }
  double end_ns = std::numeric_limits<double>::lowest();
  double new_end_ns = end_ns;
  for (std::size_t f = 0; f < ends_ns_.size(); ++f) {
    end_ns = std::max(end_ns, ends_ns_[f]);
    new_end_ns = std::max(new_end_ns, ends_ns_[f] - saved[f] - (is_quick(f) ? tail_excess_ns_[f] : 0.0));
  }
  return std::max(0.0, end_ns - new_end_ns);
}

}  // namespace

void add_what_if(const Run& run, const Clocks& clocks, const Computing& computing, Analysis& analysis) {
  const bool has_all =
      std::all_of(run.files.begin(), run.files.end(), [](const RankFile& file) { return file.gaps.empty(); });
  if (run.files.size() < 2 || !has_all || !analysis.finalized || !run.missing.empty()) return;
  std::uint64_t events = 0;
  for (const RankFile& file : run.files) events += file.events.size();
  if (events > most_events) return;
  Replay replay(run, clocks, computing);
  WhatIf& out = analysis.what_if;
  out.is_known = true;
  out.all_ns = replay.saved_ns([](std::size_t) { return true; });
  std::vector<const RankFigures*> by_began;
  for (const RankFigures& rank : analysis.late_ranks) by_began.push_back(&rank);
  const auto weight = [](const RankFigures& rank) { return std::pair(rank.began_ns, -rank.time.finalize_ns); };
  std::stable_sort(by_began.begin(), by_began.end(),
                   [&](const auto* a, const auto* b) { return weight(*a) > weight(*b); });
  by_began.resize(std::min(by_began.size(), most_ranks));
  for (const RankFigures* rank : by_began) {
    const double ns = replay.saved_ns([&](std::size_t f) { return run.files[f].header.rank == rank->rank; });
    if (ns > 0) out.ranks.push_back({rank->rank, ns});
  }
  std::stable_sort(out.ranks.begin(), out.ranks.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
}

}  // namespace papaya::report
