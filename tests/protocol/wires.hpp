// A wire in memory that threads share as ranks, with a policy for each.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "algorithms/transport/shared_notified.hpp"

namespace papaya {

class Wires {
 public:
  Wires(int ranks, const SegmentShape& shape, wait::Mode mode)
      : bytes_(SharedNotified::region_bytes(ranks, shape)),
        region_(static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{4096}))),
        policies_(static_cast<std::size_t>(ranks)) {
    std::memset(region_, 0, bytes_);
    for (int rank = 0; rank < ranks; ++rank) {
      wait::Policy& policy = policies_[static_cast<std::size_t>(rank)];
      policy.configure(mode, {.cores = 1, .ranks = ranks, .board = nullptr, .rank = rank, .ns_per_tick = 1.0}, nullptr);
      wires_.push_back(std::make_unique<SharedNotified>(region_, rank, policy, shape));
    }
  }
  ~Wires() { ::operator delete (region_, std::align_val_t{4096}); }
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  Notified& operator[](int rank) { return *wires_[static_cast<std::size_t>(rank)]; }
  wait::Policy& policy(int rank) { return policies_[static_cast<std::size_t>(rank)]; }

 private:
  std::size_t bytes_;
  std::byte* region_;
  std::vector<wait::Policy> policies_;
  std::vector<std::unique_ptr<SharedNotified>> wires_;
};

}  // namespace papaya
