#include "profiler/analysis/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <tuple>
#include <utility>

#include "profiler/analysis/alpha.hpp"
#include "profiler/analysis/arrivals.hpp"
#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/costly_calls.hpp"
#include "profiler/analysis/critical_path.hpp"
#include "profiler/analysis/delays.hpp"
#include "profiler/analysis/description.hpp"
#include "profiler/analysis/efficiencies.hpp"
#include "profiler/analysis/horovod.hpp"
#include "profiler/analysis/imbalance.hpp"
#include "profiler/analysis/losses.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/analysis/origins.hpp"
#include "profiler/analysis/pending.hpp"
#include "profiler/analysis/relief.hpp"
#include "profiler/analysis/replays.hpp"
#include "profiler/analysis/run_times.hpp"
#include "profiler/analysis/sites.hpp"
#include "profiler/analysis/totals.hpp"
#include "profiler/analysis/wait_sums.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_pending = 32;

class Analyser {
 public:
  Analyser(const Run& run, const CallObserver& observe, const Progress& progress)
      : run_(run),
        observe_(observe),
        progress_(progress),
        clocks_(run),
        groups_(run),
        stream_(run, clocks_, groups_),
        alpha_(run.files),
        sites_(run),
        phases_(run),
        origins_(run),
        waits_(run.files.size()),
        path_(run) {}

  Analysis analyse() {
    describe_run(run_, out_);
    if (!out_.usable) return std::move(out_);
    describe_clocks(clocks_, out_);
    read_calls();
    measure_times();
    out_.collectives = totals_of(run_, clocks_);
    out_.algorithms = algorithms_of(run_);
    list_pending();
    finish_figures();
    describe_horovod(run_, out_);
    add_whole_run();
    read_calls_again();
    count_losses(run_, stream_, out_.record);
    return std::move(out_);
  }

 private:
  void read_calls();
  void measure_times();
  void list_pending();
  void compare_call(const GroupCall& call);
  void add_arrivals(const GroupCall& call, CommunicatorFigures& communicator);
  void add_last(const GroupCall& call, std::size_t collective, Sites::Site* site);
  CallOfSite call_of_site(const GroupCall& call);
  void add_waits(CollectiveSums& sums, CommunicatorFigures& communicator, PhaseFigures& phase, Sites::Site* site);
  void add_causes(std::size_t collective);
  void observe(const trace::Event& first, const CommunicatorFigures& communicator, const Sites::Site* site);
  void finish_figures();
  void add_whole_run();
  void read_calls_again();
  // Of the first or second of two readings.
  Progress progress_of(std::size_t reading) const {
    if (!progress_) return {};
    return [this, reading](std::size_t done, std::size_t total) { progress_(reading * total + done, 2 * total); };
  }

  std::int32_t world_rank(std::size_t file) const { return run_.files[file].header.rank; }
  // Below this the clocks do not tell which of two arrivals, the later one at `time_ns`, was first.
  double resolution_ns(std::size_t one_file, std::size_t other_file, double time_ns) const {
    return std::max(tie_ns, clocks_.error_between_ns(one_file, other_file, time_ns));
  }

  const Run& run_;
  const CallObserver& observe_;
  const Progress& progress_;
  const Clocks clocks_;
  Groups groups_;
  CallStream stream_;
  Analysis out_;
  Alpha alpha_;
  RunTimes times_;
  Sites sites_;
  Phases phases_;
  std::array<CollectiveSums, collective_count> sums_;
  std::vector<RankFigures> ranks_;  // by file
  std::vector<double> late_sum_ns_;
  Delays delays_;
  CostlyCalls costly_;
  Origins origins_;
  WaitSums waits_;
  CriticalPath path_;
  Relief relief_;
  Arrivals arrivals_;  // of the call that is compared
  std::vector<Unfinished> unfinished_;
  std::uint64_t replayed_parts_ = 0;  // ranks in calls that a replay has
};

