#include "base/old_names.hpp"

#include <utility>
#include <vector>

namespace papaya {

namespace {
std::vector<std::pair<std::string_view, std::string_view>>& list() {
  static auto& names = *new std::vector<std::pair<std::string_view, std::string_view>>;  // never destroyed, as registry
  return names;
}
}  // namespace

void add_old_name(std::string_view old_name, std::string_view name) {
  list().emplace_back(old_name, name);
}

std::string_view current_name(std::string_view name) noexcept {
  for (const auto& [old_name, current] : list())
    if (name == old_name) return current;
  return name;
}

}  // namespace papaya
