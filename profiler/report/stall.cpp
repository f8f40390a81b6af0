// What a running job's ranks wait for.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "profiler/read/units.hpp"
#include "profiler/report/notes.hpp"
#include "profiler/report/report.hpp"

namespace papaya::report {
namespace {

double seconds_since(std::int64_t unix_ns, std::int64_t now_unix_ns) {
  return std::max(0.0, static_cast<double>(now_unix_ns - unix_ns) / 1e9);
}

std::string site_text(const std::vector<NamedFrame>& call_site) {
  return call_site.empty() ? std::string() : ", at " + call_site_text(call_site);
}

std::string text_of(const LastSign& sign, std::int64_t now_unix_ns) {
  if (sign.name.empty()) return fmt::format("  rank {} has called no collective yet.\n", sign.rank);
  return fmt::format("  rank {} {} {}, call {} on {}{}, {:.0f} s ago.\n", sign.rank,
                     sign.inside ? "entered" : "last left", sign.name, sign.call, sign.communicator,
                     site_text(sign.call_site), seconds_since(sign.unix_ns, now_unix_ns));
}

std::uint64_t count_of(const std::vector<RankRange>& ranges) {
  std::uint64_t count = 0;
  for (const auto& [first, last] : ranges) count += static_cast<std::uint64_t>(last - first) + 1;
  return count;
}

std::string text_of(const PendingCall& call, std::int64_t now_unix_ns) {
  const std::uint64_t inside = count_of(call.inside);
  const std::uint64_t missing = count_of(call.not_arrived) + call.unknown_not_arrived;
  const bool agree = call.conflict.empty();  // else one name and one call site for all would be wrong
  std::string text =
      fmt::format("{}all {} on {}: {} of {} ranks wait, for {:.0f} s ({}{}).\n", agree ? call.name + ", c" : "C",
                  call.call, call.communicator, inside, call.ranks, seconds_since(call.since_unix_ns, now_unix_ns),
                  ranks_text(call.inside), agree ? site_text(call.call_site) : "");
  if (!call.conflict.empty()) text += fmt::format("  The ranks disagree about the collective: {}.\n", call.conflict);
  if (!call.not_arrived.empty()) text += fmt::format("  Missing: {}.\n", ranks_text(call.not_arrived));
  if (call.unknown_not_arrived > 0)
    text += fmt::format("  Missing: {} ranks that have not used this communicator yet.\n", call.unknown_not_arrived);
  for (const LastSign& sign : call.last_signs) text += text_of(sign, now_unix_ns);
  if (count_of(call.not_arrived) > call.last_signs.size())
    text += fmt::format("  and {} more.\n", count_of(call.not_arrived) - call.last_signs.size());
  if (call.unread_ranks) text += "  The records of some ranks are not in this folder: their state is unknown.\n";
  if (missing == 0 && call.conflict.empty() && !call.unread_ranks)
    text += inside == static_cast<std::uint64_t>(call.ranks)
                ? "  All its ranks are there.\n"
                : "  All its ranks have arrived, and the others have left.\n";
  return text;
}

}  // namespace

std::string stall_headline(const PendingCall& call) {
  const std::uint64_t missing = count_of(call.not_arrived) + call.unknown_not_arrived;
  std::string why = "all its ranks are there";
  if (!call.conflict.empty())
    why = "the ranks disagree about the collective";
  else if (missing > 0 && call.unknown_not_arrived == 0)
    why = fmt::format("{} {} missing", ranks_text(call.not_arrived), missing == 1 ? "is" : "are");
  else if (missing > 0 || call.unread_ranks)
    why = fmt::format("{} of {} ranks wait", count_of(call.inside), call.ranks);
  return fmt::format("{}, call {} on {}: {}", call.name, call.call, call.communicator, why);
}

std::string stall_text(const Analysis& analysis, std::int64_t now_unix_ns, double at_least_s) {
  std::vector<const PendingCall*> calls;
  for (const PendingCall& call : analysis.pending)
    if (seconds_since(call.since_unix_ns, now_unix_ns) >= at_least_s) calls.push_back(&call);
  std::sort(calls.begin(), calls.end(),
            [](const PendingCall* a, const PendingCall* b) { return a->since_unix_ns < b->since_unix_ns; });
  std::string text;
  for (const PendingCall* call : calls) text += text_of(*call, now_unix_ns);
  return text;
}

}  // namespace papaya::report
