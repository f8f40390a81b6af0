// Figures as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace papaya::report {

// "1.92 ms", three significant digits.
std::string time_text(double ns);
// "12,345"
std::string count_text(std::uint64_t count);
// "1 call", "12,345 calls"
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);
// "87 %", "3.4 %", "less than 0.1 %".
std::string share_text(double share);

}  // namespace papaya::report
