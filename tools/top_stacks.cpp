#include "tools/top_stacks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "profiler/record/stack_requests.hpp"
#include "tools/symbols.hpp"

namespace papaya {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 20ms;

std::string record_of(const report::Run& run, const report::RankFile& file) {
  return run.folder + "/" + file.name;
}

}  // namespace

report::StackGroups asked_stacks(const report::Run& run) {
  StackRequests requests(run.folder);
  std::vector<const report::RankFile*> asked;
  for (const report::RankFile& file : run.files) {
    const std::string record = record_of(run, file);
    if (is_near(file.header.process, file.name))
      requests.add_near(record);
    else if (!requests.add_far(record))
      continue;
    asked.push_back(&file);
  }
  requests.send();
  for (auto waited = 0ms; !requests.are_over(waited); waited += between_looks)
    std::this_thread::sleep_for(between_looks);
  Symbols symbols;
  report::StackGroups groups;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    report::AskedRank rank{report::read_stacks(record_of(run, *asked[i])), requests.is_sent(i),
                           requests.is_answered(i)};
    if (!rank.has_answered) rank.is_stopped = is_stopped(rank.stacks.process, asked[i]->name);
    groups.add(std::move(rank), [&](report::NamedFrame& frame) { symbols.name(frame); });
  }
  return groups;
}

report::StackGroups left_stacks(const report::Run& run, const report::LiveView& view) {
  report::StackGroups groups;
  std::int64_t since_unix_ns = 0;
  for (const report::PendingCall& call : view.pending)
    if (!call.not_arrived.empty() && (since_unix_ns == 0 || call.since_unix_ns < since_unix_ns))
      since_unix_ns = call.since_unix_ns;
  if (since_unix_ns == 0) return groups;
  Symbols symbols;
  for (const report::RankFile& file : run.files) {
    if (file.header.stacks_ticks == 0) continue;
    report::AskedRank rank{report::read_stacks(record_of(run, file)), true, true};
    if (rank.stacks.taken_unix_ns >= since_unix_ns)
      groups.add(std::move(rank), [&](report::NamedFrame& frame) { symbols.name(frame); });
  }
  return groups;
}

}  // namespace papaya
