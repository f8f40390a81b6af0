// Weakly consistent collectives that meet in a region of the node's memory, with threads as ranks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/weak/weak.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

class RegionRanks {
 public:
  RegionRanks(const char* name, int ranks, std::size_t count, const Reduction& reduction,
              std::vector<std::int64_t> values, wait::Mode mode = wait::Mode::yield, std::uint64_t first_round = 1)
      : reduction_(reduction),
        values_(std::move(values)),
        request_{.ranks = ranks,
                 .count = count,
                 .element_bytes = reduction.element_bytes,
                 .reduction = &reduction_,
                 .values = values_},
        policies_(static_cast<std::size_t>(ranks)) {
    const WeakDescriptor& descriptor = *find_weak(name);
    const std::size_t bytes = descriptor.region_bytes(request_);
    region_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096}));
    std::memset(region_, 0, bytes);
    for (int rank = 0; rank < ranks; ++rank) {
      wait::Policy& policy = policies_[static_cast<std::size_t>(rank)];
      policy.configure(mode, {.cores = 1, .ranks = ranks, .board = nullptr, .rank = rank, .ns_per_tick = 1.0}, nullptr);
      const Team team{.rank = rank,
                      .size = ranks,
                      .arrival_order = false,
                      .region = region_,
                      .policy = &policy,
                      .first_round = first_round};
      algorithms_.push_back(descriptor.prepare(team, request_));
    }
  }
  ~RegionRanks() { ::operator delete (region_, std::align_val_t{4096}); }
  RegionRanks(const RegionRanks&) = delete;
  RegionRanks& operator=(const RegionRanks&) = delete;

  Weak& operator[](int rank) { return *algorithms_[static_cast<std::size_t>(rank)]; }
  template <class Element>
  Operands operands(const std::vector<Element>& contribution, std::vector<Element>& result) const {
    return {.send = contribution.data(),
            .receive = result.data(),
            .count = request_.count,
            .bytes = request_.bytes(),
            .root = -1,
            .reduction = &reduction_};
  }

 private:
  const Reduction reduction_;
  const std::vector<std::int64_t> values_;
  const WeakRequest request_;
  std::vector<wait::Policy> policies_;
  std::byte* region_ = nullptr;
  std::vector<std::unique_ptr<Weak>> algorithms_;
};

inline void stop_at_random(std::minstd_rand& random) {
  const auto chance = random() % 128;
  if (chance < 8) std::this_thread::yield();
  if (chance == 8) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

}  // namespace papaya
