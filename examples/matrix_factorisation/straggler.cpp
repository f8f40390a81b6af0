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
      std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(iteration));
      return std::uniform_int_distribution(0, ranks_ - 1)(random) == rank_;
  }
  return false;
}

void Straggler::sleep(long long iteration) const {
  if (is_late(iteration)) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(delay_ms_));
}
