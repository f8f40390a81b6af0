// The text of a tuning file, of either format.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace papaya::tuning {

inline constexpr std::size_t largest_file = std::size_t{8} << 20;

// Empty, with the reason in `problem`, if the file cannot be used.
std::string load(const std::string& path, std::string& problem);

bool is_json(std::string_view text) noexcept;

}  // namespace papaya::tuning
