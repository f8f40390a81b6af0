// Records as the sort benchmarks have them: 10 bytes of key, compared as unsigned bytes, and 90 that go with it.
#pragma once

#include <endian.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace terasort {

inline constexpr std::size_t record_bytes = 100;

// A key as two numbers, whose order is that of its bytes.
struct Key {
  std::uint64_t high = 0;
  std::uint16_t low = 0;
  auto operator<=>(const Key&) const = default;
};

struct Record {
  unsigned char bytes[record_bytes];

  Key key() const noexcept {
    Key key;
    std::memcpy(&key.high, bytes, sizeof key.high);
    std::memcpy(&key.low, bytes + sizeof key.high, sizeof key.low);
    return {be64toh(key.high), be16toh(key.low)};
  }
};
static_assert(sizeof(Record) == record_bytes);

}  // namespace terasort
