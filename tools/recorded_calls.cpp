#include "tools/recorded_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ostream>
#include <utility>
#include <vector>

#include "profiler/analysis/communicator_names.hpp"

namespace papaya {

template <class Body>
void RecordedCalls::for_each(Body&& body) const {
  report::Groups groups(run_);
  report::CallStream(run_, clocks_, groups).read({}, [&](const report::GroupCall& call) {
    const std::uint8_t collective = call.sightings.front().collective;
    if (call.match == report::Match::complete &&
        (wanted_ == nullptr || collective == static_cast<std::uint8_t>(*wanted_)))
      body(call);
  });
}

RecordedCalls::OnOne RecordedCalls::find(const std::string& communicator, std::size_t ranks) const {
  std::map<std::uint64_t, std::string> names = report::communicator_names(run_);
  std::map<std::uint64_t, OnOne> all;
  for_each([&](const report::GroupCall& call) {
    OnOne& one = all[call.group->id];
    std::uint64_t bytes = 0;
    for (const report::Sighting& sighting : call.sightings) bytes = std::max(bytes, sighting.bytes);
    OnOne::Size& size = one.sizes[std::bit_floor(bytes)];
    ++size.calls;
    size.largest_bytes = std::max(size.largest_bytes, bytes);
    if (one.calls++ > 0) return;
    one.communicator = call.group->id;
    one.name = names[call.group->id];
    one.ranks = call.sightings.size();
    one.collective = static_cast<Collective>(call.sightings.front().collective);
  });
  OnOne most;
  for (auto& [id, one] : all)
    if ((communicator.empty() || communicator == one.name || communicator == fmt::format("{:#x}", id)) &&
        (ranks == 0 || ranks == one.ranks) && one.calls > most.calls)
      most = std::move(one);
  return most;
}

void RecordedCalls::write(std::ostream& out, const OnOne& calls, std::uint64_t every) const {
  std::vector<std::pair<std::uint32_t, double>> arrivals;  // by rank of the job
  std::uint64_t number = 0;
  for_each([&](const report::GroupCall& call) {
    if (call.group->id != calls.communicator || number++ % every != 0) return;
    arrivals.clear();
    double first_ns = call.sightings.front().arrival_ns;
    for (const report::Sighting& sighting : call.sightings) {
      arrivals.emplace_back(sighting.file, sighting.arrival_ns);
      first_ns = std::min(first_ns, sighting.arrival_ns);
    }
    std::sort(arrivals.begin(), arrivals.end());
    const char* separator = "";
    for (const auto& [file, arrival_ns] : arrivals) {
      out << fmt::format("{}{:.3f}", separator, (arrival_ns - first_ns) / 1e3);
      separator = " ";
    }
    out << "\n";
  });
}

}  // namespace papaya
