// What the calls of a run, or of a part of it, add up to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "profiler/analysis/alpha.hpp"
#include "profiler/analysis/analysis.hpp"
#include "profiler/analysis/arrivals.hpp"
#include "profiler/analysis/costly_calls.hpp"
#include "profiler/analysis/critical_path.hpp"
#include "profiler/analysis/delays.hpp"
#include "profiler/analysis/imbalance.hpp"
#include "profiler/analysis/losses.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/analysis/origins.hpp"
#include "profiler/analysis/pending.hpp"
#include "profiler/analysis/relief.hpp"
#include "profiler/analysis/sites.hpp"
#include "profiler/analysis/wait_sums.hpp"
#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

// Of one rank.
struct RankSums {
  std::uint64_t compared = 0;    // calls
  std::uint64_t times_last = 0;  // by more than the clocks' error
  double late_ns = 0;            // after the first arrival
  double waited_ns = 0;          // for others
  double caused_ns = 0;          // waiting of others for this rank
  std::array<std::uint64_t, collective_count> compared_in{};
  std::array<std::uint64_t, collective_count> times_last_in{};
  std::array<double, collective_count> caused_ns_in{};
};

// Of one communicator.
struct CommunicatorSums {
  std::uint64_t compared = 0;  // calls
  double worst_ns = 0;         // imbalance
  double waiting_ns = 0;       // summed over ranks
};

// What its arrivals say of the pattern of its site.
CallOfSite call_of_site(const Run& run, const Clocks& clocks, const GroupCall& call, const Arrivals& arrivals,
                        Alpha& alpha);

class Archive;

class CallSums {
 public:
  // `observe`: for each compared call; may be empty. Both stay where they are.
  CallSums(const Run& run, const Clocks& clocks, std::size_t communicators, const CallObserver& observe);

  void add(std::size_t file, const trace::Event& event) { count_event(clocks_, file, event, sites, phases); }
  void add(const GroupCall& call);
  // The next part of the run; and a call with ranks in several parts, whose ranks' computing counts from different
  // moments: it is on no chain.
  void merge(CallSums&& next);
  void pack(Archive& archive);
  void add_left(const GroupCall& call) {
    is_left_ = true;
    add(call);
    is_left_ = false;
  }
  void end_part(std::span<const EventFacts>) {}

  std::uint64_t compared_calls = 0;
  std::uint64_t replayed_parts = 0;  // ranks in calls that a replay has
  double waiting_ns = 0;             // summed over ranks
  std::array<CollectiveSums, collective_count> collectives;
  std::vector<RankSums> ranks;                  // by file
  std::vector<CommunicatorSums> communicators;  // by number of the group
  Sites sites;
  Phases phases;
  Delays delays;
  CostlyCalls costly;
  Origins origins;
  WaitSums waits;
  CriticalPath path;
  Relief relief;
  Alpha alpha;
  std::vector<Unfinished> unfinished;
  NotCompared not_compared;
  std::uint64_t partial_calls = 0;
  std::uint64_t pending_left_out = 0;

 private:
  void add_arrivals(const GroupCall& call);
  void find_places(const GroupCall& call);
  void add_imbalance(const GroupCall& call);
  void add_last(std::size_t collective);
  void add_waits(CollectiveSums& sums, CommunicatorSums& communicator);
  Sites::Site* site_of(std::size_t place) {
    return sites_of_[place] == ComparedCall::no_site ? nullptr : &sites.at(sites_of_[place]);
  }
  void add_causes(std::size_t collective);
  void observe(const GroupCall& call, const Sites::Site* site);

  const Run& run_;
  const Clocks& clocks_;
  const CallObserver& observe_;
  bool is_left_ = false;  // the call that is added
  // Of the call that is compared: its arrivals, each rank's call site, by number, and phase, and all of these.
  Arrivals arrivals_;
  std::vector<std::size_t> sites_of_;
  std::vector<PhaseFigures*> phases_of_;
  std::vector<std::size_t> all_sites_;
  std::vector<PhaseFigures*> all_phases_;
};

}  // namespace papaya::report
