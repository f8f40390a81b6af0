#include "profiler/analysis/costly_calls.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/mpi_name.hpp"
#include "profiler/analysis/sites.hpp"

namespace papaya::report {

void CostlyCalls::add(const Run& run, const GroupCall& call, const Arrivals& arrivals) {
  const std::vector<double>& caused_ns = arrivals.caused_ns;
  const double waiting_ns = std::accumulate(caused_ns.begin(), caused_ns.end(), 0.0);
  if (waiting_ns <= 0 || (kept_.size() == most_costly_calls && waiting_ns <= kept_.back().waiting_ns)) return;
  const auto culprit =
      static_cast<std::size_t>(std::max_element(caused_ns.begin(), caused_ns.end()) - caused_ns.begin());
  const RankFile& file = run.files[arrivals.files[culprit]];
  const trace::Event& event = call.sightings[culprit].event;
  CostlyCall costly;
  costly.name = mpi_name(static_cast<Collective>(event.collective), Form::blocking);
  costly.communicator = call.group->name;
  costly.call = event.call;
  costly.rank = file.header.rank;
  costly.begin_ns = arrivals.arrivals_ns[arrivals.order.first];
  costly.delay_ns = arrivals.longest_ns[culprit];
  costly.waiting_ns = waiting_ns;
  costly.frames = frames_of(file, event);
  if (kept_.size() == most_costly_calls) kept_.pop_back();
  kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), waiting_ns,
                                [](double ns, const CostlyCall& other) { return ns > other.waiting_ns; }),
               std::move(costly));
}

std::vector<CostlyCall> CostlyCalls::take(double begin_ns) {
  for (CostlyCall& call : kept_) call.begin_ns -= begin_ns;
  return std::move(kept_);
}

}  // namespace papaya::report
