#include "profiler/analysis/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

#include "profiler/analysis/call_sums.hpp"
#include "profiler/analysis/description.hpp"
#include "profiler/analysis/efficiencies.hpp"
#include "profiler/analysis/horovod.hpp"
#include "profiler/analysis/in_order.hpp"
#include "profiler/analysis/losses.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/analysis/pending.hpp"
#include "profiler/analysis/replays.hpp"
#include "profiler/analysis/run_parts.hpp"
#include "profiler/analysis/run_times.hpp"
#include "profiler/analysis/totals.hpp"
#include "profiler/read/clocks.hpp"

namespace papaya::report {
namespace {

class Analyser {
 public:
  Analyser(const Run& run, const CallObserver& observe, const Progress& progress, std::size_t events_of_parts)
      : run_(run),
        observe_(observe),
        clocks_(run),
        groups_(run),
        reader_(run, clocks_, groups_, parts_of(run, clocks_, events_of_parts), progress),
        sums_(run, clocks_, groups_.all().size(), observe) {}

  RunReader& reader() { return reader_; }

  Analysis analyse() {
    describe_run(run_, out_);
    if (!out_.usable) return std::move(out_);
    describe_clocks(clocks_, out_);
    read_calls();
    measure_times();
    out_.collectives = totals_of(run_, clocks_);
    out_.algorithms = algorithms_of(run_);
    out_.wrong_results = wrong_results(run_);
    list_pending();
    finish_figures();
    describe_horovod(run_, out_);
    add_whole_run();
    read_calls_again();
    count_losses(run_, facts_, reader_.untabled_events(), out_.record);
    return std::move(out_);
  }

 private:
  void read_calls();
  void take_sums();
  void measure_times();
  void list_pending();
  void finish_figures();
  void add_whole_run();
  void read_calls_again();

  const Run& run_;
  const CallObserver& observe_;
  const Clocks clocks_;
  Groups groups_;
  RunReader reader_;
  std::vector<EventFacts> facts_;  // by file
  Analysis out_;
  RunTimes times_;
  CallSums sums_;
  std::vector<RankFigures> ranks_;  // by file
};

void Analyser::read_calls() {
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    RankFigures& figures = ranks_.emplace_back();
    figures.rank = run_.files[i].header.rank;
    figures.node = run_.files[i].header.node;
    figures.usage = usage_figures(run_.files[i].header.usage);
  }
  for (const Group& group : groups_.all())
    out_.communicators.push_back({.id = group.id, .name = group.name, .size = group.size});
  // An observer gets one call after the other.
  facts_ = reader_.read(sums_, observe_ ? 1 : threads_for_reading(run_.files.size()), [this](const CallSums& so_far) {
    CallSums of_part(run_, clocks_, groups_.all().size(), observe_);
    if (observe_) of_part.sites.number_as(so_far.sites);  // it is told the numbers: one part is read at a time
    return of_part;
  });
  for (const EventFacts& own : facts_) out_.events_kept += own.kept;
  take_sums();
  for (std::size_t g = 0; g < out_.communicators.size(); ++g) {
    const Group& group = std::as_const(groups_).all()[g];
    CommunicatorFigures& figures = out_.communicators[g];
    for (const Member& member : group.members) figures.calls += member.calls;
    if (!group.is_consistent && group.is_used) ++out_.record.inconsistent_communicators;
    const CommunicatorSums& sums = sums_.communicators[g];
    figures.compared = sums.compared;
    figures.waiting_ns = sums.waiting_ns;
    if (figures.compared > 0) figures.worst_ns = sums.worst_ns / static_cast<double>(figures.compared);
  }
}

void Analyser::take_sums() {
  out_.compared_calls = sums_.compared_calls;
  out_.waiting_ns = sums_.waiting_ns;
  out_.record.partial_calls = sums_.partial_calls;
  sums_.not_compared.write(out_.record);
  out_.record.pending_left_out = sums_.pending_left_out;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    RankFigures& figures = ranks_[i];
    const RankSums& sums = sums_.ranks[i];
    figures.compared = sums.compared;
    figures.times_last = sums.times_last;
    if (sums.compared > 0) figures.late_ns = sums.late_ns / static_cast<double>(sums.compared);
    figures.waited_ns = sums.waited_ns;
    figures.caused_ns = sums.caused_ns;
    figures.compared_in = sums.compared_in;
    figures.times_last_in = sums.times_last_in;
    figures.caused_ns_in = sums.caused_ns_in;
  }
}

