// Ranks that kill themselves, to see what comes of it: which ones and when depends on a seed alone.
#pragma once

#include <cstdint>

namespace kmeans {

enum class Moment { adding, sending, checkpoint, waiting, recovering, leading, loading };
constexpr int moments = 7;
constexpr int moments_of_recovery = 3;  // the last ones

class Fate {
 public:
  // `kills` of the ranks; in the first so many iterations, or in a recovery.
  Fate(int rank, int ranks, int kills, long iterations, std::uint64_t seed);

  // Kills this process, if this is the moment. In a recovery the iteration does not matter.
  void meet(Moment moment, long iteration = 0);
  // The same without the kill, for who wants to leave something half done.
  bool is_now(Moment moment, long iteration) const noexcept;
  [[noreturn]] static void die();

 private:
  bool dies_ = false;
  Moment moment_ = Moment::adding;
  long iteration_ = 0;
  int looks_ = 0;  // until it is in the middle of adding
};

}  // namespace kmeans
