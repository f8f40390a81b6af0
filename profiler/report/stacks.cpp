#include "profiler/report/stacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
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

bool is_in_mpi(const NamedFrame& frame) {
  const std::string_view module = std::string_view(frame.module).substr(frame.module.find_last_of('/') + 1);
  return frame.python.empty() && (module.starts_with("libpapaya") || !mpi_function(frame.function).empty());
}

// A module for Python that binds MPI.
bool passes_on(const NamedFrame& frame) {
  return frame.python.empty() &&
         (frame.module.find(".cpython-") != frame.module.npos || frame.module.ends_with(".abi3.so"));
}

// The program's functions, and first of all MPI's function if it is inside one: where in there differs from moment to
// moment.
std::vector<std::string> lines_of(std::span<const NamedFrame> frames) {
  std::vector<std::string> lines;
  std::size_t first = 0;
  for (std::size_t i = 0; i < frames.size(); ++i)
    if (is_in_mpi(frames[i])) first = i + 1;
  if (first > 0) {
    std::string_view name = "MPI";
    for (std::size_t i = first; i > 0 && name == "MPI"; --i)
      if (const std::string_view found = mpi_function(frames[i - 1].function); !found.empty()) name = found;
    lines.emplace_back(name);
  }
  for (const NamedFrame& frame : frames.subspan(first)) {
    if (first > 0 && passes_on(frame)) continue;
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
  return "has not answered: no stack";
}

struct Group {
  std::string reason;  // why there is no stack; empty: there is
  std::vector<std::string> lines;
  bool is_first;  // of the processes' first threads
  auto operator<=>(const Group&) const = default;
};

std::string brief_text(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), brief_frames); ++i) text += (i == 0 ? "" : " < ") + lines[i];
  return lines.size() > brief_frames ? text + " < ..." : text;
}

}  // namespace

StackTexts stack_texts(std::vector<AskedRank> ranks, const std::function<void(NamedFrame&)>& name) {
  std::map<Group, std::vector<std::int32_t>> groups;
  std::sort(ranks.begin(), ranks.end(),
            [](const AskedRank& a, const AskedRank& b) { return a.stacks.rank < b.stacks.rank; });
  for (AskedRank& rank : ranks) {
    if (!rank.has_answered) {
      groups[{reason_of(rank), {}, true}].push_back(rank.stacks.rank);
      continue;
    }
    for (Stack& stack : rank.stacks.threads) {
      for (NamedFrame& frame : stack.frames)
        if (frame.python.empty()) name(frame);
      Group group{reason_of(stack), {}, stack.is_first};
      if (group.reason.empty()) group.lines = lines_of(stack.frames);
      groups[std::move(group)].push_back(rank.stacks.rank);
    }
  }
  // What few do is what one looks for.
  std::vector<std::pair<const Group*, const std::vector<std::int32_t>*>> sorted;
  for (const auto& [group, members] : groups) sorted.emplace_back(&group, &members);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second->size() != b.second->size() ? a.second->size() < b.second->size() : *a.second < *b.second;
  });
  StackTexts texts;
  if (sorted.empty()) return texts;
  texts.whole = "Call stacks on this node, innermost function first, ranks that are alike together:\n";
  texts.brief = "Where the ranks of this node are:\n";
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [group, members] = sorted[i];
    std::vector<std::int32_t> once = *members;
    once.erase(std::unique(once.begin(), once.end()), once.end());
    const std::string who = fmt::format("{} {}{}", once.size() == 1 ? "rank" : "ranks", to_text(to_ranges(once)),
                                        group->is_first ? "" : ", another thread");
    texts.whole += fmt::format("  {}:{}\n", who, group->reason.empty() ? "" : " " + group->reason + ".");
    for (const std::string& line : group->lines) texts.whole += fmt::format("    {}\n", line);
    if (i < brief_groups)
      texts.brief +=
          fmt::format("  {}: {}\n", who, group->reason.empty() ? brief_text(group->lines) : group->reason + ".");
  }
  if (sorted.size() > brief_groups) texts.brief += fmt::format("  and {} more groups.\n", sorted.size() - brief_groups);
  return texts;
}

}  // namespace papaya::report
