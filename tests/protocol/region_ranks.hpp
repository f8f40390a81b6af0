// Weakly consistent collectives that meet in a region of the node's memory, with threads as ranks; or in one region for
// each of several nodes, and over a wire between them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/weak/weak.hpp"
#include "tests/protocol/node.hpp"
#include "tests/protocol/wires.hpp"

namespace papaya {

class RegionRanks {
 public:
  // `node_of`: by rank; all on one node if empty.
  RegionRanks(const char* name, int ranks, std::size_t count, const Reduction& reduction,
              std::vector<std::int64_t> values, wait::Mode mode = wait::Mode::yield, std::uint64_t first_round = 1,
              const std::vector<int>& node_of = {})
      : reduction_(reduction),
        values_(std::move(values)),
        nodes_(nodes_by(node_of)),
        request_{.ranks = ranks,
                 .count = count,
                 .element_bytes = reduction.element_bytes,
                 .reduction = &reduction_,
                 .nodes = node_of.empty() ? nullptr : &nodes_,
                 .values = values_},
        wires_(ranks, find_weak(name)->segment(request_), mode) {
    const WeakDescriptor& descriptor = *find_weak(name);
    const std::size_t bytes = descriptor.region_bytes(request_);
    for (int node = 0; node < (node_of.empty() ? 1 : nodes_.count()); ++node) {
      regions_.push_back(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096})));
      std::memset(regions_.back(), 0, bytes);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const auto place = static_cast<std::size_t>(rank);
      const Team team{.rank = rank,
                      .size = ranks,
                      .arrival_order = false,
                      .region = regions_[node_of.empty() ? 0 : static_cast<std::size_t>(nodes_.of_rank[place])],
                      .policy = &wires_.policy(rank),
                      .first_round = first_round,
                      .wire = node_of.empty() ? nullptr : &wires_[rank]};
      algorithms_.push_back(descriptor.prepare(team, request_));
    }
  }
  ~RegionRanks() {
    algorithms_.clear();  // with their threads
    for (std::byte* const region : regions_) ::operator delete (region, std::align_val_t{4096});
  }
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
  const Nodes nodes_;
  const WeakRequest request_;
  Wires wires_;
  std::vector<std::byte*> regions_;  // by node
  std::vector<std::unique_ptr<Weak>> algorithms_;
};

inline void stop_at_random(std::minstd_rand& random) {
  const auto chance = random() % 128;
  if (chance < 8) std::this_thread::yield();
  if (chance == 8) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

}  // namespace papaya
