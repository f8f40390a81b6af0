#include "tools/weak_arguments.hpp"

#include <algorithm>

#include "profiler/analysis/weak.hpp"

namespace papaya {

nlohmann::ordered_json weak_arguments(const trace::WeakRow& row, const trace::WeakEvent& event,
                                      const WeakPlaces& places) {
  nlohmann::ordered_json arguments = {{"communicator", report::weak_communicator(row)},
                                      {"bytes", event.bytes},
                                      {"algorithm", report::clean_text(row.algorithm)},
                                      {"parameters", report::clean_text(row.parameters)},
                                      {"clock", event.clock}};
  if (row.root >= 0) arguments["root"] = row.root;
  if (!places.from.empty()) arguments["from"] = places.from;
  if (!places.ended.empty()) arguments["waited for at"] = places.ended;
  if (!places.phase.empty()) arguments["phase"] = places.phase;
  if (event.exit_ticks == 0) {
    arguments["never left"] = true;
    return arguments;
  }
  if (event.oldest > 0) arguments["staleness"] = event.clock - std::min(event.clock, event.oldest);
  arguments.update({{"own", event.own},
                    {"ranks", event.ranks},
                    {"share", event.share},
                    {"waited us", static_cast<double>(event.waited_ns) / 1e3}});
  return arguments;
}

}  // namespace papaya