void Analyser::measure_times() {
  times_ = run_times(run_, clocks_, facts_);
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
  for (Unfinished& unfinished : sums_.unfinished)
    out_.pending.push_back(pending_call(std::move(unfinished), run_, clocks_, groups_, facts_, last_sign_ns));
}

void Analyser::finish_figures() {
  for (CollectiveFigures& figures : out_.collectives) {
    if (figures.form != Form::blocking) continue;
    CollectiveSums& sums = sums_.collectives[index_of(figures.collective)];
    figures.imbalance = {sums.cluster.average(), sums.node.average()};
    for (std::size_t s = 0; s < size_class_count; ++s)
      figures.by_size[s].imbalance = {sums.cluster_by_size[s].average(), sums.node_by_size[s].average()};
    figures.inside = sums.inside_ns.spread();
    figures.excess = sums.excess_ns.spread();
    figures.waiting_ns = sums.waiting_ns;
  }
  std::stable_sort(out_.collectives.begin(), out_.collectives.end(),
                   [](const auto& a, const auto& b) { return a.ns > b.ns; });
  sums_.delays.write(ranks_);
  sums_.origins.write(ranks_);
  sums_.waits.write(ranks_, out_);
  std::vector<UsageFigures> usages;
  for (const RankFigures& rank : ranks_) usages.push_back(rank.usage);
  out_.median_usage = median_of(usages);
  out_.late_ranks = std::move(ranks_);
  std::stable_sort(out_.late_ranks.begin(), out_.late_ranks.end(), [](const RankFigures& a, const RankFigures& b) {
    return std::tie(a.caused_ns, a.times_last) > std::tie(b.caused_ns, b.times_last);
  });
  out_.begin_ns = *std::min_element(times_.init_ns.begin(), times_.init_ns.end());
  out_.costly_calls = sums_.costly.take(out_.begin_ns);
  out_.call_sites = sums_.sites.take_figures();
  out_.phases = sums_.phases.take_figures();
  sums_.path.write(facts_, std::as_const(groups_).all(), out_);
  out_.trials = trial_figures(run_, clocks_, out_.begin_ns);
  out_.weak = weak_figures(run_, clocks_);
  out_.approx = approx_figures(run_);
  std::stable_sort(out_.communicators.begin(), out_.communicators.end(), [](const auto& a, const auto& b) {
    return std::tie(a.waiting_ns, a.calls) > std::tie(b.waiting_ns, b.calls);
  });
  out_.alpha_nominal = sums_.alpha.used_nominal();
  out_.message_times = sums_.alpha.message_times();
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
  const auto make = [this](const Replays&) { return Replays(run_, clocks_, facts_, sums_, out_); };
  Replays replays(run_, clocks_, facts_, sums_, out_);
  reader_.read(replays, threads_for_reading(run_.files.size()), make);
  replays.write(out_);
}

const CallObserver nothing_observed;
const Progress nobody_waits;

template <class Action>
Analysis guarded(const Action& action) noexcept {
  const auto failed_for = [](const char* why) {
    Analysis failed;
    failed.partial = true;
    failed.record.failure = why;
    return failed;
  };
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return failed_for("not enough memory");
  } catch (const std::exception& error) {
    return failed_for(error.what());
  }
}

}  // namespace

Analysis analyse(const Run& run, const CallObserver& observe, const Progress& progress,
                 std::size_t events_of_parts) noexcept {
  return guarded([&] { return Analyser(run, observe, progress, events_of_parts).analyse(); });
}

Analysis analyse(const Run& run, Readers& readers, std::size_t events_of_parts) noexcept {
  return guarded([&] {
    Analyser analyser(run, nothing_observed, nobody_waits, events_of_parts);
    analyser.reader().share(readers, threads_for_reading(run.files.size()));
    return analyser.analyse();
  });
}

void help_to_analyse(Readers& readers, const std::function<Run()>& load, std::size_t events_of_parts) noexcept {
  const std::size_t count = readers.asked();
  if (readers.number() >= count) return;
  try {
    Run run;
    std::optional<Analyser> analyser;
    try {
      run = load();
      analyser.emplace(run, nothing_observed, nobody_waits, events_of_parts);
    } catch (...) {
      SharedReading::decline(readers);
      throw;
    }
    analyser->reader().join(readers, count);
    analyser->analyse();
  } catch (...) {  // number 0 knows, and makes up for it
  }
}

}  // namespace papaya::report
