// A table row of 64-bit words of which most are zero, without those: a record has such tables for each rank.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace papaya::report {

template <class Row>
class Packed {
  static_assert(std::is_trivially_copyable_v<Row> && sizeof(Row) % sizeof(std::uint64_t) == 0);

 public:
  Packed() = default;
  explicit Packed(const Row& row) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < words; ++i) count += word_of(row, i) != 0 ? 1 : 0;
    kept_.reserve(count);
    for (std::uint32_t i = 0; i < words; ++i)
      if (const std::uint64_t word = word_of(row, i); word != 0) kept_.emplace_back(i, word);
  }

  Row unpack() const {
    Row row;
    std::memset(static_cast<void*>(&row), 0, sizeof row);
    for (const auto& [place, word] : kept_)
      std::memcpy(reinterpret_cast<char*>(&row) + place * sizeof word, &word, sizeof word);
    return row;
  }

 private:
  static constexpr std::uint32_t words = sizeof(Row) / sizeof(std::uint64_t);

  static std::uint64_t word_of(const Row& row, std::uint32_t place) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&row) + place * sizeof word, sizeof word);
    return word;
  }

  std::vector<std::pair<std::uint32_t, std::uint64_t>> kept_;  // place, word
};

}  // namespace papaya::report
