#include "profiler/analysis/analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>

#include "profiler/analysis/alpha.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/analysis/communicator_names.hpp"
#include "profiler/analysis/horovod.hpp"

namespace papaya::report {
namespace {

// Below this share of the run the verdict is that arrivals are balanced.
constexpr double balanced_share = 0.01;
// ... but it still names a rank that is late by much, at least so often and so long.
constexpr double noticeable_lasts = 0.5;
constexpr double noticeable_delay_ns = 100e3;
// Below so many calls the verdict counts them instead of giving a percentage.
constexpr std::uint64_t few_calls = 10;
constexpr std::size_t most_pending = 32;
constexpr std::size_t most_last_signs = 16;

// ---- sums that become averages

struct ImbalanceSum {
  Imbalance sum;

  void add(double worst_ns, double average_ns, double alpha_ns) {
    ++sum.calls;
    sum.worst_ns += worst_ns;
    sum.average_ns += average_ns;
    sum.worst_factor += worst_ns / alpha_ns;
    sum.average_factor += average_ns / alpha_ns;
  }
  Imbalance average() const {
    if (sum.calls == 0) return {};
    const auto calls = static_cast<double>(sum.calls);
    return {sum.calls, sum.worst_ns / calls, sum.average_ns / calls, sum.worst_factor / calls,
            sum.average_factor / calls};
  }
};

Spread spread_of(std::vector<double>& samples_ns) {
  Spread spread;
  spread.samples = samples_ns.size();
  if (samples_ns.empty()) return spread;
  const auto count = static_cast<double>(samples_ns.size());
  spread.mean_ns = std::accumulate(samples_ns.begin(), samples_ns.end(), 0.0) / count;
  // Nearest rank: the smallest sample that at least this share of the samples do not exceed.
  const auto percentile = [&](std::size_t percent) {
    const std::size_t rank = (samples_ns.size() * percent + 99) / 100;
    const auto at = samples_ns.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(samples_ns.begin(), at, samples_ns.end());
    return *at;
  };
  spread.p99_ns = percentile(99);
  spread.p50_ns = percentile(50);
  spread.max_ns = *std::max_element(samples_ns.begin(), samples_ns.end());
  return spread;
}

struct CollectiveSums {
  std::array<ImbalanceSum, size_class_count> cluster_by_size;
  std::array<ImbalanceSum, size_class_count> node_by_size;
  ImbalanceSum cluster;
  ImbalanceSum node;
  std::vector<double> inside_ns;
  std::vector<double> excess_ns;
  double waiting_ns = 0;
};

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count_text(count), count == 1 ? one : many);
}

// ---- roots

bool has_root(Collective collective) {
  const Need need = need_of(collective);
  return need == Need::root || need == Need::root_needs_all;
}

// ---- communicators across ranks

struct Member {
  std::size_t file;
  std::int32_t rank;  // in the communicator
  std::uint64_t calls;
  std::uint64_t first_kept_call = std::numeric_limits<std::uint64_t>::max();
};

using Interval = std::pair<double, double>;  // ns

// One rank's part in one call.
struct Sighting {
  std::uint64_t call;
  std::uint32_t member;
  std::uint32_t thread;  // only to make the order of damaged duplicates definite
  const trace::Event* event;
};

struct Group {
  std::uint64_t id = 0;
  std::string name;
  std::int32_t size = 0;
  bool consistent = true;       // its ranks agree on its size, and no two of them claim one place
  std::vector<Member> members;  // by rank in the communicator
  std::vector<Sighting> sightings;
  CommunicatorFigures figures;
};

std::string call_text(std::uint64_t call, const Group& group) {
  return fmt::format("call {} on {}", call, group.name);
}

// "rank 3", "ranks 0-2, 5"
std::string ranks_text(std::span<const RankRange> ranges) {
  const bool one = ranges.size() == 1 && ranges.front().first == ranges.front().last;
  return fmt::format("{} {}", one ? "rank" : "ranks", to_text(ranges));
}

// One call by all ranks there are, on one clock; index i is the i-th member.
struct Instance {
  std::vector<std::uint32_t> files;
  std::vector<std::int32_t> nodes;
  std::vector<double> arrivals_ns;
  std::vector<double> exits_ns;  // NaN: still inside
  std::vector<double> waits_ns;
  std::vector<std::size_t> culprits;
  std::vector<double> caused_ns;
  std::vector<std::uint32_t> waiters;
  std::vector<std::size_t> by_node;

  void resize(std::size_t size) {
    files.resize(size);
    nodes.resize(size);
    arrivals_ns.resize(size);
    exits_ns.resize(size);
    waits_ns.resize(size);
    culprits.resize(size);
    caused_ns.resize(size);
    waiters.resize(size);
  }
};

template <typename At>
WorstAverage imbalance_of(std::size_t count, At at) {
  double low = at(0);
  double high = low;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = at(i);
    low = std::min(low, a);
    high = std::max(high, a);
    sum += a - at(0);  // relative to the first: keeps ns exact in a run of days
  }
  const double mean = at(0) + sum / static_cast<double>(count);
  double deviation = 0;
  for (std::size_t i = 0; i < count; ++i) deviation += std::abs(at(i) - mean);
  return {high - low, deviation / static_cast<double>(count)};
}

// ---- the analysis

class Analyser {
 public:
  Analyser(const Run& run, const CallObserver& observe)
      : run_(run), observe_(observe), clocks_(run), alpha_(run.files) {}

  Analysis analyse() {
    describe_run();
    if (!out_.usable) return std::move(out_);
    make_clocks();
    measure_durations();
    add_totals();
    add_algorithms();
    group_events();
    for (Group& group : groups_) compare(group);
    finish_figures();
    look_for_horovod();
    add_whole_run();
    add_savings(run_, clocks_, out_);
    describe_record();
    out_.verdict = verdict();
    return std::move(out_);
  }

 private:
  void describe_run();
  void make_clocks();
  void measure_durations();
  std::vector<Interval> times_in_gaps() const;
  void add_totals();
  void add_algorithms();
  void find_phases();
  void group_events();
  void compare(Group& group);
  void compare_call(Group& group, std::span<const Sighting> sightings);
  std::size_t site_of(std::size_t file, const trace::Event& event);
  std::string disagreement(const Group& group, std::span<const Sighting> sightings) const;
  bool complete(const Group& group, std::span<const Sighting> sightings);
  std::vector<NamedFrame> frames_of(std::size_t file, const trace::Event& event) const;
  LastSign last_sign_of(std::size_t file) const;
  std::vector<LastSign> last_signs_of(std::span<const std::int32_t> ranks) const;
  void add_pending(const Group& group, std::span<const Sighting> sightings, const std::string& conflict);
  void add_arrivals(Group& group, std::span<const Sighting> sightings);
  void find_waits(const Group& group, Collective collective, std::int32_t root);
  void finish_figures();
  void look_for_horovod();
  void add_whole_run();
  void describe_record();
  void describe_trace(std::uint64_t missing, std::uint64_t unread);
  std::string verdict();
  std::string pending_verdict() const;
  std::string late_verdict() const;
  std::string whole_run_verdict() const;

  const NodeClock& clock_of(std::size_t file) const { return clocks_.of_file(file); }
  std::int32_t world_rank(std::size_t file) const { return run_.files[file].header.rank; }
  double resolution_ns(std::size_t one_file, std::size_t other_file, double time_ns) const {
    return std::max(tie_ns, clocks_.error_between_ns(one_file, other_file, time_ns));
  }
  void note(std::string sentence) { out_.notes.push_back(std::move(sentence)); }

