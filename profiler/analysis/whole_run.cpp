#include "profiler/analysis/whole_run.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace papaya::report {
namespace {

struct Found {
  NodeTally tally;
  std::map<std::int32_t, WholeRun::Last> last;  // by rank
  std::map<std::int32_t, std::uint64_t> calls;  // by node
};

void add(NodeTally& sum, const NodeTally& one) {
  sum.calls += one.calls;
  sum.worst_ns += one.worst_ns;
  sum.most_ns = std::max(sum.most_ns, one.most_ns);
  sum.waiting_ns += one.waiting_ns;
}

// Sums become means.
NodeTally averaged(NodeTally tally) {
  if (tally.calls > 0) tally.worst_ns /= static_cast<double>(tally.calls);
  return tally;
}

// A call counts once for every node, and a rank is last in its own.
std::vector<WholeRun::Last> in_order(const Found& found) {
  std::vector<WholeRun::Last> all;
  for (const auto& [rank, last] : found.last) {
    all.push_back(last);
    all.back().calls = found.calls.at(last.node);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.caused_ns, a.times_last) > std::tie(b.caused_ns, b.times_last);
  });
  return all;
}

template <class Rows>
void most_waiting_first(Rows& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.tally.waiting_ns > b.tally.waiting_ns; });
}

}  // namespace

WholeRun whole_run(const Run& run, const std::function<std::string(std::uint64_t)>& name_of_communicator) {
  std::map<std::int32_t, std::size_t> file_of;  // by rank
  for (std::size_t f = 0; f < run.files.size(); ++f) file_of[run.files[f].header.rank] = f;

  WholeRun whole;
  Found of_run;
  using SiteKey = std::tuple<std::vector<Frame>, std::uint8_t>;
  std::map<SiteKey, Found> by_site;
  std::map<std::pair<std::uint8_t, std::uint8_t>, NodeTally> by_size;
  std::map<std::uint64_t, NodeTally> by_communicator;
  for (const RankFile& file : run.files) {
    whole.given_up += file.header.node_calls_given_up;
    const double ns = file.header.ns_per_tick;
    for (const trace::NodeCalls& row : file.node_calls) {
      const auto in_ns = [ns](std::uint64_t ticks) { return static_cast<double>(ticks) * ns; };
      const NodeTally tally{row.calls, in_ns(row.imbalance_ticks), in_ns(row.most_ticks), in_ns(row.caused_ticks)};
      add(by_size[{row.collective, row.size_class}], tally);
      add(by_communicator[row.communicator], tally);
      const auto its_file = file_of.find(row.rank);
      const auto charge = [&](Found& found) {
        add(found.tally, tally);
        found.calls[file.header.node] += row.calls;
        WholeRun::Last& last = found.last[row.rank];
        last.rank = row.rank;
        last.node = file.header.node;
        last.times_last += row.times_last;
        last.caused_ns += tally.waiting_ns;
      };
      charge(of_run);
      if (its_file == file_of.end() || row.call_site == 0) continue;
      const RankFile& its = run.files[its_file->second];
      if (row.call_site > its.call_sites->size()) continue;
      const SiteKey key{(*its.call_sites)[row.call_site - 1], row.collective};
      charge(by_site[key]);
    }
  }
  whole.all = averaged(of_run.tally);
  whole.last = in_order(of_run);
  for (const auto& [key, found] : by_site) {
    WholeRun::Site& site = whole.sites.emplace_back();
    for (const Frame& frame : std::get<0>(key)) site.frames.push_back(named(frame));
    site.collective = static_cast<Collective>(std::get<1>(key));
    site.tally = averaged(found.tally);
    site.last = in_order(found);
  }
  for (const auto& [key, tally] : by_size)
    whole.sizes.push_back({static_cast<Collective>(key.first), static_cast<SizeClass>(key.second), averaged(tally)});
  for (const auto& [id, tally] : by_communicator)
    whole.communicators.push_back({id, name_of_communicator(id), averaged(tally)});
  most_waiting_first(whole.sites);
  most_waiting_first(whole.sizes);
  most_waiting_first(whole.communicators);
  return whole;
}

}  // namespace papaya::report