void Analyser::read_calls() {
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    RankFigures& figures = ranks_.emplace_back();
    figures.rank = world_rank(i);
    figures.node = run_.files[i].header.node;
    figures.usage = usage_figures(run_.files[i].header.usage);
  }
  late_sum_ns_.resize(run_.files.size());
  for (const Group& group : groups_.all())
    out_.communicators.push_back({.id = group.id, .name = group.name, .size = group.size});
  stream_.read(
      [this](std::size_t file, const trace::Event& event, bool) { count_event(clocks_, file, event, sites_, phases_); },
      [this](const GroupCall& call) { compare_call(call); }, progress_of(0));
  for (const EventFacts& own : stream_.facts()) out_.events_kept += own.kept;
  for (std::size_t g = 0; g < out_.communicators.size(); ++g) {
    const Group& group = std::as_const(groups_).all()[g];
    CommunicatorFigures& figures = out_.communicators[g];
    for (const Member& member : group.members) figures.calls += member.calls;
    if (!group.is_consistent && group.is_used) ++out_.record.inconsistent_communicators;
    if (figures.compared > 0) figures.worst_ns /= static_cast<double>(figures.compared);
  }
}

void Analyser::measure_times() {
  times_ = run_times(run_, clocks_, stream_.facts());
  out_.run_ns = times_.run_ns;
  out_.recorded_ns = times_.recorded_ns;
  for (std::size_t i = 0; clocks_.of_nodes().size() > 1 && i < run_.files.size(); ++i)
    for (const double ns : {times_.init_ns[i], times_.end_ns[i]})
      out_.clock_error_ns = std::max(out_.clock_error_ns, clocks_.of_file(i).error_at(ns));
  const std::vector<RankTime> rank_time = rank_times(run_, clocks_, times_);
  for (std::size_t i = 0; i < ranks_.size(); ++i) ranks_[i].time = rank_time[i];
  for (const RankTime& time : rank_time) out_.unrecorded_ns += time.unrecorded_ns;
  measure_efficiencies(run_, std::as_const(groups_).all(), rank_time, out_);
  out_.functions = timed_functions(run_, clocks_);
}

void Analyser::list_pending() {
  const double last_sign_ns = *std::max_element(times_.end_ns.begin(), times_.end_ns.end());
  for (Unfinished& unfinished : unfinished_)
    out_.pending.push_back(pending_call(std::move(unfinished), run_, clocks_, groups_, stream_.facts(), last_sign_ns));
}

void Analyser::compare_call(const GroupCall& call) {
  RecordFacts& facts = out_.record;
  count_not_compared(call, facts);
  if (call.is_inside) {
    if (unfinished_.size() < most_pending)
      unfinished_.push_back(unfinished_call(run_, clocks_, call));
    else
      ++facts.pending_left_out;
  }
  // Ranks that PAPAYA_RANKS leaves out are not missed.
  const std::uint64_t unknown = static_cast<std::uint64_t>(call.group->size) - call.group->members.size();
  if (call.match == Match::partial && unknown > run_.unwanted_ranks) ++facts.partial_calls;
  if (call.is_compared()) add_arrivals(call, out_.communicators[call.group_number]);
}

void Analyser::add_arrivals(const GroupCall& call, CommunicatorFigures& communicator) {
  arrivals_.take(run_, call);
  const Arrivals& in = arrivals_;
  const trace::Event& first = call.sightings.front().event;
  const std::size_t collective = index_of(static_cast<Collective>(first.collective));
  const auto size_class = static_cast<std::size_t>(size_class_of(in.bytes));
  CollectiveSums& sums = sums_[collective];
  const double alpha = alpha_.ns(in.bytes, in.is_across_nodes);
  sums.cluster.add(in.cluster, alpha);
  sums.cluster_by_size[size_class].add(in.cluster, alpha);
  if (in.nodes_compared > 0) {
    const double node_alpha = alpha_.ns(in.bytes, false);
    sums.node.add(in.node, node_alpha);
    sums.node_by_size[size_class].add(in.node, node_alpha);
  }
  PhaseFigures& phase = phases_.of(in.files[0], first);
  Sites::Site* const site = sites_.of(in.files[0], first);
  ++out_.compared_calls;
  ++communicator.compared;
  communicator.worst_ns += in.cluster.worst_ns;
  ++phase.compared;
  phase.worst_ns += in.cluster.worst_ns;
  if (site != nullptr) {
    ++site->figures.compared;
    site->figures.worst_ns += in.cluster.worst_ns;
  }
  add_last(call, collective, site);
  add_waits(sums, communicator, phase, site);
  if (call.match == Match::complete && !call.is_inside) {
    replayed_parts_ += in.size();
    if (site != nullptr) site->replayed_excess_ns += in.excess_ns();
  }
  add_causes(collective);
  costly_.add(run_, call, in);
  origins_.add(call, in);
  waits_.add(static_cast<Collective>(first.collective), in);
  path_.add(call);
  relief_.add(call, site != nullptr ? site->figures.number : ComparedCall::no_site);
  if (observe_) observe(first, communicator, site);
}

