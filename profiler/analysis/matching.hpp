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

class Archive;

// A rank of a communicator that has a usable record.
struct Member {
  std::size_t file;
  std::int32_t rank;  // in the communicator
  std::uint64_t calls;
  std::uint64_t first_kept_call = std::numeric_limits<std::uint64_t>::max();
};

// One rank's part in one call. Small: as many as a run has ranks are in a core's cache at once, for several calls.
struct Sighting {
  // Of the event:
  std::uint64_t bytes = 0;
  std::uint32_t call_site = 0;
  std::uint32_t algorithm = 0;
  std::int32_t root = -1;
  std::uint8_t collective = 0;
  std::uint8_t form = 0;
  std::uint16_t reason = 0;
  std::uint16_t thread = 0;
  std::uint16_t phase = 0;

  std::uint32_t member = 0;        // of the group
  std::uint32_t file = 0;          // the member's
  std::uint32_t longest_site = 0;  // call site that ended the longest time of computing since the communicator's call
                                   // before; in the first since MPI_Init
  std::uint32_t number = 0;        // of the event among those of the file
  std::uint32_t events_since = 0;  // how many of its events lie between the communicator's call before and this one
  double arrival_ns = 0;           // on node 0's clock
  double exit_ns = 0;              // NaN: still inside
  double computed_ns = 0;          // by the rank, outside MPI, since then
  double timed_ns = 0;             // in timed functions, since then
  double computed_until_ns = 0;    // by the rank, outside MPI, since MPI_Init
  double waited_ns = 0;            // in messages, the longest of these times since then, and for which rank of the job
  double just_waited_ns = 0;       // the same since its collective call before this one, on any communicator
  std::int32_t waited_for = -1;
  std::int32_t just_waited_for = -1;
};
static_assert(sizeof(Sighting) <= 112);

// A communicator, and what is known of its ranks.
struct Group {
  std::uint64_t id = 0;
  std::string name;
  std::int32_t size = 0;
  bool is_consistent = true;    // its ranks agree on its size, and no two of them claim one rank
  bool is_inter = false;        // the local group of an intercommunicator
  bool is_used = false;         // calls on it are in the record
  std::vector<Member> members;  // by rank in the communicator
};

enum class Match : std::uint8_t {
  complete,     // in the record of all ranks of the communicator
  partial,      // in the record of all ranks that have a usable one
  conflicting,  // the ranks called different things
  overwritten,  // lost from the record of some rank, which had no room for it any more
  unmatched,    // missing in the record of a rank that did make it
  pending,      // some rank has not come to it
  alone,        // the communicator has one rank
  two_groups,   // on an intercommunicator: the groups wait for each other, and only one of them is here
};

// A blocking call, as far as it is recorded.
struct GroupCall {
  const Group* group = nullptr;
  std::size_t group_number = 0;
  std::uint64_t call = 0;               // its number on the communicator
  std::span<const Sighting> sightings;  // by rank in the communicator
  Match match{};
  bool is_inside = false;  // some rank has not left it
  std::string
      conflict;  // "at call 3 on MPI_COMM_WORLD, rank 0 called MPI_Bcast with root 0 and rank 1 called MPI_Barrier"

  // Of each rank what it computed since its call before on the communicator: else nothing is told of any.
  bool is_computing_known = true;

  // Its arrivals are known.
  bool is_compared() const { return match == Match::complete || match == Match::partial; }
};

// The communicators of a run.
class Groups {
 public:
  explicit Groups(const Run& run);

  std::span<Group> all() { return groups_; }
  std::span<const Group> all() const { return groups_; }
  // Null: not in the tables of communicators.
  const Group* find(std::uint64_t communicator) const;

  // What a part of the run says of the members.
  void merge(const Groups& part);
  // That alone.
  void pack(Archive& archive);

  // Fills in what follows from its sightings; false: no rank calls the blocking form.
  bool judge(GroupCall& call) const;

 private:
  std::string conflict_in(const GroupCall& call) const;
  Match match_of(const GroupCall& call) const;

  const Run& run_;
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
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

bool has_root(Collective collective);
Roles roles_of(const GroupCall& call);

double latest(std::span<const double> arrivals_ns);

// When each rank could have left at the earliest: once those whose data it needs had arrived.
void earliest_exits(const Roles& roles, std::span<const double> arrivals_ns, std::span<double> exits_ns);

}  // namespace papaya::report