  const Run& run_;
  const CallObserver& observe_;
  const Clocks clocks_;
  Analysis out_;
  Alpha alpha_;
  std::map<std::string, PhaseFigures> phases_;
  std::vector<std::vector<PhaseFigures*>> own_phases_;  // by file and number
  std::vector<double> init_ns_;           // by file, on node 0's clock
  std::vector<double> end_ns_;
  std::vector<Group> groups_;
  std::array<CollectiveSums, collective_count> sums_;
  std::vector<RankFigures> ranks_;  // by file
  std::vector<double> late_sum_ns_;
  Instance instance_;

  // Call sites of all ranks, each once for each collective and form.
  struct Site {
    CallSiteFigures figures;
    std::map<std::int32_t, std::uint64_t> last;
    std::vector<CallOfSite> calls;  // compared
  };
  using SiteKey = std::tuple<std::vector<Frame>, std::uint8_t, std::uint8_t>;
  std::map<SiteKey, std::size_t> site_index_;
  std::vector<std::map<std::tuple<std::uint64_t, std::uint8_t, std::uint8_t>, std::size_t>> own_sites_;  // by file
  std::vector<Site> sites_;

  std::uint64_t partial_calls_ = 0;  // compared without the ranks whose files are missing
  bool overwrote_ = false;
  std::uint64_t unmatched_calls_ = 0;
  std::uint64_t mismatched_calls_ = 0;
  std::string first_mismatch_;
  std::uint64_t pending_left_out_ = 0;
  std::uint64_t untabled_events_ = 0;
  std::uint64_t inconsistent_groups_ = 0;
};

void Analyser::describe_run() {
  out_.folder = run_.folder;
  out_.settings = run_.settings;
  out_.ranks = run_.ranks;
  out_.nodes = run_.nodes;
  out_.ranks_read = run_.files.size();
  out_.usable = !run_.files.empty();
  out_.partial = !run_.problems.empty() || !run_.missing.empty();
  for (const Problem& problem : run_.problems) {
    out_.other_version = out_.other_version || problem.trouble == Trouble::other_version;
    note(problem.sentence);
  }
  if (!out_.usable) {
    out_.verdict = run_.problems.empty() ? "There is no record of a run here."
                                         : "None of the records here could be read.";
    return;
  }
  if (run_.unwanted_ranks > 0)
    note(fmt::format("PAPAYA_RANKS leaves out {} of {} ranks: the figures are without them, and who came last is the last of those that "
                     "recorded.",
                     run_.unwanted_ranks, run_.ranks));
  if (!run_.missing.empty()) {
    note(fmt::format("No usable record of {}: the figures are without {}.", ranks_text(run_.missing),
                     run_.missing_ranks == 1 ? "it" : "them"));
  }
  const trace::Header& header = run_.files.front().header;
  out_.program = clean_text(header.program);
  out_.command = clean_text(header.command);
  out_.mpi = clean_text(header.mpi);
  out_.papaya_version = clean_text(header.papaya_version);

  std::map<std::int32_t, std::vector<std::int32_t>> ranks_of_node;
  std::map<std::int32_t, std::string> hosts;
  std::vector<std::int32_t> running;
  out_.finalized = true;
  for (const RankFile& file : run_.files) {
    ranks_of_node[file.header.node].push_back(file.header.rank);
    hosts.try_emplace(file.header.node, clean_text(file.header.host));
    const auto ending = static_cast<trace::Ending>(file.header.ending);
    if (ending != trace::Ending::finalized) out_.finalized = false;
    if (ending == trace::Ending::running) running.push_back(file.header.rank);
    if (ending == trace::Ending::aborted) {
      note(fmt::format("Rank {} called MPI_Abort with code {}.", file.header.rank, file.header.abort_code));
    }
    overwrote_ = overwrote_ || file.overwritten_events > 0;
    out_.events_begun += file.header.event_count;
    out_.events_kept += file.events.size();
  }
  for (const auto& [node, ranks] : ranks_of_node) {
    out_.node_figures.push_back({node, hosts[node], to_ranges(ranks)});
  }
  if (!running.empty()) {
    out_.partial = true;
    const auto ranges = to_ranges(running);
    note(running.size() == run_.files.size()
             ? std::string("The job ended without MPI_Finalize, or is still running.")
             : fmt::format("The job ended without MPI_Finalize on {}, or is still running.",
                           ranks_text(ranges)));
  }
  out_.partial = out_.partial || !out_.finalized;
}

void Analyser::make_clocks() {
  bool measured_twice = true;
  for (const NodeClock& clock : clocks_.of_nodes()) {
    out_.clock_measured = out_.clock_measured && clock.measured;
    out_.clock_bound_ns = std::max(out_.clock_bound_ns, clock.bound_ns);
    measured_twice = measured_twice && clock.measured_twice;
  }
  out_.begin_unix_ns = clocks_.base_unix_ns();
  if (clocks_.of_nodes().size() < 2) {
    out_.clock_measured = true;
    return;
  }
  if (!out_.clock_measured) {
    note(
        "The clocks of the nodes were never compared: times between nodes rest on the nodes' wall clocks, "
        "which may "
        "be a millisecond or more apart.");
  } else if (!measured_twice) {
    note(
        "The clocks of the nodes were compared only once, so their drift is not corrected: times between "
        "nodes grow less certain away from that moment, here by up to 100 us a second.");
  }
}

void Analyser::measure_durations() {
  double first_init = std::numeric_limits<double>::max();
  double last_end = std::numeric_limits<double>::lowest();
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    const RankFile& file = run_.files[i];
    const NodeClock& clock = clock_of(i);
    std::uint64_t end_ticks = file.header.end_ticks;
    if (end_ticks == 0) {
      for (const trace::Event& event : file.events) {
        end_ticks = std::max({end_ticks, event.arrival_ticks, event.exit_ticks});
      }
    }
    const double init = clock.ns(std::max(file.header.init_ticks, file.header.begin_ticks));
    init_ns_.push_back(init);
    end_ns_.push_back(std::max(init, clock.ns(std::max(end_ticks, file.header.begin_ticks))));
    if (clocks_.of_nodes().size() > 1)
      out_.clock_error_ns = std::max({out_.clock_error_ns, clock.error_at(init), clock.error_at(end_ns_.back())});
    first_init = std::min(first_init, init_ns_.back());
    last_end = std::max(last_end, end_ns_.back());
    RankFigures figures;
    figures.rank = file.header.rank;
    figures.node = file.header.node;
    ranks_.push_back(figures);
  }
  late_sum_ns_.resize(run_.files.size());
  out_.run_ns = last_end - first_init;

  // The ring of a rank that wrapped begins later than its run. Calls are compared from where all rings have
  // them.
  double recorded_from = first_init;
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    const RankFile& file = run_.files[i];
    if (file.gaps.empty() || file.gaps.front().before != 0 || file.events.empty()) continue;
    recorded_from = std::max(recorded_from, clock_of(i).ns(file.events.front().arrival_ticks));
  }
  const std::vector<Interval> unknown = times_in_gaps();
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    const double from = std::max(init_ns_[i], recorded_from);
    double recorded = end_ns_[i] - from;
    for (const auto& [begin, end] : unknown)
      recorded -= std::max(0.0, std::min(end, end_ns_[i]) - std::max(begin, from));
    out_.recorded_ns += std::max(0.0, recorded);
  }
}

