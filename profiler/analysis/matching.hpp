// The calls of a run as the ranks of a communicator made them together. One rule, for the figures of the report, for
// traces and for replays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/read/clocks.hpp"
#include "profiler/read/read.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {

// A rank of a communicator that has a usable record.
struct Member {
  std::size_t file;
  std::int32_t rank;  // in the communicator
  std::uint64_t calls;
  std::uint64_t first_kept_call = std::numeric_limits<std::uint64_t>::max();
};

// One rank's part in one call.
struct Sighting {
  std::uint64_t call;
  std::uint32_t member;  // of the group
  std::uint32_t event;   // of the member's file
  std::uint32_t thread;  // only to make the order of damaged duplicates definite
};

// A communicator and what its ranks called on it.
struct Group {
  std::uint64_t id = 0;
  std::string name;
  std::int32_t size = 0;
  bool is_consistent = true;        // its ranks agree on its size, and no two of them claim one rank
  std::vector<Member> members;      // by rank in the communicator
  std::vector<Sighting> sightings;  // by call, then by rank in the communicator
};

enum class Match : std::uint8_t {
  complete,     // in the record of all ranks of the communicator
  partial,      // in the record of all ranks that have a usable one
  conflicting,  // the ranks called different things
  overwritten,  // lost from the record of some rank, which had no room for it any more
  unmatched,    // missing in the record of a rank that did make it
  pending,      // some rank has not come to it
  alone,        // the communicator has one rank
};

// A blocking call, as far as it is recorded.
struct GroupCall {
  const Group* group = nullptr;
  std::span<const Sighting> sightings;
  Match match{};
  bool is_inside = false;  // some rank has not left it
  std::string
      conflict;  // "at call 3 on MPI_COMM_WORLD, rank 0 called MPI_Bcast with root 0 and rank 1 called MPI_Barrier"
};

class Matching {
 public:
  explicit Matching(const Run& run);

  std::span<const Group> groups() const { return groups_; }
  // Null: not in the tables of communicators.
  const Group* find(std::uint64_t communicator) const;
  const trace::Event& event_of(const Group& group, const Sighting& sighting) const {
    return run_.files[group.members[sighting.member].file].events[sighting.event];
  }
  // Events on communicators that are not in the tables.
  std::uint64_t untabled_events() const { return untabled_events_; }

  // Calls `body(const GroupCall&)` for each blocking call on `group`, in the order they were made. None if the ranks of
  // the communicator cannot be told apart.
  template <class Body>
  void for_each_call(const Group& group, Body&& body) const {
    if (!group.is_consistent) return;
    for (std::size_t begin = 0; begin < group.sightings.size();) {
      std::size_t end = begin + 1;
      while (end < group.sightings.size() && group.sightings[end].call == group.sightings[begin].call) ++end;
      GroupCall call{&group, {group.sightings.data() + begin, end - begin}, {}, false, {}};
      if (judge(call)) body(static_cast<const GroupCall&>(call));
      begin = end;
    }
  }

 private:
  void add_communicators();
  void add_events();
  // False: no rank calls the blocking form.
  bool judge(GroupCall& call) const;
  std::string conflict_in(const GroupCall& call) const;
  Match match_of(const GroupCall& call) const;

  const Run& run_;
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
  std::uint64_t untabled_events_ = 0;
};

// Who came first, last and last but one.
struct Order {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t second = 0;  // the last but one
};

// `arrival(i)` for each of two ranks or more.
template <class Arrival>
Order order_of(std::size_t size, Arrival&& arrival) {
  Order order;
  for (std::size_t i = 1; i < size; ++i) {
    if (arrival(i) < arrival(order.first)) order.first = i;
    if (arrival(i) > arrival(order.last)) {
      order.second = order.last;
      order.last = i;
    } else if (order.second == order.last || arrival(i) > arrival(order.second)) {
      order.second = i;
    }
  }
  return order;
}

struct RankInCall {
  std::uint32_t file;
  std::uint32_t event;  // of the file's
  std::int32_t rank;    // in the communicator
  double arrival_ns;    // on node 0's clock
};

// A call whose arrivals are known: Match::complete or Match::partial.
struct MatchedCall {
  std::uint64_t communicator = 0;
  std::uint64_t call = 0;
  bool is_complete = false;       // every rank of the communicator has a usable record
  std::vector<RankInCall> ranks;  // by rank of the job
  Order order;
};

// For whoever shows or replays single calls: by communicator, then in the order they were made.
std::vector<MatchedCall> matched_calls(const Run& run, const Clocks& clocks);

bool has_root(Collective collective);
Roles roles_of(const Run& run, const MatchedCall& call);

// When each rank could have left at the earliest: once those whose data it needs had arrived.
void earliest_exits(const Roles& roles, std::span<const double> arrivals_ns, std::span<double> exits_ns);

}  // namespace papaya::report
