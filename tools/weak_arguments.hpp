// What a timeline says of a call of a weakly consistent collective.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "profiler/record/weak_format.hpp"

namespace papaya {

// As texts; empty: not known, or there is none.
struct WeakPlaces {
  std::string from;
  std::string ended;
  std::string phase;
};

// Between its start and its end the rank did something else, whose slices lie across this one. `span_ns`: from start to
// end.
inline bool is_in_parts(const trace::WeakEvent& event, double span_ns) {
  constexpr double own_work_ns = 1e4;
  return event.exit_ticks != 0 && span_ns > static_cast<double>(event.inside_ns) + own_work_ns;
}

// The arguments of its slice.
nlohmann::ordered_json weak_arguments(const trace::WeakRow& row, const trace::WeakEvent& event,
                                      const WeakPlaces& places);

}  // namespace papaya
