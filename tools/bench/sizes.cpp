#include "tools/bench/sizes.hpp"

#include <algorithm>
#include <cstdint>

#include "base/settings.hpp"

namespace papaya::bench {

bool parse_sizes(std::string_view text, std::vector<std::size_t>& sizes, std::string& problem) {
  sizes.clear();
  const std::size_t colon = text.find(':');
  const std::size_t second = colon == text.npos ? colon : text.find(':', colon + 1);
  std::int64_t lowest = 0, highest = 0, factor = 2;
  bool read = parse_bytes(text.substr(0, colon), lowest);
  if (colon == text.npos)
    highest = lowest;
  else
    read = read && parse_bytes(text.substr(colon + 1, second == text.npos ? second : second - colon - 1), highest);
  if (second != text.npos) read = read && parse_bytes(text.substr(second + 1), factor) && factor > 1;
  if (!read) {
    problem = "-m takes MIN:MAX, MIN:MAX:FACTOR or one size, such as 8:64K, not '" + std::string(text) + "'.";
    return false;
  }
  if (lowest < 1 || highest < lowest || highest > (std::int64_t{1} << 30)) {
    problem = "-m takes sizes from 1 byte to 1 GiB, the smaller first, not '" + std::string(text) + "'.";
    return false;
  }
  for (std::int64_t bytes = lowest; bytes <= highest; bytes *= std::min(factor, highest + 1))
    sizes.push_back(static_cast<std::size_t>(bytes));
  if (sizes.back() != static_cast<std::size_t>(highest)) sizes.push_back(static_cast<std::size_t>(highest));
  return true;
}

}  // namespace papaya::bench
