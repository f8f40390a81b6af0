// Threads as the ranks of one weakly consistent collective, by its name.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "algorithms/weak/weak.hpp"
#include "tests/protocol/wires.hpp"

namespace papaya {

class WeakRanks {
 public:
  WeakRanks(std::string_view name, const WeakRequest& request, wait::Mode mode, std::uint64_t first_round = 1)
      : descriptor_(*find_weak(name)), wires_(request.ranks, descriptor_.segment(request), mode) {
    for (int rank = 0; rank < request.ranks; ++rank)
      prepared_.push_back(descriptor_.prepare({.rank = rank,
                                               .size = request.ranks,
                                               .arrival_order = false,
                                               .region = nullptr,
                                               .policy = &wires_.policy(rank),
                                               .first_round = first_round,
                                               .wire = &wires_[rank]},
                                              request));
  }
  Weak& operator[](int rank) { return *prepared_[static_cast<std::size_t>(rank)]; }
  void end(int rank) { prepared_[static_cast<std::size_t>(rank)].reset(); }

 private:
  const WeakDescriptor& descriptor_;
  Wires wires_;
  std::vector<std::unique_ptr<Weak>> prepared_;
};

inline void stop_at_random(std::minstd_rand& random) {
  const auto chance = random() % 128;
  if (chance < 8) std::this_thread::yield();
  if (chance == 8) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

inline constexpr wait::Mode all_modes[] = {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block};

}  // namespace papaya
