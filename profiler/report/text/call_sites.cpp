// Call sites, phases, and what Horovod makes its calls for.
#include <fmt/format.h>

#include <algorithm>

#include "profiler/analysis/horovod.hpp"
#include "profiler/read/units.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_stragglers = 4;

// ", rank 3" or ", each of 12 communicators has its own: rank 1, rank 5, rank 9, rank 13 and 8 more"
std::string stragglers_text(const SitePattern& pattern) {
  const std::vector<std::int32_t> ranks = pattern.straggling_ranks();
  if (ranks.empty()) return {};
  if (ranks.size() == 1) return fmt::format(", rank {}", ranks.front());
  const std::size_t communicators = pattern.stragglers.size();
  const std::size_t named = std::min(ranks.size(), most_stragglers);
  std::string text = ranks.size() == communicators
                         ? fmt::format(", each of {} communicators has its own: ", count_text(communicators))
                         : fmt::format(", {} ranks, by communicator: ", count_text(ranks.size()));
  for (std::size_t i = 0; i < named; ++i) text += fmt::format("{}rank {}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > named) text += fmt::format(" and {} more", count_text(ranks.size() - named));
  return text;
}

// "persistent straggler, rank 3 (predictability 0.97)"
std::string pattern_text(const CallSiteFigures& site) {
  const SitePattern& pattern = site.pattern;
  std::string text = fmt::format("arrivals: {}", site.compared == 0 ? "not compared" : text_of(pattern.pattern));
  text += stragglers_text(pattern);
  if (pattern.predictability)
    text += fmt::format(" (predictability {:.2f}, of {} imbalanced calls)", *pattern.predictability,
                        count_text(pattern.imbalanced));
  return text;
}

}  // namespace

std::string call_sites_text(const Analysis& analysis) {
  Table table(
      fmt::format("Call sites (calls and waiting summed over ranks, worst-case as above, as far as the record goes{})",
                  between_nodes_text(analysis)),
      1, {"call", "calls", "worst-case", "waiting", "of all waiting", "most often last"});
  std::size_t listed = 0;
  for (const CallSiteFigures& site : analysis.call_sites) {
    if (site.form != Form::blocking || listed == most_call_sites_listed) continue;
    ++listed;
    const HorovodUse use = horovod_use(site);
    const double calls = static_cast<double>(site.compared);
    table.add(
        {site.name, count_text(site.calls), site.compared > 0 ? time_text(site.worst_ns) : "-",
         site.compared > 0 ? time_text(site.waiting_ns) : "-",
         share_bar(share_of(site.waiting_ns, analysis.waiting_ns)),
         site.last.empty() ? "-"
                           : fmt::format("rank {}, {}", site.last.front().rank,
                                         share_text(share_of(static_cast<double>(site.last.front().times), calls)))},
        {(use == HorovodUse::none ? "" : fmt::format("Horovod {}: ", name_of(use))) + call_site_text(site.frames),
         pattern_text(site)});
  }
  if (table.empty()) return {};
  std::string page = table.text();
  const auto all =
      static_cast<std::size_t>(std::count_if(analysis.call_sites.begin(), analysis.call_sites.end(),
                                             [](const auto& site) { return site.form == Form::blocking; }));
  if (all > listed) page += fmt::format("  and {} more, in report.json\n", all - listed);
  return page;
}

std::string phases_text(const Analysis& analysis) {
  Table table(fmt::format("Phases of the program (calls, time and waiting summed over ranks, worst-case as above; as "
                          "far as the record goes back{})",
                          between_nodes_text(analysis)),
              1, {"phase", "calls", "time", "worst-case", "waiting", "of all waiting", "excess"});
  for (const PhaseFigures& phase : analysis.phases)
    table.add({phase.name.empty() ? "(none)" : phase.name, count_text(phase.calls), time_text(phase.ns),
               phase.compared > 0 ? time_text(phase.worst_ns) : "-",
               phase.compared > 0 ? time_text(phase.waiting_ns) : "-",
               share_bar(share_of(phase.waiting_ns, analysis.waiting_ns)),
               phase.compared > 0 ? time_text(phase.excess_ns) : "-"});
  return table.empty() ? std::string() : table.text();
}

// What Horovod makes its calls for.
std::string horovod_text(const Analysis& analysis) {
  if (analysis.horovod_library.empty()) return {};
  Table table(
      fmt::format(
          "Horovod ({} of each rank calls MPI, from {}; calls, time and waiting summed over ranks, as far as the "
          "record goes back)",
          analysis.horovod_threads, analysis.horovod_library),
      1, {"what for", "calls", "bytes", "per call", "time", "waiting", "of all waiting"});
  for (const HorovodUse use : horovod_uses) {
    CallSiteFigures sum;
    for (const CallSiteFigures& site : analysis.call_sites) {
      if (horovod_use(site) != use) continue;
      sum.calls += site.calls;
      sum.bytes += site.bytes;
      sum.ns += site.ns;
      sum.waiting_ns += site.waiting_ns;
    }
    if (sum.calls == 0) continue;
    const auto bytes = static_cast<double>(sum.bytes);
    table.add({std::string(text_of(use)), count_text(sum.calls), bytes_text(bytes),
               bytes_text(bytes / static_cast<double>(sum.calls)), time_text(sum.ns), time_text(sum.waiting_ns),
               share_bar(share_of(sum.waiting_ns, analysis.waiting_ns))});
  }
  return table.text();
}

}  // namespace papaya::report
