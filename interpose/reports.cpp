#include "interpose/reports.hpp"

#include <fmt/format.h>

#include <utility>

#include "interpose/function_names.hpp"
#include "profiler/record/stack_request.hpp"
#include "profiler/report/report.hpp"
#include "profiler/report/stacks.hpp"

namespace papaya::reports {
namespace {

void name_frame(FunctionNames& names, report::NamedFrame& frame) {
  if (frame.module.empty() || !frame.python.empty()) return;
  FunctionName name = names.at(frame.module, frame.offset);
  frame.function = std::move(name.function);
  frame.file = std::move(name.file);
  frame.line = name.line;
}

void name_call_sites(FunctionNames& names, report::PendingCall& call) {
  for (report::NamedFrame& frame : call.call_site) name_frame(names, frame);
  for (report::LastSign& sign : call.last_signs)
    for (report::NamedFrame& frame : sign.call_site) name_frame(names, frame);
}

}  // namespace

bool write(const std::string& folder, const std::string& name, std::string& one_line_error,
           report::Readers* readers) noexcept {
  return report::write_reports(folder, name, &one_line_error, readers);
}

void help(const std::string& folder, report::Readers& readers) noexcept {
  report::help_to_write_reports(folder, readers);
}

Stall find_stall(const std::string& folder, std::int64_t now_unix_ns, double at_least_s) {
  report::Analysis analysis = report::analyse(report::load_run(folder, {}, report::Extent::latest));
  FunctionNames names;
  for (report::PendingCall& call : analysis.pending) name_call_sites(names, call);
  Stall stall;
  stall.text = report::stall_text(analysis, now_unix_ns, at_least_s);
  const report::PendingCall* first = nullptr;
  for (const report::PendingCall& call : analysis.pending)
    if (first == nullptr || call.since_unix_ns < first->since_unix_ns) first = &call;
  if (first == nullptr) return stall;
  stall.headline = report::stall_headline(*first);
  stall.file_name = fmt::format("stall-{}-{:06x}-{}.txt", first->name, first->communicator_id & 0xffffff, first->call);
  return stall;
}

Stacks find_stacks(const std::vector<AskedRank>& ranks) {
  FunctionNames names;
  report::StackGroups groups;
  for (const AskedRank& rank : ranks) {
    report::AskedRank one{report::read_stacks(rank.record), rank.is_sent, rank.has_answered};
    if (!rank.has_answered)
      one.is_stopped = is_stopped(one.stacks.process, rank.record.substr(rank.record.find_last_of('/') + 1));
    one.stacks.rank = rank.rank;
    groups.add(std::move(one), [&](report::NamedFrame& frame) { name_frame(names, frame); });
  }
  return {groups.whole(), groups.brief()};
}

}  // namespace papaya::reports