// When calls of some rank are missing between others of it, ascending and apart.
std::vector<Interval> Analyser::times_in_gaps() const {
  std::vector<Interval> all;
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    const std::vector<trace::Event>& events = run_.files[i].events;
    for (const Gap& gap : run_.files[i].gaps)
      if (gap.before > 0 && gap.before < events.size())
        all.push_back({clock_of(i).ns(events[gap.before - 1].arrival_ticks), clock_of(i).ns(events[gap.before].arrival_ticks)});
  }
  std::sort(all.begin(), all.end());
  std::vector<Interval> merged;
  for (const Interval& one : all) {
    if (merged.empty() || one.first > merged.back().second)
      merged.push_back(one);
    else
      merged.back().second = std::max(merged.back().second, one.second);
  }
  return merged;
}

void Analyser::add_totals() {
  for (std::size_t c = 0; c < collective_count; ++c) {
    for (std::size_t f = 0; f < form_count; ++f) {
      CollectiveFigures figures;
      figures.collective = static_cast<Collective>(c);
      figures.form = static_cast<Form>(f);
      for (std::size_t i = 0; i < run_.files.size(); ++i) {
        for (std::size_t s = 0; s < size_class_count; ++s) {
          const trace::Total& total = run_.files[i].totals.by_size[c][f][s];
          SizeFigures& size = figures.by_size[s];
          size.calls += total.calls;
          size.bytes += total.bytes;
          size.ns += static_cast<double>(total.ticks) * clock_of(i).ns_per_tick;
        }
      }
      for (const SizeFigures& size : figures.by_size) {
        figures.calls += size.calls;
        figures.bytes += size.bytes;
        figures.ns += size.ns;
      }
      if (figures.calls == 0) continue;
      figures.name = mpi_name(figures.collective, figures.form);
      out_.collectives.push_back(std::move(figures));
    }
  }
}

void Analyser::add_algorithms() {
  for (std::size_t c = 0; c < collective_count; ++c)
    for (const Form form : {Form::blocking, Form::nonblocking}) {
      const bool blocking = form == Form::blocking;
      // By name: each rank numbers its algorithms and reasons by itself. Native keeps what no reason accounts
      // for.
      std::map<std::pair<std::string, std::string>, std::uint64_t> calls;
      for (const RankFile& file : run_.files) {
        const trace::Totals& totals = file.totals;
        const auto& by_reason = blocking ? totals.native_calls_by_reason : totals.native_nonblocking_by_reason;
        const auto& by_algorithm = blocking ? totals.calls_by_algorithm : totals.nonblocking_by_algorithm;
        std::uint64_t explained = 0;
        for (std::size_t r = 1; r < trace::reason_capacity; ++r) {
          const std::uint64_t native = by_reason[c][r];
          if (native == 0) continue;
          std::string reason = clean_text(file.header.reason_names[r]);
          if (reason.empty()) reason = fmt::format("reason {}", r);
          calls[{"native", std::move(reason)}] += native;
          explained += native;
        }
        for (std::size_t a = 0; a < trace::algorithm_capacity; ++a) {
          std::uint64_t count = by_algorithm[c][a];
          if (a == 0) count -= std::min(count, explained);
          if (count == 0) continue;
          std::string algorithm = a == 0 ? "native" : clean_text(file.header.algorithm_names[a]);
          if (algorithm.empty()) algorithm = fmt::format("algorithm {}", a);
          calls[{std::move(algorithm), {}}] += count;
        }
      }
      const std::size_t first = out_.algorithms.size();
      for (const auto& [key, count] : calls)
        out_.algorithms.push_back({mpi_name(static_cast<Collective>(c), form), key.first, key.second, count});
      std::stable_sort(out_.algorithms.begin() + static_cast<std::ptrdiff_t>(first), out_.algorithms.end(),
                       [](const auto& one, const auto& other) { return one.calls > other.calls; });
    }
}

// The place of an event's call site in sites_; no_site without one.
constexpr std::size_t no_site = ComparedCall::no_site;

std::size_t Analyser::site_of(std::size_t file, const trace::Event& event) {
  if (event.call_site == 0) return no_site;
  const auto [own, is_new_here] =
      own_sites_[file].try_emplace({event.call_site, event.collective, event.form}, sites_.size());
  if (!is_new_here) return own->second;
  const std::vector<Frame>& frames = run_.files[file].call_sites[event.call_site - 1];
  const auto [place, is_new] = site_index_.try_emplace({frames, event.collective, event.form}, sites_.size());
  own->second = place->second;
  if (!is_new) return place->second;
  CallSiteFigures& figures = sites_.emplace_back().figures;
  figures.number = place->second;
  for (const Frame& frame : frames) figures.frames.push_back(named(frame));
  figures.collective = static_cast<Collective>(event.collective);
  figures.form = static_cast<Form>(event.form);
  figures.name = mpi_name(figures.collective, figures.form);
  return place->second;
}

void Analyser::find_phases() {
  for (const RankFile& file : run_.files) {
    std::vector<PhaseFigures*>& own = own_phases_.emplace_back();
    for (std::uint64_t i = 0; i < file.header.phase_count; ++i) {
      const std::string name = clean_text(file.header.phase_names[i]);
      own.push_back(&phases_[name]);
      own.back()->name = name;
    }
    out_.unrecorded_calls += file.header.unrecorded_calls;
  }
}

void Analyser::group_events() {
  find_phases();
  own_sites_.resize(run_.files.size());
  const std::map<std::uint64_t, std::string> names = communicator_names(run_);
  std::unordered_map<std::uint64_t, std::size_t> index;
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    for (const trace::Communicator& communicator : run_.files[i].communicators) {
      const auto [at, is_new] = index.try_emplace(communicator.id, groups_.size());
      if (is_new) {
        groups_.emplace_back();
        groups_.back().id = communicator.id;
        groups_.back().size = communicator.size;
        groups_.back().name = names.at(communicator.id);
      }
      Group& group = groups_[at->second];
      if (group.size != communicator.size) group.consistent = false;
      group.members.push_back({i, communicator.rank, communicator.calls});
    }
  }
  for (Group& group : groups_) {
    std::stable_sort(group.members.begin(), group.members.end(),
                     [](const Member& a, const Member& b) { return a.rank < b.rank; });
    for (std::size_t m = 1; m < group.members.size(); ++m) {
      if (group.members[m].rank == group.members[m - 1].rank) group.consistent = false;
    }
  }
  // Where in its group each file is a member.
  std::vector<std::unordered_map<std::size_t, std::uint32_t>> place(run_.files.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::size_t m = 0; m < groups_[g].members.size(); ++m) {
      place[groups_[g].members[m].file].try_emplace(g, static_cast<std::uint32_t>(m));
    }
  }
  for (std::size_t i = 0; i < run_.files.size(); ++i) {
    std::uint64_t id = 0;
    Group* group = nullptr;
    std::uint32_t member = 0;
    for (const trace::Event& event : run_.files[i].events) {
      if (const std::size_t site = site_of(i, event); site != no_site) {
        CallSiteFigures& figures = sites_[site].figures;
        ++figures.calls;
        figures.bytes += event.bytes;
        figures.largest_bytes = std::max(figures.largest_bytes, event.bytes);
        if (event.exit_ticks != 0) figures.ns += clock_of(i).ns(event.exit_ticks) - clock_of(i).ns(event.arrival_ticks);
      }
      if (static_cast<Form>(event.form) == Form::blocking) {
        PhaseFigures& phase = *own_phases_[i][event.phase];
        ++phase.calls;
        if (event.exit_ticks != 0) phase.ns += clock_of(i).ns(event.exit_ticks) - clock_of(i).ns(event.arrival_ticks);
      }
      if (event.call == trace::no_call) continue;
      if (group == nullptr || event.communicator != id) {
        group = nullptr;
        const auto at = index.find(event.communicator);
        if (at != index.end()) {
          const auto own = place[i].find(at->second);
          if (own != place[i].end()) {
            group = &groups_[at->second];
            member = own->second;
            id = event.communicator;
          }
        }
      }
      if (group == nullptr) {
        ++untabled_events_;
        continue;
      }
      Member& self = group->members[member];
      self.first_kept_call = std::min(self.first_kept_call, event.call);
      // The table's own count is brought up to date only when the communicator or the job ends.
      self.calls = std::max(self.calls, event.call + 1);
      group->sightings.push_back({event.call, member, event.thread, &event});
    }
  }
}

