// The text of a tuning file, of either format.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace papaya::tuning {

inline constexpr std::size_t largest_file = std::size_t{8} << 20;

// Empty, with the reason in `problem`, if the file cannot be used.
std::string load(const std::string& path, std::string& problem);

// A warning of the file that PAPAYA_TUNING names, where that is this one.
std::string warning_naming(const std::string& path, const std::string& warning);

bool is_json(std::string_view text) noexcept;

}  // namespace papaya::tuning
