// How much shorter the run would be if ranks computed no longer than the others, by replaying its calls from their
// recorded arrivals. At each call, or at those of one call site, a rank comes earlier by what it computed longer than
// the median of the call's ranks since its call before on that communicator, less what was taken from it since; exits
// follow their earliest legal ones as they did, or are those of an algorithm (exit_model.hpp). Of a rank that waited
// for a message the end of that wait follows its sender; where the record does not tell the sender, a rank that spent
// about as much time in messages and the like as another one computed longer has waited for that one, and comes as much
// earlier. After its last call a rank ends earlier by what it computed longer than the median there. Lateness that
// relieves the others counts as far as it costs something (relief.hpp).
//
// Where ranks share cores there is no such estimate: a rank that waits gives its core to one that computes, which is
// quicker meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "profiler/analysis/relief.hpp"

namespace papaya::report {

struct Run;
struct EventFacts;
struct GroupCall;
class Archive;
class Clocks;
class ExitModel;

// ns by which the run would be shorter.
struct WhatIf {
  bool is_known = false;
  std::string why_unknown;  // a sentence, if it is not

  // With papaya's algorithms as well, in the calls that were left to MPI.
  struct Served {
    double ns = 0;
    std::string algorithm;  // the best one; empty: MPI's own is
  };
  double all_ns = 0;  // if that held for every rank
  Served all_served;
  struct Rank {
    std::int32_t rank = 0;
    double ns = 0;
  };
  std::vector<Rank> ranks;  // if for this one alone, most first; those that most waiting begins with
  struct Site {
    std::size_t number = 0;  // of the call site
    double ns = 0;
    Served served;
  };
  std::vector<Site> sites;         // if for every rank before these calls alone, most first; those with most waiting
  std::vector<Relieved> relieved;  // where lateness costs less than itself, one for each call site, most lateness first

  // Some lateness relieves the others, and without this rank's the run would be shorter by less than that.
  bool is_relief(std::int32_t rank, double least_ns) const;
};

// Replays the calls of a run as they are read, each case beside the others.
class WhatIfReplay {
 public:
  struct Choice {
    std::vector<std::size_t> ranks;  // files of those that are looked at alone
    std::vector<std::size_t> sites;  // numbers of those that are
    std::uint64_t parts = 0;         // ranks in calls: what takes too long with so many is left out
  };

  // `facts` by file.
  WhatIfReplay(const Run& run, const Clocks& clocks, std::span<const EventFacts> facts, const Choice& choice,
               std::map<Section, Relieved> relieved);
  ~WhatIfReplay();
  WhatIfReplay(WhatIfReplay&&) noexcept;
  WhatIfReplay& operator=(WhatIfReplay&&) = delete;

  // A compared call, in the order of CallStream, the number of its site, or that of none, and the model that has taken
  // it; null: none has.
  void add(const GroupCall& call, std::size_t site, ExitModel* model);
  // That was all of a part which is not the run's last, `facts` of it by file.
  void end_part(const Clocks& clocks, std::span<const EventFacts> facts);
  // The next part of the run, as if it began anew.
  void merge(const WhatIfReplay& next);
  void pack(Archive& archive);
  WhatIf result() const;

  static constexpr std::size_t most_ranks = 8;
  static constexpr std::size_t most_sites = 5;

 private:
  class Replay;
  std::unique_ptr<Replay> replay_;
};

}  // namespace papaya::report