// Who was last. A margin within the clocks' error decides nothing.
void Analyser::add_last(const GroupCall& call, std::size_t collective, Sites::Site* site) {
  const Arrivals& in = arrivals_;
  const auto [earliest, last, second] = in.order;
  for (std::size_t i = 0; i < in.size(); ++i) {
    RankFigures& rank = ranks_[in.files[i]];
    ++rank.compared;
    ++rank.compared_in[collective];
    late_sum_ns_[in.files[i]] += in.arrivals_ns[i] - in.arrivals_ns[earliest];
  }
  const double last_ns = in.arrivals_ns[last];
  if (last_ns - in.arrivals_ns[second] > resolution_ns(in.files[last], in.files[second], last_ns)) {
    ++ranks_[in.files[last]].times_last;
    ++ranks_[in.files[last]].times_last_in[collective];
    if (site != nullptr) ++site->last[world_rank(in.files[last])];
  }
  if (site != nullptr) site->means.add(call_of_site(call));
}

// From its times.
CallOfSite Analyser::call_of_site(const GroupCall& call) {
  const Arrivals& in = arrivals_;
  const std::size_t late = in.most_waited_for();
  const double alpha = alpha_.ns(in.bytes, in.is_across_nodes);
  return {call.group->id,
          call.group->size,
          call.group->members[call.sightings[late].member].rank,
          world_rank(in.files[late]),
          in.cluster.worst_ns,
          std::max(imbalanced_factor * alpha,
                   resolution_ns(in.files[in.order.first], in.files[late], in.arrivals_ns[late]))};
}

void Analyser::add_waits(CollectiveSums& sums, CommunicatorFigures& communicator, PhaseFigures& phase,
                         Sites::Site* site) {
  const Arrivals& in = arrivals_;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double wait = in.waits_ns[i];
    ranks_[in.files[i]].waited_ns += wait;
    sums.waiting_ns += wait;
    communicator.waiting_ns += wait;
    out_.waiting_ns += wait;
    phase.waiting_ns += wait;
    if (site != nullptr) site->figures.waiting_ns += wait;
    if (std::isnan(in.exits_ns[i])) continue;
    const double inside = in.exits_ns[i] - in.arrivals_ns[i];
    sums.inside_ns.add(inside);
    sums.excess_ns.add(inside - wait);
    phase.excess_ns += inside - wait;
    if (site != nullptr) site->figures.excess_ns += inside - wait;
  }
}

void Analyser::add_causes(std::size_t collective) {
  const Arrivals& in = arrivals_;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in.waiters[i] == 0) continue;
    RankFigures& rank = ranks_[in.files[i]];
    rank.caused_ns += in.caused_ns[i];
    rank.caused_ns_in[collective] += in.caused_ns[i];
    delays_.add(in.files[i], collective, in.longest_ns[i]);
  }
}

void Analyser::observe(const trace::Event& first, const CommunicatorFigures& communicator, const Sites::Site* site) {
  const Arrivals& in = arrivals_;
  ComparedCall call{.event = &first,
                    .bytes = in.bytes,
                    .communicator = communicator.name,
                    .phase = phases_.of(in.files[0], first).name,
                    .site = site != nullptr ? site->figures.number : ComparedCall::no_site,
                    .files = in.files,
                    .arrivals_ns = in.arrivals_ns,
                    .waits_ns = in.waits_ns,
                    .caused_ns = in.caused_ns,
                    .exits_ns = in.exits_ns,
                    .first_ns = in.arrivals_ns[in.order.first],
                    .last = in.order.last,
                    .cluster = in.cluster,
                    .cluster_alpha_ns = alpha_.ns(in.bytes, in.is_across_nodes),
                    .has_node = in.nodes_compared > 0,
                    .node = in.node};
  if (call.has_node) call.node_alpha_ns = alpha_.ns(in.bytes, false);
  observe_(call);
}