void Analyser::compare(Group& group) {
  group.figures.id = group.id;
  group.figures.name = group.name;
  group.figures.size = group.size;
  for (const Member& member : group.members) group.figures.calls += member.calls;
  auto& sightings = group.sightings;
  if (!group.consistent && !sightings.empty()) ++inconsistent_groups_;
  std::sort(sightings.begin(), sightings.end(), [](const Sighting& a, const Sighting& b) {
    return std::tie(a.call, a.member, a.thread) < std::tie(b.call, b.member, b.thread);
  });
  for (std::size_t begin = 0; begin < sightings.size();) {
    std::size_t end = begin + 1;
    while (end < sightings.size() && sightings[end].call == sightings[begin].call) ++end;
    if (group.consistent) compare_call(group, {sightings.data() + begin, end - begin});
    begin = end;
  }
  if (group.figures.compared > 0) group.figures.worst_ns /= static_cast<double>(group.figures.compared);
}

void Analyser::compare_call(Group& group, std::span<const Sighting> sightings) {
  bool blocking = false;
  bool inside = false;
  for (const Sighting& sighting : sightings) {
    const bool own = static_cast<Form>(sighting.event->form) == Form::blocking;
    blocking = blocking || own;
    inside = inside || (own && sighting.event->exit_ticks == 0);
  }
  if (!blocking) return;
  const std::string conflict = disagreement(group, sightings);
  if (!conflict.empty() && mismatched_calls_++ == 0) first_mismatch_ = conflict;
  if (inside) add_pending(group, sightings, conflict);
  if (conflict.empty() && group.size >= 2 && complete(group, sightings)) add_arrivals(group, sightings);
}

// All ranks must have made the same call: other programs are erroneous, and it is worth telling where. Empty
// if so.
std::string Analyser::disagreement(const Group& group, std::span<const Sighting> sightings) const {
  const Sighting& first = sightings.front();
  const auto call_of = [](const Sighting& sighting) {
    const trace::Event& event = *sighting.event;
    const bool rooted = has_root(static_cast<Collective>(event.collective));
    // On inter-communicators roots may be MPI_ROOT and MPI_PROC_NULL, both negative.
    return std::tuple(event.collective, event.form, rooted ? std::max(event.root, -1) : -1);
  };
  const Sighting* other = nullptr;
  for (std::size_t i = 1; i < sightings.size() && other == nullptr; ++i) {
    if (call_of(sightings[i]) != call_of(first) || sightings[i].member == sightings[i - 1].member) {
      other = &sightings[i];
    }
  }
  if (other == nullptr) return {};
  const auto text = [&](const Sighting& sighting) {
    const auto [collective, form, root] = call_of(sighting);
    std::string name = mpi_name(static_cast<Collective>(collective), static_cast<Form>(form));
    if (root >= 0) name += fmt::format(" with root {}", root);
    return fmt::format("rank {} called {}", world_rank(group.members[sighting.member].file), name);
  };
  return fmt::format("at {}, {} and {}", call_text(first.call, group), text(first), text(*other));
}

// Complete: every rank of the communicator is there. Ranks without a usable file cannot be, and are not
// waited for.
bool Analyser::complete(const Group& group, std::span<const Sighting> sightings) {
  if (sightings.size() == static_cast<std::size_t>(group.size)) return true;
  const std::uint64_t unknown = static_cast<std::uint64_t>(group.size) - group.members.size();
  if (sightings.size() == group.members.size() && sightings.size() >= 2 && unknown <= run_.missing_ranks + run_.unwanted_ranks) {
    if (unknown > run_.unwanted_ranks) ++partial_calls_;
    return true;
  }
  bool overwritten = false;
  bool unmatched = false;
  std::size_t next = 0;
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    if (next < sightings.size() && sightings[next].member == m) {
      ++next;
      continue;
    }
    const Member& member = group.members[m];
    const std::vector<Gap>& gaps = run_.files[member.file].gaps;
    const bool may_be_lost = !gaps.empty() && (gaps.back().before > 0 || sightings.front().call < member.first_kept_call);
    if (may_be_lost && sightings.front().call < member.calls) {
      overwritten = true;
    } else if (sightings.front().call < member.calls) {
      unmatched = true;
    }
  }
  unmatched_calls_ += unmatched && !overwritten ? 1 : 0;
  return false;
}

std::vector<NamedFrame> Analyser::frames_of(std::size_t file, const trace::Event& event) const {
  std::vector<NamedFrame> frames;
  if (event.call_site != 0)
    for (const Frame& frame : run_.files[file].call_sites[event.call_site - 1]) frames.push_back(named(frame));
  return frames;
}

// What it is inside, or else left last.
LastSign Analyser::last_sign_of(std::size_t file) const {
  LastSign sign;
  sign.rank = world_rank(file);
  const trace::Event* last = nullptr;
  for (const trace::Event& event : run_.files[file].events) {
    if (static_cast<Form>(event.form) != Form::blocking) continue;
    const bool is_inside = event.exit_ticks == 0;
    if (last == nullptr || is_inside || (last->exit_ticks != 0 && event.exit_ticks >= last->exit_ticks)) last = &event;
  }
  if (last == nullptr) return sign;
  sign.name = mpi_name(static_cast<Collective>(last->collective), static_cast<Form>(last->form));
  const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.id == last->communicator; });
  sign.communicator = group != groups_.end() ? group->name : fmt::format("communicator {:#x}", last->communicator);
  sign.call = last->call;
  sign.inside = last->exit_ticks == 0;
  sign.unix_ns = clocks_.base_unix_ns() +
                 static_cast<std::int64_t>(clock_of(file).ns(sign.inside ? last->arrival_ticks : last->exit_ticks));
  sign.call_site = frames_of(file, *last);
  return sign;
}

std::vector<LastSign> Analyser::last_signs_of(std::span<const std::int32_t> ranks) const {
  std::vector<LastSign> signs;
  for (std::size_t i = 0; i < run_.files.size() && signs.size() < most_last_signs; ++i)
    if (std::binary_search(ranks.begin(), ranks.end(), world_rank(i))) signs.push_back(last_sign_of(i));
  return signs;
}

