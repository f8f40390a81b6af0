#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace papaya {

// Copies a few bytes, as they stand beside a flag, without a call: by overlapping words. The places do not overlap.
inline void copy_short(void* to, const void* from, std::size_t bytes) noexcept {
  auto* const out = static_cast<std::byte*>(to);
  const auto* const in = static_cast<const std::byte*>(from);
  struct Words {
    std::uint64_t first;
    std::uint64_t second;
  };
  const auto move = [&]<class Word>(Word, std::size_t at) { std::memcpy(out + at, in + at, sizeof(Word)); };
  if (bytes >= sizeof(Words)) {
    for (std::size_t at = 0; at + sizeof(Words) < bytes; at += sizeof(Words)) move(Words{}, at);
    move(Words{}, bytes - sizeof(Words));
  } else if (bytes >= 8) {
    move(std::uint64_t{}, 0);
    move(std::uint64_t{}, bytes - 8);
  } else if (bytes >= 4) {
    move(std::uint32_t{}, 0);
    move(std::uint32_t{}, bytes - 4);
  } else if (bytes > 0) {
    move(std::uint8_t{}, 0);
    move(std::uint8_t{}, bytes / 2);
    move(std::uint8_t{}, bytes - 1);
  }
}

inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes <= 128)
    copy_short(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace papaya
