// How values above zero are spread, in bounded memory: exact count, least and largest, and a median that is exact where
// the values around it are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace papaya::report {

class Archive;

class Distribution {
 public:
  // Values up to 0 are not counted.
  void add(double value);
  void merge(const Distribution& other);
  void pack(Archive& archive);

  std::uint64_t count() const { return count_; }
  double largest() const { return largest_; }
  // 0 of no values.
  double median() const;
  // The largest values that make up half of the sum, or a little more.
  struct Half {
    std::uint64_t count = 0;
    double least = 0;
  };
  Half largest_half() const;
  // The values that are not far below those.
  struct Notable {
    std::uint64_t count = 0;
    double sum = 0;
  };
  Notable notable() const;
  double sum() const;

 private:
  // Four to a doubling, from 2^first_doubling on.
  struct Bucket {
    std::uint64_t count = 0;
    double sum = 0;
  };
  static constexpr int first_doubling = 4;
  static constexpr std::size_t buckets_per_doubling = 4;
  static constexpr std::size_t most_buckets = 48 * buckets_per_doubling;

  std::vector<Bucket> buckets_;  // up to the one of the largest value
  std::uint64_t count_ = 0;
  double largest_ = 0;
};

}  // namespace papaya::report
