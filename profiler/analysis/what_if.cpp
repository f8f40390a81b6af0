#include "profiler/analysis/what_if.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "profiler/analysis/computing.hpp"
#include "profiler/analysis/event_facts.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {

namespace {

// A rank in the call that is being replayed.
struct Part {
  std::uint32_t file;
  std::uint32_t member;  // of the communicator
  std::size_t origin;    // place in the call of the rank that its delay came from in messages; its own: from none
  double timed_ns;
  double excess_ns;  // computed longer than the median of the call's ranks
  double relief_ns;  // how much earlier it would come without its origin's excess, at most
};

// What would be if certain ranks computed no longer than the median.
struct Case {
  static constexpr std::size_t everyone = std::numeric_limits<std::size_t>::max();
  std::size_t quick = everyone;                          // file of the one rank
  std::vector<double> saved_ns{};                        // by file, when it left its last call
  std::vector<double> removed_ns{};                      // by file, so far, of its computing
  std::vector<std::vector<double>> removed_before_ns{};  // the same by communicator and member, at its call before

  bool is_quick(std::size_t file) const { return quick == everyone || quick == file; }
};

}  // namespace

class WhatIfReplay::Replay {
 public:
  Replay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, std::span<const std::size_t> ranks)
      : run_(run) {
    find_ends(clocks, facts);
    add_case(Case::everyone);
    for (const std::size_t file : ranks) add_case(file);
  }

  void add(const GroupCall& call);
  double saved_ns(const Case& one) const;
  std::span<const Case> cases() const { return cases_; }
  std::int32_t rank_of(const Case& one) const { return run_.files[one.quick].header.rank; }

 private:
  void find_ends(const Clocks& clocks, std::span<const EventFacts> facts);
  void add_case(std::size_t file);
  void find_origins();
  void replay(Case& one, const GroupCall& call, const Roles& roles);

  const Run& run_;
  std::vector<Case> cases_;
  std::vector<double> ends_ns_;         // by file
  std::vector<double> tail_excess_ns_;  // by file: after its last call
  std::vector<Part> parts_;
  std::vector<double> values_;
  std::vector<double> arrivals_;
  std::vector<double> legal_;
  std::vector<double> new_legal_;
};

void WhatIfReplay::Replay::find_ends(const Clocks& clocks, std::span<const EventFacts> facts) {
  std::vector<double> tails;
  for (std::size_t f = 0; f < run_.files.size(); ++f) {
    const RankFile& file = run_.files[f];
    const NodeClock& clock = clocks.of_file(f);
    const double last_ns = clock.ns(std::max(file.header.init_ticks, facts[f].last_ticks));
    const double end_ns = file.header.end_ticks == 0 ? last_ns : clock.ns(file.header.end_ticks);
    double timed_ns = -facts[f].timed_ns;
    for (const trace::TimedFunction& row : file.timed) timed_ns += static_cast<double>(row.ticks) * clock.ns_per_tick;
    ends_ns_.push_back(end_ns);
    tails.push_back(std::max(0.0, end_ns - last_ns - std::max(0.0, timed_ns)));
  }
  tail_excess_ns_ = tails;
  if (tails.empty()) return;
  const double median_ns = lower_median(tails);
  for (double& tail : tail_excess_ns_) tail = std::max(0.0, tail - median_ns);
}

void WhatIfReplay::Replay::add_case(std::size_t file) {
  Case& one = cases_.emplace_back();
  one.quick = file;
  one.saved_ns.resize(run_.files.size());
  one.removed_ns.resize(run_.files.size());
}

void WhatIfReplay::Replay::add(const GroupCall& call) {
  const std::size_t size = call.sightings.size();
  values_.clear();
  for (const Sighting& sighting : call.sightings) values_.push_back(sighting.computed_ns);
  const double median_ns = lower_median(values_);
  parts_.clear();
  arrivals_.clear();
  for (const Sighting& sighting : call.sightings) {
    parts_.push_back(
        {sighting.file, sighting.member, parts_.size(), sighting.timed_ns, sighting.computed_ns - median_ns, 0});
    arrivals_.push_back(sighting.arrival_ns);
  }
  find_origins();
  const Roles roles = roles_of(call);
  legal_.resize(size);
  new_legal_.resize(size);
  earliest_exits(roles, arrivals_, legal_);
  for (Case& one : cases_) replay(one, call, roles);
}

// The rank with the largest excess is taken for what others waited for in messages, if they did so for about as long.
void WhatIfReplay::Replay::find_origins() {
  const auto most = static_cast<std::size_t>(
      std::max_element(parts_.begin(), parts_.end(),
                       [](const Part& a, const Part& b) { return a.excess_ns < b.excess_ns; }) -
      parts_.begin());
  const double excess_ns = parts_[most].excess_ns;
  if (excess_ns <= 0) return;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i == most || parts_[i].timed_ns < enough_evidence * excess_ns) continue;
    parts_[i].origin = most;
    parts_[i].relief_ns = std::min(excess_ns, parts_[i].timed_ns);
  }
}

void WhatIfReplay::Replay::replay(Case& one, const GroupCall& call, const Roles& roles) {
  if (one.removed_before_ns.size() <= call.group_number) one.removed_before_ns.resize(call.group_number + 1);
  std::vector<double>& before_ns = one.removed_before_ns[call.group_number];
  if (before_ns.empty()) before_ns.resize(call.group->members.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    double earlier_ns = one.saved_ns[part.file];
    if (one.is_quick(part.file)) {
      double& removed_ns = one.removed_ns[part.file];
      const double extra = std::max(0.0, part.excess_ns - (removed_ns - before_ns[part.member]));
      removed_ns += extra;
      before_ns[part.member] = removed_ns;
      earlier_ns += extra;
    }
    if (part.origin != i && one.is_quick(parts_[part.origin].file)) earlier_ns += part.relief_ns;
    arrivals_[i] = call.sightings[i].arrival_ns - earlier_ns;
  }
  earliest_exits(roles, arrivals_, new_legal_);
  for (std::size_t i = 0; i < parts_.size(); ++i) one.saved_ns[parts_[i].file] = legal_[i] - new_legal_[i];
}

double WhatIfReplay::Replay::saved_ns(const Case& one) const {
  double end_ns = std::numeric_limits<double>::lowest();
  double new_end_ns = end_ns;
  for (std::size_t f = 0; f < ends_ns_.size(); ++f) {
    end_ns = std::max(end_ns, ends_ns_[f]);
    new_end_ns = std::max(new_end_ns, ends_ns_[f] - one.saved_ns[f] - (one.is_quick(f) ? tail_excess_ns_[f] : 0.0));
  }
  return std::max(0.0, end_ns - new_end_ns);
}

WhatIfReplay::WhatIfReplay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts,
                           std::span<const std::size_t> ranks)
    : replay_(std::make_unique<Replay>(run, clocks, facts, ranks)) {}
WhatIfReplay::~WhatIfReplay() = default;

void WhatIfReplay::add(const GroupCall& call) {
  replay_->add(call);
}

WhatIf WhatIfReplay::result() const {
  WhatIf out;
  out.is_known = true;
  for (const Case& one : replay_->cases()) {
    const double ns = replay_->saved_ns(one);
    if (one.quick == Case::everyone)
      out.all_ns = ns;
    else if (ns > 0)
      out.ranks.push_back({replay_->rank_of(one), ns});
  }
  std::stable_sort(out.ranks.begin(), out.ranks.end(), [](const auto& a, const auto& b) { return a.ns > b.ns; });
  return out;
}

}  // namespace papaya::report