void Analyser::add_pending(const Group& group, std::span<const Sighting> sightings,
                           const std::string& conflict) {
  if (out_.pending.size() == most_pending) {
    ++pending_left_out_;
    return;
  }
  PendingCall pending;
  std::vector<std::int32_t> inside;
  std::vector<std::int32_t> absent;
  double first_arrival = std::numeric_limits<double>::max();
  std::size_t next = 0;
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    const Member& member = group.members[m];
    if (next < sightings.size() && sightings[next].member == m) {
      while (next < sightings.size() && sightings[next].member == m) {
        const trace::Event& event = *sightings[next].event;
        if (event.exit_ticks == 0) {
          pending.name = mpi_name(static_cast<Collective>(event.collective), static_cast<Form>(event.form));
          if (pending.call_site.empty()) pending.call_site = frames_of(member.file, event);
          inside.push_back(world_rank(member.file));
          first_arrival = std::min(first_arrival, clock_of(member.file).ns(event.arrival_ticks));
        }
        ++next;
      }
    } else if (member.calls <= sightings.front().call) {
      absent.push_back(world_rank(member.file));
    }
  }
  const std::uint64_t unknown = static_cast<std::uint64_t>(group.size) > group.members.size()
                                    ? static_cast<std::uint64_t>(group.size) - group.members.size()
                                    : 0;
  const std::uint64_t absent_ranks = run_.missing_ranks + run_.unwanted_ranks;
  if (group.size == run_.ranks && unknown > 0) {
    // Everybody is a member, so those without an entry are known by name; some may only lack a usable file.
    std::vector<bool> is_member(run_.files.size());
    for (const Member& member : group.members) is_member[member.file] = true;
    for (std::size_t i = 0; i < run_.files.size(); ++i) {
      if (!is_member[i]) absent.push_back(world_rank(i));
    }
    pending.unread_ranks = absent_ranks > 0;
  } else if (unknown > 0) {
    pending.unread_ranks = absent_ranks > 0;
    pending.unknown_not_arrived = unknown > absent_ranks ? unknown - absent_ranks : 0;
  }
  std::sort(inside.begin(), inside.end());
  inside.erase(std::unique(inside.begin(), inside.end()), inside.end());
  std::sort(absent.begin(), absent.end());
  pending.conflict = conflict;
  pending.communicator = group.name;
  pending.call = sightings.front().call;
  pending.inside = to_ranges(inside);
  pending.not_arrived = to_ranges(absent);
  const double last_sign = *std::max_element(end_ns_.begin(), end_ns_.end());
  pending.waited_ns = std::max(0.0, last_sign - first_arrival);
  pending.communicator_id = group.id;
  pending.ranks = group.size;
  pending.since_unix_ns = clocks_.base_unix_ns() + static_cast<std::int64_t>(first_arrival);
  pending.last_signs = last_signs_of(absent);
  out_.pending.push_back(std::move(pending));
}

void Analyser::add_arrivals(Group& group, std::span<const Sighting> sightings) {
  const trace::Event& first = *sightings.front().event;
  const auto collective = static_cast<Collective>(first.collective);
  const std::size_t c = index_of(collective);
  const std::size_t size = sightings.size();
  Instance& in = instance_;
  in.resize(size);
  std::uint64_t bytes = 0;
  bool across_nodes = false;
  for (std::size_t i = 0; i < size; ++i) {
    const trace::Event& event = *sightings[i].event;
    const std::size_t file = group.members[sightings[i].member].file;
    const NodeClock& clock = clock_of(file);
    in.files[i] = static_cast<std::uint32_t>(file);
    in.nodes[i] = run_.files[file].header.node;
    in.arrivals_ns[i] = clock.ns(event.arrival_ticks);
    in.exits_ns[i] =
        event.exit_ticks == 0 ? std::numeric_limits<double>::quiet_NaN() : clock.ns(event.exit_ticks);
    bytes = std::max(bytes, event.bytes);
    across_nodes = across_nodes || in.nodes[i] != in.nodes[0];
  }
  const auto size_class = static_cast<std::size_t>(size_class_of(bytes));
  CollectiveSums& sums = sums_[c];
  ++out_.compared_calls;
  ++group.figures.compared;

  // Imbalance, cluster-wide and by node.
  const WorstAverage cluster = imbalance_of(size, [&](std::size_t i) { return in.arrivals_ns[i]; });
  const double alpha = alpha_.ns(bytes, across_nodes);
  sums.cluster.add(cluster.worst_ns, cluster.average_ns, alpha);
  sums.cluster_by_size[size_class].add(cluster.worst_ns, cluster.average_ns, alpha);
  group.figures.worst_ns += cluster.worst_ns;
  PhaseFigures& phase = *own_phases_[in.files[0]][first.phase];
  ++phase.compared;
  phase.worst_ns += cluster.worst_ns;
  const std::size_t place = site_of(in.files[0], first);
  Site* const site = place == no_site ? nullptr : &sites_[place];
  if (site != nullptr) {
    ++site->figures.compared;
    site->figures.worst_ns += cluster.worst_ns;
  }
  WorstAverage node = cluster;
  std::size_t nodes = 1;
  if (across_nodes) {
    in.by_node.resize(size);
    std::iota(in.by_node.begin(), in.by_node.end(), std::size_t{0});
    std::stable_sort(in.by_node.begin(), in.by_node.end(),
                     [&](std::size_t a, std::size_t b) { return in.nodes[a] < in.nodes[b]; });
    node = {0, 0};
    nodes = 0;
    for (std::size_t begin = 0; begin < size;) {
      std::size_t end = begin + 1;
      while (end < size && in.nodes[in.by_node[end]] == in.nodes[in.by_node[begin]]) ++end;
      if (end - begin >= 2) {
        const WorstAverage own =
            imbalance_of(end - begin, [&](std::size_t i) { return in.arrivals_ns[in.by_node[begin + i]]; });
        node.worst_ns += own.worst_ns;
        node.average_ns += own.average_ns;
        ++nodes;
      }
      begin = end;
    }
  }
  if (nodes > 0) {
    node.worst_ns /= static_cast<double>(nodes);
    node.average_ns /= static_cast<double>(nodes);
    const double node_alpha = alpha_.ns(bytes, false);
    sums.node.add(node.worst_ns, node.average_ns, node_alpha);
    sums.node_by_size[size_class].add(node.worst_ns, node.average_ns, node_alpha);
  }

  // Who was last. A margin within the clocks' error decides nothing.
  std::size_t last = 0;
  std::size_t second = 0;
  std::size_t earliest = 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (in.arrivals_ns[i] < in.arrivals_ns[earliest]) earliest = i;
    if (in.arrivals_ns[i] > in.arrivals_ns[last]) {
      second = last;
      last = i;
    } else if (second == last || in.arrivals_ns[i] > in.arrivals_ns[second]) {
      second = i;
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    RankFigures& rank = ranks_[in.files[i]];
    ++rank.compared;
    ++rank.compared_in[c];
    late_sum_ns_[in.files[i]] += in.arrivals_ns[i] - in.arrivals_ns[earliest];
  }
  if (in.arrivals_ns[last] - in.arrivals_ns[second] > resolution_ns(in.files[last], in.files[second], in.arrivals_ns[last])) {
    ++ranks_[in.files[last]].times_last;
    ++ranks_[in.files[last]].times_last_in[c];
    if (site != nullptr) ++site->last[world_rank(in.files[last])];
  }
  if (site != nullptr) {
    site->calls.push_back({group.id, group.size, group.members[sightings[last].member].rank, world_rank(in.files[last]),
                           cluster.worst_ns,
                           std::max(uneven_factor * alpha, resolution_ns(in.files[earliest], in.files[last], in.arrivals_ns[last]))});
  }

  // Waiting and excess.
  find_waits(group, collective, first.root);
  std::fill(in.caused_ns.begin(), in.caused_ns.end(), 0.0);
  std::fill(in.waiters.begin(), in.waiters.end(), 0u);
  for (std::size_t i = 0; i < size; ++i) {
    const double wait = in.waits_ns[i];
    ranks_[in.files[i]].waited_ns += wait;
    sums.waiting_ns += wait;
    group.figures.waiting_ns += wait;
    out_.waiting_ns += wait;
    phase.waiting_ns += wait;
    if (site != nullptr) site->figures.waiting_ns += wait;
    if (wait > 0) {
      in.caused_ns[in.culprits[i]] += wait;
      ++in.waiters[in.culprits[i]];
    }
    if (!std::isnan(in.exits_ns[i])) {
      const double inside = in.exits_ns[i] - in.arrivals_ns[i];
      sums.inside_ns.push_back(inside);
      sums.excess_ns.push_back(inside - wait);
      phase.excess_ns += inside - wait;
      if (site != nullptr) site->figures.excess_ns += inside - wait;
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (in.waiters[i] == 0) continue;
    RankFigures& rank = ranks_[in.files[i]];
    rank.caused_ns += in.caused_ns[i];
    rank.caused_ns_in[c] += in.caused_ns[i];
    rank.delay_ns_in[c] += in.caused_ns[i] / in.waiters[i];
    ++rank.delays_in[c];
  }
  if (observe_) {
    ComparedCall call;
    call.event = &first;
    call.bytes = bytes;
    call.communicator = group.figures.name;
    call.site = place;
    call.files = in.files;
    call.arrivals_ns = in.arrivals_ns;
    call.waits_ns = in.waits_ns;
    call.exits_ns = in.exits_ns;
    call.first_ns = in.arrivals_ns[earliest];
    call.last = last;
    call.cluster = cluster;
    call.cluster_alpha_ns = alpha;
    call.has_node = nodes > 0;
    if (call.has_node) {
      call.node = node;
      call.node_alpha_ns = alpha_.ns(bytes, false);
    }
    observe_(call);
  }
}

// For each member the time from its arrival to its earliest legal exit, and for whom that was.
void Analyser::find_waits(const Group& group, Collective collective, std::int32_t root) {
  Instance& in = instance_;
  const std::size_t size = in.arrivals_ns.size();
  Roles roles{collective, size};  // the root may be a rank whose file is missing: then nothing is known of that waiting
  if (has_root(collective)) {
    for (std::size_t i = 0; i < size; ++i) {
      if (group.members[i].rank == root) roles.root = i;
    }
  }
  for_each_wait(
      roles, size, [&](std::size_t i) { return in.arrivals_ns[i]; },
      [&](std::size_t i, std::size_t until) {
        in.culprits[i] = until;
        in.waits_ns[i] = in.arrivals_ns[until] - in.arrivals_ns[i];
      });
}

void Analyser::finish_figures() {
  for (CollectiveFigures& figures : out_.collectives) {
    if (figures.form != Form::blocking) continue;
    CollectiveSums& sums = sums_[index_of(figures.collective)];
    figures.imbalance = {sums.cluster.average(), sums.node.average()};
    for (std::size_t s = 0; s < size_class_count; ++s) {
      figures.by_size[s].imbalance = {sums.cluster_by_size[s].average(), sums.node_by_size[s].average()};
    }
    figures.inside = spread_of(sums.inside_ns);
    figures.excess = spread_of(sums.excess_ns);
    figures.waiting_ns = sums.waiting_ns;
  }
  std::stable_sort(out_.collectives.begin(), out_.collectives.end(),
                   [](const auto& a, const auto& b) { return a.ns > b.ns; });
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].compared > 0) ranks_[i].late_ns = late_sum_ns_[i] / static_cast<double>(ranks_[i].compared);
  }
  out_.late_ranks = ranks_;
  std::stable_sort(out_.late_ranks.begin(), out_.late_ranks.end(),
                   [](const RankFigures& a, const RankFigures& b) {
                     return std::tie(a.times_last, a.caused_ns) > std::tie(b.times_last, b.caused_ns);
                   });
  for (Site& site : sites_) {
    CallSiteFigures& figures = site.figures;
    if (figures.compared > 0) figures.worst_ns /= static_cast<double>(figures.compared);
    figures.pattern = pattern_of(site.calls);
    for (const auto& [rank, times] : site.last) figures.last.push_back({rank, times});
    std::stable_sort(figures.last.begin(), figures.last.end(),
                     [](const auto& a, const auto& b) { return a.times > b.times; });
    out_.call_sites.push_back(std::move(figures));
  }
  std::stable_sort(out_.call_sites.begin(), out_.call_sites.end(), [](const auto& a, const auto& b) {
    return std::tie(a.waiting_ns, a.ns) > std::tie(b.waiting_ns, b.ns);
  });
  for (auto& [name, phase] : phases_) {
    if (phase.compared > 0) phase.worst_ns /= static_cast<double>(phase.compared);
    // Where nothing has a name there is nothing to tell apart.
    if (phases_.size() > 1 && phase.calls > 0) out_.phases.push_back(std::move(phase));
  }
  std::stable_sort(out_.phases.begin(), out_.phases.end(), [](const auto& a, const auto& b) {
    return std::tie(a.waiting_ns, a.ns) > std::tie(b.waiting_ns, b.ns);
  });
  for (Group& group : groups_) out_.communicators.push_back(std::move(group.figures));
  std::stable_sort(out_.communicators.begin(), out_.communicators.end(), [](const auto& a, const auto& b) {
    return std::tie(a.waiting_ns, a.calls) > std::tie(b.waiting_ns, b.calls);
  });
  out_.alpha_nominal = alpha_.used_nominal();
  if (out_.recorded_ns > 0) out_.waiting_share = std::min(1.0, out_.waiting_ns / out_.recorded_ns);
}

