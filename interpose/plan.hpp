// A plan: everything that one algorithm needs to run on one communicator, for messages up to `capacity`. It owns its
// region of the node's window, its wire, its messages and the algorithm prepared with them, and gives them back in its
// destructor and nowhere else. set_up() makes it, for whoever may wait and for whoever must not; join()
// (async_setup.hpp) does where no rank may wait for another, by the same parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/steps.hpp"
#include "algorithms/transport/messages.hpp"
#include "base/reason.hpp"
#include "interpose/agreement.hpp"
#include "interpose/resources.hpp"
#include "tuning/selection.hpp"

namespace papaya {

// A region of the node's window, until it is destroyed or given back.
class Region {
 public:
  Region() = default;
  ~Region() { give_back(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  void take(const Resources& resources, std::int64_t offset, std::size_t bytes) noexcept;
  // Other ranks may still be in the last call. Until they have left it, what this one deposited stays as it is.
  void give_back() noexcept;
  bool exists() const noexcept { return regions_ != nullptr; }
  std::int64_t offset() const noexcept { return offset_; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::byte* begin() const noexcept { return regions_->region(offset_); }

 private:
  Regions* regions_ = nullptr;
  DepositArena* deposits_ = nullptr;
  std::int64_t offset_ = -1;
  std::size_t bytes_ = 0;
};

// How far a set-up is in which no rank waits for another (async_setup.hpp).
struct Joining {
  bool is_joined = false;
  std::uint64_t next_try = 1;          // the call
  std::unique_ptr<Prepared> prepared;  // until all ranks are
};

struct Plan {
  Plan(const tuning::Rule& chosen, std::size_t bytes, std::uint64_t number, bool device_through_host) noexcept;
  // What has been set up so far goes; it will never run.
  void give_up(Reason why) noexcept;

  const tuning::Rule* rule;
  std::size_t capacity;
  std::uint32_t trace_number;
  Collective collective;           // of the present call: one algorithm may serve two
  std::uint64_t ordinal;           // among the plans of its communicator; equal on all ranks
  std::uint64_t calls_before = 0;  // that it would have served so far, made natively; equal on all ranks
  Reason failure = Reason::none;   // why there is nothing prepared, for good
  std::size_t own_bytes = 0;       // as in Team
  bool is_lean = false;            // of a bcast or reduce: it borrows memory, equal on all ranks
  // A device's buffer goes through the host, and lack of memory ends the job: the others cannot be told.
  bool through_host;

  // Destroyed from the last to the first.
  Region region;
  std::unique_ptr<Notified> wire;
  std::unique_ptr<Messages> messages;
  std::unique_ptr<Messages> node_messages;
  std::unique_ptr<Prepared> prepared;  // the plan can run
  Joining joining;

  // Across nodes, of a collective that ranks may leave early: it is set up at the next call that nobody leaves before
  // all have come.
  bool is_due = false;
  bool is_named = false;        // by the user, who is told why it does not serve
  std::size_t first_bytes = 0;  // of the call that asked for it
};

// Whom a plan is for. Outlives it.
struct Members {
  Resources resources;
  Team team;  // without what belongs to the plan; `nodes` null: the plan has the wire alone
  int nodes;
  const std::vector<int>& world_ranks;  // in MPI_COMM_WORLD
  std::vector<std::int64_t>& offsets;   // room for a number of each rank; only on several nodes
};

// The plans of a communicator for its calls of one form. Their addresses stay.
class Plans {
 public:
  // The plan for calls of that rule and of up to that many bytes.
  Plan& plan_for(const Members& members, const tuning::Rule& rule, std::size_t bytes, Form form);
  // Null: there is none yet.
  Plan* find(const Members& members, const tuning::Rule& rule, std::size_t bytes) noexcept;
  auto begin() noexcept { return plans_.begin(); }
  auto end() noexcept { return plans_.end(); }
  auto begin() const noexcept { return plans_.begin(); }
  auto end() const noexcept { return plans_.end(); }
  // What has been prepared for the rule is given back, on all ranks in the same call, which none of them is in yet.
  void give_back(const tuning::Rule& rule) noexcept;
  void clear() noexcept { plans_.clear(); }

 private:
  std::list<Plan> plans_;
  std::uint64_t made_ = 0;
};

// The messages that a plan is made for when one of `bytes` comes.
std::size_t capacity_of(const Members& members, const Descriptor& algorithm, std::size_t bytes) noexcept;

// What a plan on one node needs of the window, and how much of that has to be left to others.
SharedBytes shared_on_one_node(const Members& members, const Plan& plan) noexcept;
std::size_t bytes_to_leave(const Members& members, const Plan& plan) noexcept;
// May its algorithm, of a collective that ranks may leave early, borrow memory (Plan::is_lean)?
bool may_be_lean(const Members& members, const Plan& plan) noexcept;

// On one node, in its region: makes this rank's share of that present; null if there is too little memory. It may be
// run once all ranks have done this.
std::unique_ptr<Prepared> prepare_on_one_node(const Members& members, Plan& plan) noexcept;

// Collective over the members, at a call number that is equal on all of them. Afterwards the plan can run on every
// rank, or has the same reason for its failure on every rank. All that is passed outlives it.
Steps set_up(Plan& plan, const Members& members, Agreement& agreement);

}  // namespace papaya
