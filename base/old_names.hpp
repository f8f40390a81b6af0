// What algorithms were called before, for those who read old records and know no algorithm. Whoever registers an
// algorithm adds its old name.
#pragma once

#include <string_view>

namespace papaya {

void add_old_name(std::string_view old_name, std::string_view name);

// What is called `name`, or was, is now called.
std::string_view current_name(std::string_view name) noexcept;

}  // namespace papaya
