#include "profiler/analysis/costly_calls.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/mpi_name.hpp"
#include "profiler/analysis/archive.hpp"
#include "profiler/analysis/sites.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {
namespace {

// Arrivals apart by less than this part of the longest wait are about at the same time.
constexpr double about = 0.1;

// Who came when the culprit did, and whether one rank alone came long before them all.
void find_late(const Run& run, const Arrivals& arrivals, std::size_t culprit, CostlyCall& costly) {
  const double margin_ns = about * costly.delay_ns;
  const double last_ns = arrivals.arrivals_ns[culprit];
  // Where others than the culprit may come as late and nobody waits for them, it is the only one that is told of.
  const Need need = need_of(arrivals.collective);
  const bool all_count = need == Need::all || need == Need::root_needs_all;
  std::vector<std::int32_t> late;
  std::size_t early = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const double before_ns = last_ns - arrivals.arrivals_ns[i];
    const std::int32_t rank = run.files[arrivals.files[i]].header.rank;
    if (i == culprit || (all_count && before_ns >= 0 && before_ns <= margin_ns)) {
      late.push_back(rank);
    } else if (before_ns > margin_ns) {
      costly.waits_alone = rank;
      ++early;
    }
  }
  if (early != 1 || late.size() < 2 || late.size() + early < arrivals.size()) costly.waits_alone = -1;
  std::sort(late.begin(), late.end());
  costly.late = to_ranges(late);
}

}  // namespace

// What a call meanwhile is told of it later.
void pack(Archive& archive, CostlyCall& call) {
  archive(call.name, call.communicator, call.call, call.rank, call.late, call.waits_alone, call.begin_ns, call.delay_ns,
          call.waiting_ns, call.frames, call.is_first);
}

void CostlyCalls::add(const Run& run, const GroupCall& call, const Arrivals& arrivals) {
  const std::vector<double>& caused_ns = arrivals.caused_ns;
  const double waiting_ns = std::accumulate(caused_ns.begin(), caused_ns.end(), 0.0);
  if (waiting_ns <= 0 || (kept_.size() == most_costly_calls && waiting_ns <= kept_.back().waiting_ns)) return;
  const auto culprit =
      static_cast<std::size_t>(std::max_element(caused_ns.begin(), caused_ns.end()) - caused_ns.begin());
  const RankFile& file = run.files[arrivals.files[culprit]];
  const Sighting& late = call.sightings[culprit];
  CostlyCall costly;
  costly.name = mpi_name(static_cast<Collective>(late.collective), Form::blocking);
  costly.communicator = call.group->name;
  costly.call = call.call;
  costly.rank = file.header.rank;
  costly.delay_ns = arrivals.longest_ns[culprit];
  costly.begin_ns = arrivals.arrivals_ns[culprit] - costly.delay_ns;
  costly.is_first = late.number == 0 && file.gaps.empty();
  find_late(run, arrivals, culprit, costly);
  costly.waiting_ns = waiting_ns;
  costly.frames = frames_of(file, late.call_site);
  if (kept_.size() == most_costly_calls) kept_.pop_back();
  kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), waiting_ns,
                                [](double ns, const CostlyCall& other) { return ns > other.waiting_ns; }),
               std::move(costly));
}

void CostlyCalls::merge(CostlyCalls&& next) {
  std::move(next.kept_.begin(), next.kept_.end(), std::back_inserter(kept_));
  std::stable_sort(kept_.begin(), kept_.end(),
                   [](const auto& a, const auto& b) { return a.waiting_ns > b.waiting_ns; });
  kept_.resize(std::min(kept_.size(), most_costly_calls));
}

void CostlyCalls::pack(Archive& archive) {
  archive(kept_);
}

std::vector<CostlyCall> CostlyCalls::take(double begin_ns) {
  for (CostlyCall& call : kept_) call.begin_ns -= begin_ns;
  return std::move(kept_);
}

}  // namespace papaya::report
