// How hierarchical_leaders cuts a message: chunks, and a slice of each for every leader of a node.
#pragma once

#include <algorithm>
#include <cstddef>

namespace papaya::patterns {

// Bytes of a chunk. From 64 KiB on there are two at least: one is between the nodes while they reduce the other. More
// than that costs latencies and hides nothing that the two do not.
inline std::size_t leaders_chunk_bytes(std::size_t bytes, std::size_t most) noexcept {
  constexpr std::size_t least_halved = 64 << 10;
  constexpr std::size_t line = 64;
  const std::size_t chunk = bytes < least_halved ? bytes : (bytes / 2 + line - 1) / line * line;
  return std::min(chunk, most);
}

// As many ranks of a node as get enough of a chunk, of those that may lead.
inline int leaders_of(std::size_t chunk_bytes, int most) noexcept {
  constexpr std::size_t least_slice_bytes = 1024;
  return static_cast<int>(std::clamp<std::size_t>(chunk_bytes / least_slice_bytes, 1, static_cast<std::size_t>(most)));
}

}  // namespace papaya::patterns
