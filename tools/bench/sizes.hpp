// The message sizes of a measurement, as the command line names them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace papaya::bench {

// "8:1M" -> 8, 16, ..., 1048576; MIN itself, its doubles, and MAX. "8:1M:8" -> 8, 64, ..., 262144, 1048576. "64" is
// that size alone.
bool parse_sizes(std::string_view text, std::vector<std::size_t>& sizes, std::string& problem);

}  // namespace papaya::bench
