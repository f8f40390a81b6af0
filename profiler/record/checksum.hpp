// CRC-32C (Castagnoli), as iSCSI and ext4 have it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace papaya {

namespace detail {
constexpr std::array<std::uint32_t, 256> crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0u);
    table[byte] = value;
  }
  return table;
}
}  // namespace detail

inline std::uint32_t crc32c(const void* data, std::size_t bytes) noexcept {
  static constexpr std::array<std::uint32_t, 256> table = detail::crc32c_table();
  std::uint32_t value = ~0u;
  const auto* next = static_cast<const unsigned char*>(data);
  for (const auto* const end = next + bytes; next != end; ++next) value = (value >> 8) ^ table[(value ^ *next) & 0xff];
  return ~value;
}

}  // namespace papaya
