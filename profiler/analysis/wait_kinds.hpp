// What ranks wait for in blocking collectives, and what Scalasca calls that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profiler/record/waits.hpp"

namespace papaya::report {

enum class WaitKind : std::uint8_t { all, barrier, root, as_root, lower_ranks };

struct WaitName {
  std::string_view text;
  std::string_view field;      // of report.json
  std::string_view scalasca;   // the pattern that has this waiting,
  std::string_view late_exit;  // and that of late exits; empty: there is none
};
// In the order of WaitKind.
inline constexpr auto wait_names = std::to_array<WaitName>({
    {"for all ranks", "all", "Wait at N x N", "N x N Completion"},
    {"for all ranks, in a barrier", "barrier", "Wait at Barrier", "Barrier Completion"},
    {"for the root", "root", "Late Broadcast", ""},
    {"as the root, for the others", "as_root", "Early Reduce", ""},
    {"for lower ranks", "lower_ranks", "Early Scan", ""},
});
inline constexpr std::size_t wait_kind_count = wait_names.size();

constexpr WaitKind wait_kind_of(Collective collective) {
  switch (need_of(collective)) {
    case Need::root:
      return WaitKind::root;
    case Need::root_needs_all:
      return WaitKind::as_root;
    case Need::lower_ranks:
      return WaitKind::lower_ranks;
    case Need::all:
      break;
  }
  return collective == Collective::barrier ? WaitKind::barrier : WaitKind::all;
}
constexpr std::size_t index_of(WaitKind kind) {
  return static_cast<std::size_t>(kind);
}

// Of one kind, in the calls compared.
struct WaitFigures {
  double ns = 0;  // summed over ranks
  std::int32_t most_rank = 0;
  double most_ns = 0;  // of that rank
  double late_exit_ns =
      0;  // from a call's first exit to each rank's own: the part of the excess in which some have left
};

}  // namespace papaya::report
