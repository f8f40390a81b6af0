// Whether papaya is for the program of this process (base/program_filter.hpp).
#pragma once

namespace papaya::preload {

// The name of the variable that leaves it out; nullptr if none does.
const char* left_out_by();

}  // namespace papaya::preload
