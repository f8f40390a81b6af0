// What each rank waited in collectives of late, and where that began: what it arrives late with at a call of another
// communicator. Of each rank the latest few waits, those that follow each other on one communicator as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "profiler/analysis/matching.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// A part of a delay or of waiting, and where it began.
struct Beginning {
  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();  // that is not known

  std::uint32_t file = nobody;  // of the rank
  std::uint32_t site = 0;       // the call site that it reached late
  double ns = 0;
};

class CollectiveWaits {
 public:
  explicit CollectiveWaits(const Run& run);

  // The rank's next call, whose waits, if any, are added then.
  void come_to(const GroupCall& call, const Sighting& sighting);
  void add(const Sighting& sighting, const Beginning& wait);
  // Since the rank's call before on the communicator: appends them to `found`. False: not all are known any more, or
  // some were before the part of the run that is read.
  bool since_call_before(const Sighting& sighting, std::vector<Beginning>& found) const;

 private:
  struct Wait {
    std::uint64_t number;  // of the rank's event; of several the last
    Beginning of;
  };

  struct OfRank {
    bool is_in_several = false;                                       // communicators: else there is nothing to carry
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();  // number of the first call
    std::uint64_t known_from = 0;                                     // number from which on no wait was dropped
    std::size_t group = 0;                                            // of the latest call,
    std::size_t on_it = 0;  // and so many of the waits were there, since another one's
    std::vector<Wait> waits;
  };

  std::vector<OfRank> ranks_;  // by file
};

}  // namespace papaya::report
