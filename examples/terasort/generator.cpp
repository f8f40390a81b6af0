#include "generator.hpp"

#include <algorithm>
#include <cstring>

namespace terasort {

namespace {

__extension__ using Number = unsigned __int128;

constexpr Number number(std::uint64_t high, std::uint64_t low) noexcept {
  return static_cast<Number>(high) << 64 | low;
}
constexpr Number multiplier = number(0x2360ed051fc65da4, 0x4385df649fccf645);
constexpr Number increment = number(0x4a696d4772617952, 0x4950202020202001);

constexpr char digits[] = "0123456789ABCDEF";

// The lowest `count` hexadecimal digits, each written `times` times.
unsigned char* write_digits(unsigned char* to, std::uint64_t value, int count, int times) noexcept {
  for (int digit = count - 1; digit >= 0; --digit)
    to = std::fill_n(to, times, static_cast<unsigned char>(digits[value >> 4 * digit & 0xf]));
  return to;
}

unsigned char* write_bytes(unsigned char* to, std::initializer_list<unsigned char> bytes) noexcept {
  return std::copy(bytes.begin(), bytes.end(), to);
}

}  // namespace

// x -> a x + c, done `index` + 1 times to 0: the map is squared for each bit of the count.
Generator::Number Generator::at(std::uint64_t index) noexcept {
  Number value = increment;
  Number a = multiplier;
  Number c = increment;
  for (std::uint64_t left = index; left != 0; left >>= 1) {
    if ((left & 1) != 0) value = value * a + c;
    c = a * c + c;
    a *= a;
  }
  return value;
}

void Generator::make_binary(Record& record, Number random, std::uint64_t index) const noexcept {
  unsigned char* to = record.bytes;
  for (int byte = 15; byte >= 6; --byte) *to++ = static_cast<unsigned char>(random >> 8 * byte);
  to = write_bytes(to, {0x00, 0x11});
  to = write_digits(to, 0, 16, 1);
  to = write_digits(to, index, 16, 1);
  to = write_bytes(to, {0x88, 0x99, 0xaa, 0xbb});
  to = write_digits(to, static_cast<std::uint64_t>(random), 12, 4);
  write_bytes(to, {0xcc, 0xdd, 0xee, 0xff});
}

void Generator::make_ascii(Record& record, Number random, std::uint64_t index) const noexcept {
  constexpr unsigned printable = 95;
  unsigned char* to = record.bytes;
  const auto write_key = [&to](std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i, value /= printable) *to++ = static_cast<unsigned char>(' ' + value % printable);
  };
  write_key(static_cast<std::uint64_t>(random >> 64), 8);
  write_key(static_cast<std::uint64_t>(random), 2);
  to = write_bytes(to, {' ', ' '});
  to = write_digits(to, 0, 16, 1);
  to = write_digits(to, index, 16, 1);
  to = write_bytes(to, {' ', ' '});
  to = write_digits(to, static_cast<std::uint64_t>(random), 13, 4);
  write_bytes(to, {'\r', '\n'});
}

void Generator::make(std::uint64_t first, std::span<Record> records) const noexcept {
  Number random = at(first);
  // The bits in the middle: neither the key of a binary record nor its filler has them all.
  constexpr double all = 1 << 24;
  for (Record& record : records) {
    is_ascii_ ? make_ascii(record, random, first) : make_binary(record, random, first);
    if (skew_ > 0 && static_cast<double>(static_cast<std::uint64_t>(random >> 40) & 0xffffff) < skew_ * all)
      std::memset(record.bytes, 'S', 10);
    random = random * multiplier + increment;
    ++first;
  }
}

}  // namespace terasort
