// How much memory this machine has left.
#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace examples {

// Bytes that can be had without swapping; none where /proc/meminfo does not say.
inline std::optional<std::uint64_t> free_memory() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t kib = 0;
  for (std::string name; file >> name; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
    if (name == "MemAvailable:" && file >> kib) return kib << 10;
  return std::nullopt;
}

}  // namespace examples
