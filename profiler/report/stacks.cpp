#include "profiler/report/stacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace papaya::report {
namespace {

constexpr std::size_t brief_groups = 8;
constexpr std::size_t brief_frames = 3;

// MPI_Recv of what MPI libraries and papaya call its function; empty for others.
std::string_view mpi_function(std::string_view function) {
  if (function.starts_with("papaya_")) function.remove_prefix(7);
  if (function.starts_with("PMPI_")) function.remove_prefix(1);
  return function.starts_with("MPI_") ? function : std::string_view();
}

std::string_view file_name(const NamedFrame& frame) {
  return std::string_view(frame.module).substr(frame.module.find_last_of('/') + 1);
}

bool is_in_mpi(const NamedFrame& frame) {
  return frame.python.empty() && (file_name(frame).starts_with("libpapaya") || !mpi_function(frame.function).empty());
}

bool is_in_libc(const NamedFrame& frame) {
  return frame.python.empty() && file_name(frame).starts_with("libc.so.");
}

// A module for Python that binds MPI; by libffi Python's ctypes calls.
bool passes_on(const NamedFrame& frame) {
  return frame.python.empty() && (frame.module.find(".cpython-") != frame.module.npos ||
                                  frame.module.ends_with(".abi3.so") || file_name(frame).starts_with("libffi.so."));
}

// The program's functions, and first of all the function of MPI or the C library that it has called: where in there
// differs from moment to moment.
std::vector<std::string> lines_of(std::span<const NamedFrame> frames) {
  std::vector<std::string> lines;
  std::size_t first = 0;
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (is_in_mpi(frames[i])) first = i + 1;
  const bool is_in_call = first > 0;
  if (is_in_call) {
    std::string_view name = "MPI";
    for (std::size_t i = first; i > 0 && name == "MPI"; --i)
      if (const std::string_view found = mpi_function(frames[i - 1].function); !found.empty()) name = found;
    lines.emplace_back(name);
  } else {
    while (first + 1 < frames.size() && is_in_libc(frames[first]) && is_in_libc(frames[first + 1])) ++first;
  }
  for (const NamedFrame& frame : frames.subspan(first)) {
    if (is_in_call && passes_on(frame)) continue;
    lines.push_back(frame_text(frame));
    if (frame.function == "main" && frame.python.empty()) break;  // by whom it is called is the system's matter
  }
  return lines;
}

std::string reason_of(const Stack& stack) {
  switch (stack.state) {
    case trace::StackState::taken:
      return stack.frames.empty() ? "no frame of it is known" : "";
    case trace::StackState::blocked:
      return fmt::format("waits in {}, which a signal would end early: the stack was not taken",
                         stack.frames.empty() ? "a system call" : frame_text(stack.frames.front()));
    case trace::StackState::masked:
      return "takes no signals: no stack";
    case trace::StackState::no_signal:
      return "takes all real-time signals itself: no stack";
    case trace::StackState::silent:
      break;
  }
  return "has not answered a signal: no stack";
}

std::string reason_of(const AskedRank& rank) {
  if (rank.stacks.has_ended) return "has come to MPI_Finalize: no stack";
  if (rank.is_stopped) return "its process is stopped: no stack";
  if (rank.stacks.process != 0 && !rank.stacks.answers) return "gives no stacks (PAPAYA_STACKS)";
  if (!rank.is_sent) return "cannot be asked from here: no stack";
  return "has not answered: no stack";
}

std::string brief_text(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), brief_frames); ++i) text += (i == 0 ? "" : " < ") + lines[i];
  return lines.size() > brief_frames ? text + " < ..." : text;
}

std::string who(const StackGroups::Of& one) {
  return fmt::format("{} {}{}", one.count == 1 ? "rank" : "ranks", to_text(one.ranks),
                     one.group.is_first ? "" : ", another thread");
}

}  // namespace

void StackGroups::add(AskedRank rank, const std::function<void(NamedFrame&)>& name) {
  nodes_of_job_ = std::max(nodes_of_job_, rank.stacks.nodes);
  hosts_[rank.stacks.node] = rank.stacks.host;
  if (!rank.has_answered) {
    groups_[{reason_of(rank), {}, true}].push_back(rank.stacks.rank);
    return;
  }
  for (Stack& stack : rank.stacks.threads) {
    for (NamedFrame& frame : stack.frames)
      if (frame.python.empty()) name(frame);
    StackGroup group{reason_of(stack), {}, stack.is_first};
    if (group.reason.empty()) group.lines = lines_of(stack.frames);
    groups_[std::move(group)].push_back(rank.stacks.rank);
  }
}

std::vector<StackGroups::Of> StackGroups::sorted() const {
  std::vector<Of> all;
  for (const auto& [group, members] : groups_) {
    std::vector<std::int32_t> once = members;
    std::sort(once.begin(), once.end());
    once.erase(std::unique(once.begin(), once.end()), once.end());
    all.push_back({group, to_ranges(once), once.size()});
  }
  std::stable_sort(all.begin(), all.end(), [](const Of& a, const Of& b) {
    return a.count != b.count ? a.count < b.count : a.ranks.front().first < b.ranks.front().first;
  });
  return all;
}

// Of which nodes, where others are not known.
std::string StackGroups::ranks_in_words() const {
  if (static_cast<std::int32_t>(hosts_.size()) >= nodes_of_job_) return "the ranks";
  std::vector<std::int32_t> nodes;
  for (const auto& [node, host] : hosts_) nodes.push_back(node);
  return fmt::format("the ranks of {} {} of {}{}", nodes.size() == 1 ? "node" : "nodes", to_text(to_ranges(nodes)),
                     nodes_of_job_, nodes.size() == 1 ? fmt::format(" ({})", hosts_.begin()->second) : "");
}

std::string StackGroups::whole() const {
  if (groups_.empty()) return {};
  std::string text =
      fmt::format("Call stacks of {}, innermost function first, alike ones together:\n", ranks_in_words());
  for (const Of& one : sorted()) {
    text += fmt::format("  {}:{}\n", who(one), one.group.reason.empty() ? "" : " " + one.group.reason + ".");
    for (const std::string& line : one.group.lines) text += fmt::format("    {}\n", line);
  }
  return text;
}

std::string StackGroups::brief() const {
  if (groups_.empty()) return {};
  const std::vector<Of> all = sorted();
  std::string text = fmt::format("Where {} are:\n", ranks_in_words());
  for (const Of& one : std::span(all).first(std::min(all.size(), brief_groups)))
    text += fmt::format("  {}: {}\n", who(one),
                        one.group.reason.empty() ? brief_text(one.group.lines) : one.group.reason + ".");
  if (all.size() > brief_groups) text += fmt::format("  and {} more groups.\n", all.size() - brief_groups);
  return text;
}

}  // namespace papaya::report
