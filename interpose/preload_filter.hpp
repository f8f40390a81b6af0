// Whether papaya is for the program of this process (base/program_filter.hpp).
#pragma once

namespace papaya::preload {

// True if PAPAYA_INCLUDE or PAPAYA_EXCLUDE leaves it out: this process stands aside then. A PAPAYA_INCLUDE that is no
// expression leaves every program out, which is said.
bool is_left_out();

}  // namespace papaya::preload
