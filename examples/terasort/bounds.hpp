// Which of the parts of all keys a key is in. By comparisons without branches, which would be guessed wrong for half
// of the keys.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "record.hpp"

namespace terasort {

class Bounds {
 public:
  Bounds() = default;
  // `keys`: in order, the least of each part but the first.
  explicit Bounds(const std::vector<Key>& keys) : size_(keys.size()), keys_(keys) {
    keys_.resize(std::bit_ceil(size_ + 1) - 1,
                 {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint16_t>::max()});
  }

  std::size_t size() const noexcept { return size_; }
  const Key& operator[](std::size_t bound) const noexcept { return keys_[bound]; }
  // How many bounds are not above the key.
  std::size_t part_of(const Key& key) const noexcept {
    std::size_t part = 0;
    for (std::size_t half = (keys_.size() + 1) / 2; half > 0; half /= 2) {
      const Key& bound = keys_[part + half - 1];
      const bool is_above =
          static_cast<bool>(static_cast<int>(bound.high > key.high) |
                            (static_cast<int>(bound.high == key.high) & static_cast<int>(bound.low > key.low)));
      part += is_above ? 0 : half;
    }
    return std::min(part, size_);
  }

 private:
  std::size_t size_ = 0;
  std::vector<Key> keys_;  // to a power of 2, less 1
};

}  // namespace terasort