void Analyser::finish_figures() {
  for (CollectiveFigures& figures : out_.collectives) {
    if (figures.form != Form::blocking) continue;
    CollectiveSums& sums = sums_[index_of(figures.collective)];
    figures.imbalance = {sums.cluster.average(), sums.node.average()};
    for (std::size_t s = 0; s < size_class_count; ++s)
      figures.by_size[s].imbalance = {sums.cluster_by_size[s].average(), sums.node_by_size[s].average()};
    figures.inside = sums.inside_ns.spread();
    figures.excess = sums.excess_ns.spread();
    figures.waiting_ns = sums.waiting_ns;
  }
  std::stable_sort(out_.collectives.begin(), out_.collectives.end(),
                   [](const auto& a, const auto& b) { return a.ns > b.ns; });
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (ranks_[i].compared > 0) ranks_[i].late_ns = late_sum_ns_[i] / static_cast<double>(ranks_[i].compared);
  delays_.write(ranks_);
  origins_.write(ranks_);
  waits_.write(ranks_, out_);
  std::vector<UsageFigures> usages;
  for (const RankFigures& rank : ranks_) usages.push_back(rank.usage);
  out_.median_usage = median_of(usages);
  out_.late_ranks = std::move(ranks_);
  std::stable_sort(out_.late_ranks.begin(), out_.late_ranks.end(), [](const RankFigures& a, const RankFigures& b) {
    return std::tie(a.caused_ns, a.times_last) > std::tie(b.caused_ns, b.times_last);
  });
  out_.begin_ns = *std::min_element(times_.init_ns.begin(), times_.init_ns.end());
  out_.costly_calls = costly_.take(out_.begin_ns);
  out_.call_sites = sites_.take_figures();
  out_.phases = phases_.take_figures();
  path_.write(stream_.facts(), std::as_const(groups_).all(), out_);
  out_.weak = weak_figures(run_, clocks_);
  out_.approx = approx_figures(run_);
  std::stable_sort(out_.communicators.begin(), out_.communicators.end(), [](const auto& a, const auto& b) {
    return std::tie(a.waiting_ns, a.calls) > std::tie(b.waiting_ns, b.calls);
  });
  out_.alpha_nominal = alpha_.used_nominal();
  out_.message_times = alpha_.message_times();
  if (out_.recorded_ns > 0) out_.waiting_share = std::min(1.0, out_.waiting_ns / out_.recorded_ns);
}

void Analyser::add_whole_run() {
  out_.whole_run = whole_run(run_, [&](std::uint64_t id) {
    if (id == 0) return std::string("others");
    const Group* const group = groups_.find(id);
    return group == nullptr ? fmt::format("communicator {:#x}", id) : group->name;
  });
  const double time_ns = times_.run_ns * static_cast<double>(run_.files.size());
  if (time_ns > 0) out_.whole_run_share = std::min(1.0, out_.whole_run.all.waiting_ns / time_ns);
}

// With what follows from the figures of all calls.
void Analyser::read_calls_again() {
  if (out_.compared_calls == 0) return;
  Replays replays(run_, clocks_, stream_.facts(), sites_, replayed_parts_, relief_, out_);
  stream_.read([&](std::size_t file, const trace::Event& event, bool) { replays.add_event(file, event); },
               [&](const GroupCall& call) {
                 if (!call.is_compared()) return;
                 const Sites::Site* const site = sites_.of(call.sightings.front().file, call.sightings.front().event);
                 if (site != nullptr) {
                   arrivals_.take_waits(run_, call);
                   replays.add_to_pattern(*site, call_of_site(call));
                 }
                 replays.add(call, site);
               },
               progress_of(1));
  replays.write(out_);
}

Analysis failed_for(const char* why) {
  Analysis failed;
  failed.partial = true;
  failed.record.failure = why;
  return failed;
}

}  // namespace

Analysis analyse(const Run& run, const CallObserver& observe, const Progress& progress) noexcept {
  try {
    return Analyser(run, observe, progress).analyse();
  } catch (const std::bad_alloc&) {
    return failed_for("not enough memory");
  } catch (const std::exception& error) {
    return failed_for(error.what());
  }
}

}  // namespace papaya::report
