#include "profiler/analysis/weak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "profiler/record/waits.hpp"

namespace papaya::report {

namespace {

// A rank's calls of one collective of the program's, in order.
struct Member {
  std::size_t file;
  std::int32_t rank;  // in the communicator
  std::vector<const trace::WeakEvent*> calls;
};
// By the collective's identity.
using Collectives = std::map<std::uint64_t, std::vector<Member>>;

Collectives collectives_of(const Run& run) {
  Collectives collectives;
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    const WeakCalls& weak = run.files[f].weak;
    for (const trace::WeakEvent& event : weak.events) {
      if (event.collective == 0) continue;
      std::vector<Member>& members = collectives[event.collective];
      if (members.empty() || members.back().file != f) members.push_back({f, weak.rows[event.row].rank, {}});
      members.back().calls.push_back(&event);
    }
  }
  for (auto& [id, members] : collectives) {
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.rank < b.rank; });
    for (Member& member : members)
      std::stable_sort(member.calls.begin(), member.calls.end(),
                       [](const auto* a, const auto* b) { return a->clock < b->clock; });
  }
  return collectives;
}

// The MPI collective that it stands for.
Collective consistent(std::string_view collective) {
  if (collective == "threshold_bcast") return Collective::bcast;
  if (collective == "threshold_reduce") return Collective::reduce;
  return Collective::allreduce;
}

std::uint64_t staleness_of(const trace::WeakEvent& event) {
  return event.clock - std::min(event.clock, event.oldest);
}

void count(WeakSums& sums, const trace::WeakEvent& event) {
  ++sums.calls;
  sums.bytes += event.bytes;
  sums.inside_ns += static_cast<double>(event.inside_ns);
  sums.waited_ns += static_cast<double>(event.waited_ns);
  sums.share += event.share;
  if (event.oldest == 0) return;
  ++sums.aged_calls;
  sums.staleness += static_cast<double>(staleness_of(event));
  sums.most_staleness = std::max(sums.most_staleness, staleness_of(event));
}

void count(WeakSums& sums, const trace::WeakRow& row) {
  sums.calls += row.calls;
  sums.bytes += row.bytes;
  sums.inside_ns += static_cast<double>(row.inside_ns);
  sums.waited_ns += static_cast<double>(row.waited_ns);
  sums.aged_calls += row.aged_calls;
  sums.staleness += static_cast<double>(row.staleness);
  sums.most_staleness = std::max(sums.most_staleness, row.most_staleness);
  sums.share += static_cast<double>(row.share_millionths) * 1e-6;
}

// Sums become means.
void finish(WeakSums& sums) {
  if (sums.aged_calls > 0) sums.staleness /= static_cast<double>(sums.aged_calls);
  if (sums.calls > 0) sums.share /= static_cast<double>(sums.calls);
}

// Figures of one algorithm as they come together.
class Gathering {
 public:
  Gathering(const Run& run, const trace::WeakRow& row) : run_(run) {
    out_.collective = clean_text(row.collective);
    out_.algorithm = clean_text(row.algorithm);
    out_.parameters = clean_text(row.parameters);
  }

  // Of the whole run.
  void add(std::size_t file, const trace::WeakRow& row) {
    count(out_.sums, row);
    count(rank_of(file).sums, row);
  }
  // Of the record.
  void add(std::size_t file, const trace::WeakEvent& event) {
    if (event.exit_ticks == 0) return;
    count(site_of(file, event).figures.sums, event);
    count(phase_of(file, event).sums, event);
    if (event.oldest > 0) ++ages_[first_of_its_range(staleness_of(event))];
  }

  void compare(const std::vector<const trace::WeakEvent*>& call) {
    ++out_.sums.compared;
    for (const trace::WeakEvent* event : call) out_.sums.compared_waited_ns += static_cast<double>(event->waited_ns);
  }
  // In a consistent collective the rank would have waited for `awaited`, which may be itself.
  void compare(std::size_t file, const trace::WeakEvent& event, std::size_t awaited, double waiting_ns) {
    out_.sums.consistent_waiting_ns += waiting_ns;
    Site& site = site_of(file, event);
    for (WeakSums* const sums : {&site.figures.sums, &phase_of(file, event).sums, &rank_of(file).sums}) {
      ++sums->compared;
      sums->compared_waited_ns += static_cast<double>(event.waited_ns);
      sums->consistent_waiting_ns += waiting_ns;
    }
    if (waiting_ns <= 0) return;
    rank_of(awaited).caused_ns += waiting_ns;
    site.awaited[run_.files[awaited].header.rank] += waiting_ns;
  }

