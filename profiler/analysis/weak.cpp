#include "profiler/analysis/weak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

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

// Calls that all ranks have ended, one after the other: index i is the i-th member's.
class Replay {
 public:
  Replay(const Clocks& clocks, const std::vector<Member>& members, const trace::WeakRow& row, WeakFigures& figures)
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
    for (std::size_t i = 0; i < call.size(); ++i)
      ready_ns_[i] = goes_on ? left_ns_[i] + (ns(i, call[i]->arrival_ticks) - ns(i, before_[i]->exit_ticks))
                             : ns(i, call[i]->arrival_ticks);
    // What it did itself while the call was under way.
    const auto own_ns = [&](std::size_t i) {
      return std::max(
          0.0, ns(i, call[i]->exit_ticks) - ns(i, call[i]->arrival_ticks) - static_cast<double>(call[i]->inside_ns));
    };
    double waiting_ns = 0;
    for_each_wait(
        roles_, call.size(), [&](std::size_t i) { return ready_ns_[i]; },
        [&](std::size_t i, std::size_t j) {
          const double at_ns = ready_ns_[i] + own_ns(i);
          left_ns_[i] = std::max(at_ns, ready_ns_[j]);
          waiting_ns += left_ns_[i] - at_ns;
        });
    before_ = call;
    // In the middle of a record the ranks may have drifted apart long before.
    if (!goes_on && clock != 1) return;
    ++figures_.compared;
    figures_.consistent_waiting_ns += waiting_ns;
    for (const trace::WeakEvent* event : call) figures_.compared_waited_ns += static_cast<double>(event->waited_ns);
  }

 private:
  double ns(std::size_t member, std::uint64_t ticks) const { return clocks_.of_file(members_[member].file).ns(ticks); }

  const Clocks& clocks_;
  const std::vector<Member>& members_;
  const Roles roles_;
  WeakFigures& figures_;
  std::vector<const trace::WeakEvent*> before_;
  std::vector<double> ready_ns_;  // it comes to the call
  std::vector<double> left_ns_;
};

void replay(const Clocks& clocks, const std::vector<Member>& members, const trace::WeakRow& row, WeakFigures& figures) {
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
  std::map<std::tuple<std::string, std::string, std::string>, WeakFigures> all;
  const auto figures_of = [&](const trace::WeakRow& row) -> WeakFigures& {
    WeakFigures figures{.collective = clean_text(row.collective),
                        .algorithm = clean_text(row.algorithm),
                        .parameters = clean_text(row.parameters)};
    return all.try_emplace({figures.collective, figures.algorithm, figures.parameters}, figures).first->second;
  };
  for (const RankFile& file : run.files)
    for (const trace::WeakRow& row : file.weak.rows) {
      WeakFigures& figures = figures_of(row);
      figures.calls += row.calls;
      figures.bytes += row.bytes;
      figures.inside_ns += static_cast<double>(row.inside_ns);
      figures.waited_ns += static_cast<double>(row.waited_ns);
      figures.aged_calls += row.aged_calls;
      figures.staleness += static_cast<double>(row.staleness);
      figures.most_staleness = std::max(figures.most_staleness, row.most_staleness);
      figures.share += static_cast<double>(row.share_millionths) * 1e-6;
    }
  for (const auto& [id, members] : collectives_of(run)) {
    const trace::WeakRow& row = run.files[members.front().file].weak.rows[members.front().calls.front()->row];
    replay(clocks, members, row, figures_of(row));
  }
  std::vector<WeakFigures> found;
  for (auto& [key, figures] : all) {
    if (figures.calls == 0) continue;
    if (figures.aged_calls > 0) figures.staleness /= static_cast<double>(figures.aged_calls);
    figures.share /= static_cast<double>(figures.calls);
    found.push_back(std::move(figures));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.inside_ns > b.inside_ns; });
  return found;
}

std::string weak_communicator(const trace::WeakRow& row) {
  std::string name = clean_text(row.communicator_name);
  return name.empty() ? fmt::format("{:#x}", row.communicator) : name;
}

}  // namespace papaya::report