// What the rings have lost: `missing` calls are gone, `unread` ones could be read.
void Analyser::describe_trace(std::uint64_t missing, std::uint64_t unread) {
  const bool is_trace = std::any_of(run_.files.begin(), run_.files.end(), [](const RankFile& file) { return file.is_spilled; });
  const std::string kept = fmt::format("{} of {} calls (summed over ranks)", count_text(out_.events_kept), count_text(out_.events_begun));
  if (!is_trace && missing > 0)
    note(fmt::format("Arrivals are those of the last {}: older ones were overwritten. Calls, bytes and time are of the whole run. "
                     "PAPAYA_PROFILE=trace keeps more.",
                     kept));
  if (unread > 0)
    note(fmt::format("Arrivals are those of the last {}. Calls, bytes and time are of the whole run. `papaya report` reads older calls "
                     "from the trace, too.",
                     kept));
  if (!is_trace || missing == 0) return;
  std::vector<std::int32_t> limited;
  std::vector<std::int32_t> failed;
  std::uint64_t limit = 0;
  std::uint32_t error = 0;
  for (const RankFile& file : run_.files) {
    if (file.spill_state == trace::spill::State::limited) {
      limited.push_back(file.header.rank);
      limit = std::max(limit, file.spill_limit);
    } else if (file.spill_state == trace::spill::State::failed) {
      failed.push_back(file.header.rank);
      error = file.spill_error;
    }
  }
  std::string why;
  if (!limited.empty())
    why += fmt::format(" It reached its limit of {} bytes on {}; PAPAYA_TRACE_LIMIT sets it.", count_text(limit), ranks_text(to_ranges(limited)));
  if (!failed.empty())
    why += fmt::format(" It could not be written to its end on {}: {}.", ranks_text(to_ranges(failed)),
                       std::generic_category().message(static_cast<int>(error)));
  if (why.empty()) why = " They came faster than they could be written, or its file is damaged.";
  note(fmt::format("Dropped from the trace: {} of {} calls (summed over ranks).{} Calls, bytes and time are of the whole run.",
                   count_text(missing), count_text(out_.events_begun), why));
}

