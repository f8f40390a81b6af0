// Waiting by what it is for, and what Scalasca calls that.
#include <fmt/format.h>

#include "profiler/read/units.hpp"
#include "profiler/report/text/layout.hpp"
#include "profiler/report/text/sections.hpp"

namespace papaya::report {

std::string waits_text(const Analysis& analysis) {
  Table table(fmt::format("What ranks wait for (in the calls compared, summed over ranks; beside it the pattern of "
                          "Scalasca; late exits: after a call's first exit, part of the excess{})",
                          between_nodes_text(analysis)),
              2, {"waiting", "Scalasca", "time", "of all waiting ", "most on rank", "there"});
  const auto add = [&](std::string what, std::string_view scalasca, double ns, std::string share, std::string rank,
                       std::string most) {
    table.add(
        {std::move(what), std::string(scalasca), time_text(ns), std::move(share), std::move(rank), std::move(most)});
  };
  for (std::size_t kind = 0; kind < wait_kind_count; ++kind) {
    const WaitFigures& figures = analysis.waits[kind];
    if (figures.ns > 0)
      add(std::string(wait_names[kind].text), wait_names[kind].scalasca, figures.ns,
          share_bar(share_of(figures.ns, analysis.waiting_ns)), fmt::format("{}", figures.most_rank),
          time_text(figures.most_ns));
  }
  for (std::size_t kind = 0; kind < wait_kind_count; ++kind)
    if (const WaitFigures& figures = analysis.waits[kind]; figures.late_exit_ns > 0)
      add(kind == index_of(WaitKind::barrier) ? "(late exits, from a barrier)" : "(late exits)",
          wait_names[kind].late_exit, figures.late_exit_ns, "", "", "");
  return table.empty() ? std::string() : table.text();
}

}  // namespace papaya::report
