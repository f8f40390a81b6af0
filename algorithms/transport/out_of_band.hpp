// Out-of-band collectives: small ones among the ranks of a node or a job, in MPI_Init and MPI_Finalize, where papaya
// itself has something to agree on. Ranks wait asleep: there may be more of them than cores. All ranks make the same
// calls in the same order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace papaya {

class OutOfBand {
 public:
  static constexpr std::size_t most_gathered_bytes = 1024;  // of a rank

  OutOfBand(int rank, int ranks) noexcept : rank_(rank), ranks_(ranks) {}
  virtual ~OutOfBand() = default;
  OutOfBand(const OutOfBand&) = delete;
  OutOfBand& operator=(const OutOfBand&) = delete;

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }

  // Returns when all ranks have come.
  virtual void meet() noexcept = 0;
  // Rank 0's `bytes` on all ranks.
  virtual void broadcast(void* data, std::size_t bytes) noexcept = 0;
  // Every rank's `bytes`, at most most_gathered_bytes, by rank.
  virtual void gather(const void* mine, std::size_t bytes, void* all) noexcept = 0;

  std::string broadcast(std::string text) {
    std::uint64_t length = text.size();
    broadcast(&length, sizeof length);
    text.resize(length);
    if (length != 0) broadcast(text.data(), length);
    return text;
  }
  template <typename T>
  std::vector<T> gather(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= most_gathered_bytes);
    std::vector<T> all(static_cast<std::size_t>(ranks_));
    gather(&mine, sizeof mine, all.data());
    return all;
  }
  template <typename T>
  T least(T mine) {
    const std::vector<T> all = gather(mine);
    return *std::min_element(all.begin(), all.end());
  }
  template <typename T>
  T most(T mine) {
    const std::vector<T> all = gather(mine);
    return *std::max_element(all.begin(), all.end());
  }

 private:
  const int rank_;
  const int ranks_;
};

}  // namespace papaya
