// How much shorter the run would be if ranks computed no longer than the others, by replaying its calls from their
// recorded arrivals. At each call a rank comes earlier by what it computed longer than the median of the call's ranks
// since its call before on that communicator, less what was taken from it since; exits follow their earliest legal ones
// as they did. A rank that spent about as much time in messages meanwhile as another one computed longer has waited for
// that one, and comes as much earlier. After its last call a rank ends earlier by what it computed longer than the
// median there.
//
// An estimate: what ranks do to each other where they share cores or memory is not in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace papaya::report {

struct Run;
struct EventFacts;
struct GroupCall;
class Clocks;

// ns by which the run would be shorter.
struct WhatIf {
  bool is_known = false;  // the record has all calls of the run
  double all_ns = 0;      // if that held for every rank
  struct Rank {
    std::int32_t rank = 0;
    double ns = 0;
  };
  std::vector<Rank> ranks;  // if for this one alone, most first; those that most waiting begins with
};

// Replays the calls of a run as they are read, each case beside the others.
class WhatIfReplay {
 public:
  // `facts` by file. `ranks`: files of those that are looked at alone.
  WhatIfReplay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts,
               std::span<const std::size_t> ranks);
  ~WhatIfReplay();
  WhatIfReplay(const WhatIfReplay&) = delete;
  WhatIfReplay& operator=(const WhatIfReplay&) = delete;

  // A compared call, in the order of CallStream.
  void add(const GroupCall& call);
  WhatIf result() const;

  static constexpr std::size_t most_ranks = 8;

 private:
  class Replay;
  std::unique_ptr<Replay> replay_;
};

}  // namespace papaya::report