  WeakFigures take() {
    finish(out_.sums);
    for (auto& [file, rank] : ranks_) {
      finish(rank.sums);
      out_.ranks.push_back(std::move(rank));
    }
    std::sort(out_.ranks.begin(), out_.ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    for (auto& [frames, site] : sites_) {
      finish(site.figures.sums);
      for (const auto& [rank, ns] : site.awaited) site.figures.awaited.push_back({rank, ns});
      std::stable_sort(site.figures.awaited.begin(), site.figures.awaited.end(),
                       [](const auto& a, const auto& b) { return a.waiting_ns > b.waiting_ns; });
      out_.sites.push_back(std::move(site.figures));
    }
    const bool has_phases =
        std::any_of(phases_.begin(), phases_.end(), [](const auto& one) { return !one.first.empty(); });
    for (auto& [name, phase] : phases_) {
      finish(phase.sums);
      phase.name = name;
      if (has_phases) out_.phases.push_back(std::move(phase));
    }
    const auto more_time = [](const auto& a, const auto& b) { return a.sums.inside_ns > b.sums.inside_ns; };
    std::stable_sort(out_.sites.begin(), out_.sites.end(), more_time);
    std::stable_sort(out_.phases.begin(), out_.phases.end(), more_time);
    if (!ages_.empty())
      for (std::uint64_t from = 0, to = 0; to < ages_.rbegin()->first || out_.ages.empty(); from = to + 1) {
        to = from < single_ages ? from : from + (from - 1);
        const auto found = ages_.find(from);
        out_.ages.push_back({from, to, found == ages_.end() ? 0 : found->second});
      }
    return std::move(out_);
  }

 private:
  struct Site {
    WeakSite figures;
    std::map<std::int32_t, double> awaited;
  };
  using Places = std::pair<std::vector<Frame>, std::vector<Frame>>;

  // Each age by itself up to here, then from one power of two to the next.
  static constexpr std::uint64_t single_ages = 16;
  static std::uint64_t first_of_its_range(std::uint64_t age) { return age < single_ages ? age : std::bit_floor(age); }

  WeakRank& rank_of(std::size_t file) {
    WeakRank& rank = ranks_[file];
    rank.rank = run_.files[file].header.rank;
    return rank;
  }
  Site& site_of(std::size_t file, const trace::WeakEvent& event) {
    Site*& known = known_sites_[{file, event.call_site, event.ended_site}];
    if (known != nullptr) return *known;
    const RankFile& record = run_.files[file];
    const auto frames = [&](std::uint32_t number) {
      return number == 0 ? std::vector<Frame>() : (*record.call_sites)[number - 1];
    };
    Places places{frames(event.call_site), frames(event.ended_site)};
    if (places.second == places.first) places.second.clear();
    const bool is_there_too = places.second.empty();
    Site& site = sites_[std::move(places)];
    if (site.figures.frames.empty()) {
      site.figures.frames = frames_of(record, event.call_site);
      if (!is_there_too) site.figures.ended = frames_of(record, event.ended_site);
    }
    known = &site;
    return site;
  }
  WeakPhase& phase_of(std::size_t file, const trace::WeakEvent& event) {
    return phases_[clean_text(run_.files[file].texts->phase_names[event.phase])];
  }

  const Run& run_;
  WeakFigures out_;
  std::map<std::size_t, WeakRank> ranks_;  // by file
  std::map<Places, Site> sites_;
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint32_t>, Site*> known_sites_;  // by file and numbers in it
  std::map<std::string, WeakPhase> phases_;
  std::map<std::uint64_t, std::uint64_t> ages_;  // calls, by the first age of the range
};

// Calls that all ranks have ended, one after the other: index i is the i-th member's.
class Replay {
 public:
  Replay(const Clocks& clocks, const std::vector<Member>& members, const trace::WeakRow& row, Gathering& figures)
      : clocks_(clocks),
        members_(members),
        roles_{consistent(row.collective), row.root < 0 ? members.size() : static_cast<std::size_t>(row.root)},
        figures_(figures),
        before_(members.size()),
        ready_ns_(members.size()),
        left_ns_(members.size()) {}

