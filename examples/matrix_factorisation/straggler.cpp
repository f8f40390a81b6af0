#include "straggler.hpp"

#include <chrono>
#include <random>
#include <thread>

bool Straggler::is_late(long long iteration) const {
  switch (kind_) {
    case Straggling::none:
      return false;
    case Straggling::fixed:
      return rank_ == ranks_ - 1;
    case Straggling::rotating:
      return iteration % ranks_ == rank_;
    case Straggling::random:  // all ranks draw the same one
      std::minstd_rand random(static_cast<std::uint32_t>(seed_ + static_cast<std::uint64_t>(iteration)));
      random.discard(3);
      return static_cast<int>(random() % static_cast<std::uint32_t>(ranks_)) == rank_;
  }
  return false;
}

void Straggler::sleep(long long iteration) const {
  if (is_late(iteration)) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(delay_ms_));
}
