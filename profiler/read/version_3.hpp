// Records of format version 3, with spilled events of version 1, as those of today. They have room for 32 algorithms,
// whose names are in the header and whose counts are in the totals; reasons have no ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/record/format.hpp"

namespace papaya::report::version_3 {

inline constexpr std::uint32_t format_version = 3;
inline constexpr std::uint32_t spill_version = 1;
inline constexpr std::size_t header_bytes = 7784;
inline constexpr std::size_t totals_bytes = 21080;
inline constexpr std::uint32_t algorithms = 32;

// The header as it would be today, from `header_bytes` bytes, but for its own size. It has no table of algorithms.
trace::Header header_of(const std::byte* header);

// The table without its counts, from the header.
std::vector<trace::Algorithm> names_of(const std::byte* header);
// From `totals_bytes` bytes; fills in the counts of the algorithms.
trace::Totals totals_of(const std::byte* totals, std::vector<trace::Algorithm>& algorithms);

// An event that was read as if it were today's.
trace::Event event_of(const trace::Event& read);

}  // namespace papaya::report::version_3