  void add(const std::vector<const trace::WeakEvent*>& call) {
    const std::uint64_t clock = call.front()->clock;
    const bool goes_on = before_.front() != nullptr && before_.front()->clock + 1 == clock;
    // In the middle of a record the ranks may have drifted apart long before.
    const bool is_compared = goes_on || clock == 1;
    for (std::size_t i = 0; i < call.size(); ++i)
      ready_ns_[i] = goes_on ? left_ns_[i] + (ns(i, call[i]->arrival_ticks) - ns(i, before_[i]->exit_ticks))
                             : ns(i, call[i]->arrival_ticks);
    // What it did itself while the call was under way.
    const auto own_ns = [&](std::size_t i) {
      return std::max(
          0.0, ns(i, call[i]->exit_ticks) - ns(i, call[i]->arrival_ticks) - static_cast<double>(call[i]->inside_ns));
    };
    for_each_wait(
        roles_, call.size(), [&](std::size_t i) { return ready_ns_[i]; },
        [&](std::size_t i, std::size_t j) {
          const double at_ns = ready_ns_[i] + own_ns(i);
          left_ns_[i] = std::max(at_ns, ready_ns_[j]);
          if (is_compared) figures_.compare(members_[i].file, *call[i], members_[j].file, left_ns_[i] - at_ns);
        });
    before_ = call;
    if (is_compared) figures_.compare(call);
  }

 private:
  double ns(std::size_t member, std::uint64_t ticks) const { return clocks_.of_file(members_[member].file).ns(ticks); }

  const Clocks& clocks_;
  const std::vector<Member>& members_;
  const Roles roles_;
  Gathering& figures_;
  std::vector<const trace::WeakEvent*> before_;
  std::vector<double> ready_ns_;  // it comes to the call
  std::vector<double> left_ns_;
};

void replay(const Clocks& clocks, const std::vector<Member>& members, const trace::WeakRow& row, Gathering& figures) {
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members.size() != static_cast<std::size_t>(row.size) || members[i].rank != static_cast<std::int32_t>(i)) return;
  Replay replay(clocks, members, row, figures);
  std::vector<std::size_t> next(members.size());
  std::vector<const trace::WeakEvent*> call(members.size());
  for (const trace::WeakEvent* first : members.front().calls) {
    bool is_complete = true;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& calls = members[i].calls;
      while (next[i] < calls.size() && calls[next[i]]->clock < first->clock) ++next[i];
      is_complete = is_complete && next[i] < calls.size() && calls[next[i]]->clock == first->clock &&
                    calls[next[i]]->exit_ticks != 0;
      call[i] = is_complete ? calls[next[i]] : nullptr;
    }
    if (is_complete) replay.add(call);
  }
}

}  // namespace

std::vector<WeakFigures> weak_figures(const Run& run, const Clocks& clocks) {
  std::map<std::tuple<std::string, std::string, std::string>, Gathering> all;
  const auto figures_of = [&](const trace::WeakRow& row) -> Gathering& {
    return all
        .try_emplace({clean_text(row.collective), clean_text(row.algorithm), clean_text(row.parameters)}, run, row)
        .first->second;
  };
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    const WeakCalls& weak = run.files[f].weak;
    std::vector<Gathering*> of_rows;
    for (const trace::WeakRow& row : weak.rows) {
      of_rows.push_back(&figures_of(row));
      of_rows.back()->add(f, row);
    }
    for (const trace::WeakEvent& event : weak.events) of_rows[event.row]->add(f, event);
  }
  for (const auto& [id, members] : collectives_of(run)) {
    const trace::WeakRow& row = run.files[members.front().file].weak.rows[members.front().calls.front()->row];
    replay(clocks, members, row, figures_of(row));
  }
  std::vector<WeakFigures> found;
  for (auto& [key, gathering] : all)
    if (WeakFigures figures = gathering.take(); figures.sums.calls > 0) found.push_back(std::move(figures));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.sums.inside_ns > b.sums.inside_ns; });
  return found;
}

std::string weak_communicator(const trace::WeakRow& row) {
  std::string name = clean_text(row.communicator_name);
  return name.empty() ? fmt::format("{:#x}", row.communicator) : name;
}

}  // namespace papaya::report
