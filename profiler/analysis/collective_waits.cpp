#include "profiler/analysis/collective_waits.hpp"

#include <algorithm>

namespace papaya::report {
namespace {

constexpr std::size_t most_waits = 16;

}  // namespace

CollectiveWaits::CollectiveWaits(const Run& run) : ranks_(run.files.size()) {
  for (std::size_t f = 0; f < ranks_.size(); ++f) {
    const auto& communicators = run.files[f].communicators;
    ranks_[f].is_in_several =
        std::count_if(communicators.begin(), communicators.end(), [](const auto& one) { return one.size > 1; }) > 1;
  }
}

void CollectiveWaits::come_to(const GroupCall& call, const Sighting& sighting) {
  OfRank& rank = ranks_[sighting.file];
  rank.first = std::min<std::uint64_t>(rank.first, sighting.number);
  if (rank.group == call.group_number) return;
  rank.group = call.group_number;
  rank.on_it = 0;
}

void CollectiveWaits::add(const Sighting& sighting, const Beginning& wait) {
  OfRank& rank = ranks_[sighting.file];
  if (!rank.is_in_several) return;
  const auto since_other = rank.waits.end() - static_cast<std::ptrdiff_t>(rank.on_it);
  const auto same = std::find_if(since_other, rank.waits.end(), [&](const Wait& other) {
    return other.of.file == wait.file && other.of.site == wait.site;
  });
  if (same != rank.waits.end()) {
    same->number = sighting.number;
    same->of.ns += wait.ns;
    return;
  }
  if (rank.waits.size() == most_waits) {
    rank.known_from = std::max(rank.known_from, rank.waits.front().number + 1);
    rank.waits.erase(rank.waits.begin());
  }
  rank.waits.push_back({sighting.number, wait});
  rank.on_it = std::min(rank.on_it + 1, most_waits);
}

bool CollectiveWaits::since_call_before(const Sighting& sighting, std::vector<Beginning>& found) const {
  const OfRank& rank = ranks_[sighting.file];
  if (!rank.is_in_several) return true;
  // 0: since the run began.
  const std::uint64_t since = sighting.number - std::min(sighting.number, sighting.events_since);
  if (since < rank.known_from || (since > 0 && since <= rank.first)) return false;
  for (const Wait& wait : rank.waits)
    if (wait.number >= since) found.push_back(wait.of);
  return true;
}

}  // namespace papaya::report