void Analyser::add_whole_run() {
  out_.whole_run = whole_run(run_, [&](std::uint64_t id) {
    const auto group = std::find_if(out_.communicators.begin(), out_.communicators.end(), [&](const auto& one) { return one.id == id; });
    if (id == 0) return std::string("others");
    return group == out_.communicators.end() ? fmt::format("communicator {:#x}", id) : group->name;
  });
  out_.is_overwritten = overwrote_;
  double time_ns = 0;
  for (std::size_t i = 0; i < run_.files.size(); ++i) time_ns += std::max(0.0, end_ns_[i] - init_ns_[i]);
  if (time_ns > 0) out_.whole_run_share = std::min(1.0, out_.whole_run.all.waiting_ns / time_ns);
}

// What the calls that are left do not tell.
std::string Analyser::whole_run_verdict() const {
  const WholeRun& whole = out_.whole_run;
  if (!overwrote_ || whole.all.calls == 0) return {};
  std::string text = fmt::format(" Over the whole run waiting for late ranks{} costs {}", run_.nodes > 1 ? " of the same node" : "",
                                 share_text(out_.whole_run_share));
  if (out_.whole_run_share >= balanced_share && !whole.last.empty()) {
    const WholeRun::Last& top = whole.last.front();
    text += fmt::format(", {} of that for rank {}", share_text(top.caused_ns / whole.all.waiting_ns), top.rank);
  }
  return text + ".";
}

void Analyser::look_for_horovod() {
  const Horovod horovod = find_horovod(run_);
  out_.horovod_library = horovod.library.substr(horovod.library.find_last_of('/') + 1);
  std::set<std::uint32_t> threads;
  for (const auto& of_rank : horovod.threads) threads.insert(of_rank.begin(), of_rank.end());
  const std::vector<std::int32_t> numbers(threads.begin(), threads.end());
  out_.horovod_threads = fmt::format("thread{} {}", numbers.size() == 1 ? "" : "s", to_text(to_ranges(numbers)));
}

void Analyser::describe_record() {
  std::uint64_t overwritten = 0;
  std::uint64_t unread = 0;
  std::uint64_t skipped = 0;
  std::uint64_t lost_communicators = 0;
  std::uint64_t lost_call_sites = 0;
  for (const RankFile& file : run_.files) {
    overwritten += file.overwritten_events;
    unread += file.unread_events;
    skipped += file.skipped_events;
    lost_communicators += file.header.lost_communicators;
    lost_call_sites += file.header.lost_call_sites;
  }
  describe_trace(overwritten - unread, unread);
  if (out_.unrecorded_calls > 0)
    note(fmt::format("Not recorded, as the program had switched that off by MPI_Pcontrol: {} (summed over ranks).",
                     counted(out_.unrecorded_calls, "call", "calls")));
  if (skipped > 0) {
    note(fmt::format("Left out, torn or damaged: {}.",
                     counted(skipped, "record of a call", "records of calls")));
  }
  if (partial_calls_ > 0) {
    note(fmt::format(
        "Compared without the ranks that have no usable record, which may have arrived even later: {}.",
        counted(partial_calls_, "call", "calls")));
  }
  if (unmatched_calls_ > 0) {
    note(fmt::format("Not compared, as the record of one of the ranks lacks them: {}.",
                     counted(unmatched_calls_, "call", "calls")));
  }
  if (mismatched_calls_ > 0) {
    note(fmt::format(
        "Ranks disagree about the collective in {}, first {}: an error in the program, or its threads "
        "share a communicator.",
        counted(mismatched_calls_, "call", "calls"), first_mismatch_));
  }
  if (untabled_events_ > 0 || lost_communicators > 0) {
    note(fmt::format("The program used more communicators than the record holds; not compared on those: {}.",
                     counted(untabled_events_, "call", "calls")));
  }
  if (lost_call_sites > 0) {
    note(fmt::format("The program calls from more places than the record holds; without a call site: {} (summed over ranks).",
                     counted(lost_call_sites, "place", "places")));
  }
  if (inconsistent_groups_ > 0) {
    note(fmt::format("Not compared, as their ranks cannot be told apart: the calls on {}.",
                     counted(inconsistent_groups_, "communicator", "communicators")));
  }
  if (pending_left_out_ > 0)
    note(fmt::format("Not listed: {}.",
                     counted(pending_left_out_, "more unfinished call", "more unfinished calls")));
  if (out_.alpha_nominal && out_.compared_calls > 0) {
    note(fmt::format(
        "Alpha, the time to send one message, was not measured in this run: imbalance factors use a "
        "nominal one of {} us + bytes / ({} GB/s).",
        nominal_latency_ns / 1000, nominal_bytes_per_ns));
  }
}

// ---- the verdict

std::string Analyser::verdict() {
  // A job that was killed in the middle of its work has ranks inside a call, too.
  if (const std::string stuck = pending_verdict(); !stuck.empty()) {
    if (out_.compared_calls == 0 || run_.ranks == 1) return stuck;
    std::string before = late_verdict();
    before[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(before[0])));
    return stuck + " Until then, " + before + whole_run_verdict();
  }
  if (out_.collectives.empty() && out_.events_kept == 0) {
    return "The program made no collective calls, so there are no arrivals to compare.";
  }
  if (run_.ranks == 1) return "The job has one rank, so no rank can be late.";
  if (out_.compared_calls == 0) {
    const bool blocking = std::any_of(out_.collectives.begin(), out_.collectives.end(),
                                      [](const CollectiveFigures& c) { return c.form == Form::blocking; });
    return blocking ? "Arrivals cannot be compared: no blocking collective call of two or more ranks is in "
                      "the record "
                      "of all of them."
                    : "Arrivals cannot be compared: the program made no blocking collective calls.";
  }
  return late_verdict() + whole_run_verdict();
}

// Ranks that wait for one that never came are what the user of a hung job looks for.
std::string Analyser::pending_verdict() const {
  const PendingCall* worst = nullptr;
  for (const PendingCall& pending : out_.pending) {
    if (!pending.conflict.empty()) {
      return fmt::format("Ranks disagree about the collective: {}, and the record ends there.",
                         pending.conflict);
    }
    if (pending.not_arrived.empty() && pending.unknown_not_arrived == 0) continue;
    if (worst == nullptr || pending.waited_ns > worst->waited_ns) worst = &pending;
  }
  if (worst == nullptr) return {};
  const bool one = worst->inside.size() == 1 && worst->inside.front().first == worst->inside.front().last;
  const std::string absent = worst->not_arrived.empty()
                                 ? fmt::format("{} of its ranks", worst->unknown_not_arrived)
                                 : ranks_text(worst->not_arrived);
  std::string who = ranks_text(worst->inside);
  who[0] = 'R';
  return fmt::format("{} {} inside {}, call {} on {}, when the record ended, and {} had not arrived there.", who,
                     one ? "was" : "were", worst->name, worst->call, worst->communicator, absent);
}

// "at 87 % of the MPI_Allreduce calls", "at 3 of the 4 MPI_Allreduce calls"
std::string lasts_text(std::uint64_t times, std::uint64_t calls, std::string_view name) {
  if (calls == 1 && times == 1) return fmt::format("at the one {} call", name);
  if (calls < few_calls) return fmt::format("at {} of the {} {} calls", times, calls, name);
  return fmt::format("at {} of the {} calls",
                     share_text(static_cast<double>(times) / static_cast<double>(calls)), name);
}

