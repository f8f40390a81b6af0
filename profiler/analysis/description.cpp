#include "profiler/analysis/description.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "profiler/analysis/totals.hpp"

namespace papaya::report {

void describe_run(const Run& run, Analysis& out) {
  out.folder = run.folder;
  out.settings = run.settings;
  out.ranks = run.ranks;
  out.nodes = run.nodes;
  out.ranks_read = run.files.size();
  out.usable = !run.files.empty();
  out.partial = !run.problems.empty() || !run.missing.empty();
  RecordFacts& facts = out.record;
  for (const Problem& problem : run.problems) {
    out.other_version = out.other_version || problem.trouble == Trouble::other_version;
    facts.problems.push_back(problem.sentence);
  }
  facts.missing = run.missing;
  facts.missing_ranks = run.missing_ranks;
  facts.unwanted_ranks = run.unwanted_ranks;
  if (!out.usable) return;
  const HeaderTexts& texts = *run.files.front().texts;
  out.program = clean_text(texts.program);
  out.command = clean_text(texts.command);
  out.mpi = clean_text(texts.mpi);
  out.papaya_version = clean_text(texts.papaya_version);

  std::map<std::int32_t, std::vector<std::int32_t>> ranks_of_node;
  std::map<std::int32_t, std::string> hosts;
  std::vector<std::int32_t> running;
  out.finalized = true;
  for (const RankFile& file : run.files) {
    ranks_of_node[file.header.node].push_back(file.header.rank);
    hosts.try_emplace(file.header.node, clean_text(file.header.host));
    const auto ending = static_cast<trace::Ending>(file.header.ending);
    if (ending != trace::Ending::finalized) out.finalized = false;
    if (ending == trace::Ending::running) running.push_back(file.header.rank);
    if (ending == trace::Ending::aborted) facts.aborts.push_back({file.header.rank, file.header.abort_code});
    out.is_overwritten = out.is_overwritten || file.overwritten_events > 0;
    out.events_begun += file.header.event_count;
    out.unrecorded_calls += file.header.unrecorded_calls;
  }
  for (const auto& [node, ranks] : ranks_of_node) out.node_figures.push_back({node, hosts[node], to_ranges(ranks)});
  count_cores(run, out);
  facts.running = to_ranges(running);
  facts.is_all_running = running.size() == run.files.size();
  out.partial = out.partial || !out.finalized;
}

void describe_clocks(const Clocks& clocks, Analysis& out) {
  for (const NodeClock& clock : clocks.of_nodes()) {
    out.clock_measured = out.clock_measured && clock.measured;
    out.clock_bound_ns = std::max(out.clock_bound_ns, clock.bound_ns);
    out.record.clocks_compared_twice = out.record.clocks_compared_twice && clock.measured_twice;
  }
  out.begin_unix_ns = clocks.base_unix_ns();
  if (clocks.of_nodes().size() < 2) out.clock_measured = out.record.clocks_compared_twice = true;
}

}  // namespace papaya::report
