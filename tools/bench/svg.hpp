// What pictures have in common.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace papaya::bench {

// Distinguishable to colour-blind readers and on light and dark ground alike (after Okabe and Ito); the first is grey.
const char* colour_of(std::size_t series) noexcept;
std::string escaped(std::string_view text);
// Up to the ground; classes faint, grid and axis.
std::string svg_begin(double width, double height);

}  // namespace papaya::bench