std::string Analyser::late_verdict() const {
  const std::string prefix =
      run_.missing.empty() ? "" : fmt::format("Of the {} of {} ranks read: ", run_.files.size(), run_.ranks);
  const std::string cost =
      fmt::format("waiting for late ranks costs {} of the {}", share_text(out_.waiting_share),
                  overwrote_ ? "recorded part of the run" : "run");
  const auto begin = [&](std::string sentence) {
    if (!prefix.empty()) sentence[0] = static_cast<char>(sentence[0] - 'A' + 'a');
    return prefix + sentence;
  };

  std::vector<const RankFigures*> by_cost;
  for (const RankFigures& rank : ranks_) {
    if (rank.compared > 0) by_cost.push_back(&rank);
  }
  const auto count = static_cast<double>(by_cost.size());
  // Leaves them by what the others waited for them; the first of them stands out if it causes twice its part of all that waiting
  // (of two ranks three quarters; never less than a quarter), and no other much more than half as much.
  const double enough = by_cost.size() == 2 ? 0.75 : std::clamp(2 / count, 0.25, 0.5);
  const auto one_stands_out = [&](const auto& caused_ns, double all_ns) {
    std::stable_sort(by_cost.begin(), by_cost.end(),
                     [&](const auto* a, const auto* b) { return caused_ns(*a) > caused_ns(*b); });
    const double second_ns = by_cost.size() > 1 ? caused_ns(*by_cost[1]) : 0.0;
    return all_ns > 0 && caused_ns(*by_cost[0]) >= enough * all_ns && second_ns <= 0.6 * caused_ns(*by_cost[0]);
  };
  const auto most = [](const std::array<double, collective_count>& values) {
    return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
  };
  std::array<double, collective_count> waiting{};
  for (std::size_t c = 0; c < collective_count; ++c) waiting[c] = sums_[c].waiting_ns;
  const std::size_t worst = most(waiting);
  const auto caused_at_worst = [worst](const RankFigures& rank) { return rank.caused_ns_in[worst]; };
  const auto caused = [](const RankFigures& rank) { return rank.caused_ns; };
  // At the collective that most waiting is at, and if not there, then in all.
  const bool one_there = waiting[worst] >= 0.5 * out_.waiting_ns && one_stands_out(caused_at_worst, waiting[worst]);
  const RankFigures* const there = by_cost.front();
  const bool one_in_all = one_stands_out(caused, out_.waiting_ns);
  const bool one_rank = one_in_all || one_there;
  const RankFigures& top = one_in_all ? *by_cost.front() : *there;
  std::string one_rank_text;
  double lasts = 0;
  double delay_ns = 0;
  if (one_rank) {
    const std::size_t c = one_in_all ? most(top.caused_ns_in) : worst;
    const auto collective = static_cast<Collective>(c);
    const std::string name = mpi_name(collective, Form::blocking);
    delay_ns = top.delay_ns_in[c] / static_cast<double>(std::max<std::uint64_t>(1, top.delays_in[c]));
    const bool is_root = need_of(collective) == Need::root;
    const std::uint64_t times = is_root ? top.delays_in[c] : top.times_last_in[c];
    lasts = static_cast<double>(times) / static_cast<double>(top.compared_in[c]);
    one_rank_text = fmt::format("{} {}{}, by {} on average", is_root ? "it keeps the others waiting" : "it arrives last",
                                lasts_text(times, top.compared_in[c], name), is_root ? " as their root" : "", time_text(delay_ns));
    // Seldom, and by much.
    if (lasts < 0.5)
      one_rank_text += fmt::format(", which is {} of the waiting there", share_text(top.caused_ns_in[c] / waiting[c]));
  }
  if (out_.waiting_share < balanced_share) {
    if (one_rank && lasts >= noticeable_lasts && delay_ns >= noticeable_delay_ns) {
      return begin(
          fmt::format("Rank {} is late but it costs little: {}; {}.", top.rank, one_rank_text, cost));
    }
    return begin(fmt::format("Arrivals are balanced: {}.", cost));
  }
  if (one_rank) return begin(fmt::format("Rank {} is late: {}; {}.", top.rank, one_rank_text, cost));

  // A few ranks stand out if two, or at most a quarter, of four or more cause three quarters of the waiting.
  std::vector<std::int32_t> few;
  double caused_by_few = 0;
  for (const RankFigures* rank : by_cost) {
    if (caused_by_few >= 0.75 * out_.waiting_ns) break;
    caused_by_few += rank->caused_ns;
    few.push_back(rank->rank);
  }
  if (few.size() >= 2 && static_cast<double>(few.size()) <= std::max(2.0, count / 4) && count >= 4) {
    std::sort(few.begin(), few.end());
    std::string who = ranks_text(to_ranges(few));
    who[0] = 'R';
    return begin(fmt::format("{} are late: {} of all waiting is for them; {}.", who,
                             share_text(caused_by_few / out_.waiting_ns), cost));
  }
  one_stands_out(caused_at_worst, waiting[worst]);
  return begin(fmt::format(
      "Arrivals are imbalanced and no rank is always the late one: at {} the last rank arrives {} after "
      "the first on average; the most waiting there, {}, is for rank {}; {}.",
      mpi_name(static_cast<Collective>(worst), Form::blocking), time_text(sums_[worst].cluster.average().worst_ns),
      share_text(caused_at_worst(*by_cost.front()) / waiting[worst]), by_cost.front()->rank, cost));
}

}  // namespace

Analysis analyse(const Run& run, const CallObserver& observe) noexcept {
  try {
    return Analyser(run, observe).analyse();
  } catch (...) {
    Analysis failed;
    failed.partial = true;
    failed.verdict = "Not enough memory.";
    return failed;
  }
}

std::string mpi_name(Collective collective, Form form) {
  std::string name(name_of(collective));
  if (form == Form::nonblocking) {
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    return "MPI_I" + name;
  }
  return "MPI_" + name + (form == Form::persistent ? "_init" : "");
}

NamedFrame named(const Frame& frame) {
  if (frame.python.empty()) return {frame, {}, {}, 0};
  return {frame, frame.python, frame.module, static_cast<int>(frame.offset)};
}

std::string frame_text(const NamedFrame& frame) {
  const auto base = [](const std::string& path) { return path.substr(path.find_last_of('/') + 1); };
  if (frame.module.empty()) return fmt::format("{:#x}", frame.offset);
  if (frame.function.empty()) return fmt::format("{}+{:#x}", base(frame.module), frame.offset);
  if (frame.file.empty()) return fmt::format("{} ({})", frame.function, base(frame.module));
  return fmt::format("{} ({}:{})", frame.function, base(frame.file), frame.line);
}

std::string call_site_text(const std::vector<NamedFrame>& frames) {
  std::string text;
  for (const NamedFrame& frame : frames) text += (text.empty() ? "" : " < ") + frame_text(frame);
  return text;
}

std::string time_text(double ns) {
  struct Unit {
    double ns;
    const char* name;
  };
  constexpr Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}};
  const double size = std::abs(ns);
  if (size >= 120e9) {
    const double minutes = std::floor(ns / 60e9);
    if (size < 7200e9)
      return fmt::format("{:.0f} min {:.0f} s", minutes, std::floor((ns - minutes * 60e9) / 1e9));
    return fmt::format("{:.1f} h", ns / 3600e9);
  }
  for (const Unit& unit : units) {
    const double value = size / unit.ns;
    if (value < 0.9995) continue;
    return fmt::format("{:.{}f} {}", ns / unit.ns, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit.name);
  }
  return fmt::format("{:.0f} ns", size < 0.5 ? 0.0 : ns);
}

std::string count_text(std::uint64_t count) {
  std::string text = fmt::format("{}", count);
  for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, 1, ',');
  return text;
}

std::string share_text(double share) {
  const double percent = share * 100;
  if (percent == 0) return "0 %";
  if (percent < 0.1) return "less than 0.1 %";
  return fmt::format("{:.{}f} %", percent, percent < 9.95 ? 1 : 0);
}

}  // namespace papaya::report
