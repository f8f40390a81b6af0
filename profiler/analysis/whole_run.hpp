// What the ranks of each node found out about each other's arrivals while the job ran (node_arrivals.hpp): it covers
// the whole run, however few of its calls the rings still hold one by one. Arrivals of other nodes are not in it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/collective.hpp"
#include "profiler/read/frames.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Blocking calls, each once for every node that has two or more of its ranks.
struct NodeTally {
  std::uint64_t calls = 0;
  double worst_ns = 0;    // imbalance within the node, the longest wait of a call: the mean
  double most_ns = 0;     // and the largest
  double waiting_ns = 0;  // summed over ranks
};

struct WholeRun {
  struct Last {
    std::int32_t rank = 0;
    std::int32_t node = 0;
    std::uint64_t calls = 0;       // that its node compared: of those,
    std::uint64_t times_last = 0;  // in its node, by more than a tie
    double caused_ns = 0;          // waiting of others for it, summed
  };
  struct Site {
    std::vector<NamedFrame> frames;  // innermost first
    Collective collective{};
    NodeTally tally;
    std::vector<Last> last;  // most waited for first
  };
  struct Size {
    Collective collective{};
    SizeClass size_class{};
    NodeTally tally;
  };
  struct Communicator {
    std::uint64_t id = 0;
    std::string name;
    NodeTally tally;
  };

  NodeTally all;
  std::uint64_t given_up = 0;  // calls that were not compared: a rank arrived too late for that, or did not record them
  std::vector<Last> last;      // most waited for first
  std::vector<Site> sites;     // where the last rank made them, if that is known; most waiting first, as are
  std::vector<Size> sizes;
  std::vector<Communicator> communicators;
};

WholeRun whole_run(const Run& run, const std::function<std::string(std::uint64_t id)>& name_of_communicator);

}  // namespace papaya::report
