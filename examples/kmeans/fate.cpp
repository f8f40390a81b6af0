#include "fate.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "random.hpp"

namespace kmeans {

Fate::Fate(int rank, int ranks, int kills, long iterations, std::uint64_t seed) {
  Random random(seed, 0xDEAD);
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (int i = 0; i < std::min(kills, ranks); ++i) {
    const auto iteration = static_cast<long>(random.below(static_cast<std::uint64_t>(std::max(iterations, 1L))));
    // The first victim cannot wait for a recovery, since there may be none.
    const auto moment = static_cast<Moment>(random.below(i == 0 ? moments - moments_of_recovery : moments));
    const auto looks = static_cast<int>(random.below(10));
    if (order[static_cast<std::size_t>(i)] != rank) continue;
    dies_ = true;
    iteration_ = iteration;
    moment_ = moment;
    looks_ = looks;
  }
}

bool Fate::is_now(Moment moment, long iteration) const noexcept {
  return dies_ && moment == moment_ && (moment >= Moment::recovering || iteration >= iteration_);
}

void Fate::meet(Moment moment, long iteration) {
  if (is_now(moment, iteration) && (moment != Moment::adding || looks_-- <= 0)) die();
}

void Fate::die() {
  kill(getpid(), SIGKILL);
  std::abort();
}

}  // namespace kmeans
