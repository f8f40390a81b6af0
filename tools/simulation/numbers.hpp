// What the ranks of a simulated allreduce add.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace papaya::simulation {

// The operand of a rank, and what all of them come to; whole numbers, so that no order rounds.
class Numbers {
 public:
  Numbers(bool integers, std::size_t count, int ranks) : integers_(integers), sum_(count), ranks_(ranks) {
    for (std::size_t i = 0; i < count; ++i)
      for (int rank = 0; rank < ranks; ++rank) sum_[i] += number(rank, i);
  }
  void fill(std::byte* at, int rank, std::uint64_t call) const {
    for (std::size_t i = 0; i < sum_.size(); ++i) store(at, i, number(rank, i) + offset(call));
  }
  bool holds_sum(const std::byte* at, std::uint64_t call) const {
    std::vector<std::byte> expected(sum_.size() * 8);
    for (std::size_t i = 0; i < sum_.size(); ++i) store(expected.data(), i, sum_[i] + ranks_ * offset(call));
    return std::memcmp(expected.data(), at, expected.size()) == 0;
  }

 private:
  static std::int64_t number(int rank, std::size_t i) {
    return static_cast<std::int64_t>((static_cast<std::size_t>(rank) * 7 + i * 13) % 64);
  }
  static std::int64_t offset(std::uint64_t call) { return static_cast<std::int64_t>(call % 8); }
  void store(std::byte* at, std::size_t i, std::int64_t value) const {
    const auto real = static_cast<double>(value);
    std::memcpy(at + i * 8, integers_ ? static_cast<const void*>(&value) : &real, 8);
  }

  bool integers_;
  std::vector<std::int64_t> sum_;
  int ranks_;
};

}  // namespace papaya::simulation
