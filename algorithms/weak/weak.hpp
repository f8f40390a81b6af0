// The self-describing weakly consistent collective. One file per algorithm ends in a WeakDescriptor that registers
// itself; the C API, the command and the tests read the registry and know no algorithm by name. Nothing that MPI
// promises is replaced by these: a program asks for them.
//
// All calls of one prepared collective are alike: as many elements, the same reduction, the same root. A rank's calls
// are its clock: 1, 2, 3 and so on. All ranks make the same number of calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "algorithms/algorithm.hpp"
#include "algorithms/kernels/reduce.hpp"
#include "algorithms/steps.hpp"

namespace papaya {

enum class WeakCollective : std::uint8_t {
  // Of every rank one contribution, at most `slack` clocks old.
  ssp_allreduce,
  // A share of the data, from the first element on, or a share of the ranks.
  threshold_bcast,
  threshold_reduce,
  // Whoever has come: the others' contributions are those of earlier calls that have not been used yet.
  partial_allreduce,
  // Ranks in groups that change from call to call.
  group_allreduce,
  // The largest elements only; the rest is carried over to the next call.
  sparse_allreduce,
};
std::string_view name_of(WeakCollective collective) noexcept;

// What all calls have in common, equal on all ranks.
struct WeakRequest {
  int ranks;
  std::size_t count;  // elements
  std::size_t element_bytes;
  int root = -1;                         // -1 without
  const Reduction* reduction = nullptr;  // reductions only; outlives what is prepared
  // Of the reduction, where they are among those that kernels know.
  std::optional<kernels::ElementType> type = std::nullopt;
  std::optional<kernels::Operation> operation = std::nullopt;
  double share = 1;                      // thresholds only: in (0, 1]
  const Nodes* nodes = nullptr;          // whose ranks are where; null: all are on one node, or each stands for itself
  std::span<const std::int64_t> values;  // one per parameter of the descriptor

  std::size_t bytes() const noexcept { return count * element_bytes; }
};

// Of a call, once it is done.
struct WeakStatus {
  std::uint64_t clock = 0;   // of the call
  std::uint64_t oldest = 0;  // the clock of the oldest contribution in the result; 0: it has none
  std::uint64_t own = 0;     // the clock of this rank's own contribution in the result; 0: it has none
  int ranks = 0;             // whose contributions are in the result; of a broadcast, that have it
  // Where contributions that are not used are carried over: this rank's that are in no result up to this one.
  std::uint64_t unused = 0;
  std::size_t bytes = 0;  // of the result that this call has brought up to date, from its first byte on
  double share = 1;       // of the elements, or of the ranks, that took part
  double residual = 0;  // sparse only: the norm of what is left for later calls, of what there was; NaN if that is not
                        // finite
  // For messages, or until those it sent in the previous call had left. Of a call that is not waited for, up to the
  // progress() that found so.
  std::uint64_t waited_ticks = 0;
  bool has_waited = false;
};

// A portion of the result whose contributions have clocks of their own, up to the next portion.
struct WeakPortion {
  std::size_t begin;  // its first element
  std::uint64_t oldest;
  std::uint64_t own;
};

// What an algorithm keeps for one team. One call at a time.
class Weak : public OverWire {
 public:
  // Of the last call, once it is done.
  const WeakStatus& status() const noexcept { return status_; }
  // Of its result, ascending, some of them empty perhaps; none where the status speaks of all elements alike.
  virtual std::span<const WeakPortion> portions() const noexcept { return {}; }

  // The value of a parameter that holds, where the one that was asked for cannot be kept to.
  virtual std::int64_t in_force(std::size_t /*parameter*/, std::int64_t asked) const noexcept { return asked; }

  // What this rank has brought to calls and none has sent yet, element by element; empty where all is sent.
  virtual std::span<const std::byte> residual() const noexcept { return {}; }
  // The next call sends that, too, and leaves nothing. For all ranks, between the same two calls.
  virtual void flush() noexcept {}
  // In and between calls: does for others what can be done now, and waits for nothing.
  virtual void stand_in() noexcept {}
  // No thread of it runs from here on; what it did is done in calls. For MPI_Finalize.
  virtual void stop_thread() noexcept {}
  // Between calls: this rank's contributions that are in no result, combined, which then are in no later one either.
  // Returns how many; without any, `to` stays as it is. After the last call it finds all that are left.
  virtual std::uint64_t withdraw(void* /*to*/) noexcept { return 0; }

 protected:
  using OverWire::OverWire;

  void count_wait(std::uint64_t begin_ticks) noexcept {
    status_.waited_ticks += clock::ticks() - begin_ticks;
    status_.has_waited = true;
  }

  WeakStatus status_;
};

struct WeakDescriptor {
  WeakCollective collective;
  std::string_view name;     // the file's name
  std::string_view summary;  // one line with its cost
  std::string_view source;   // the paper
  bool commutative_only = false;
  // Where the program names none, the one with the highest of these that the message reaches.
  static constexpr std::uint64_t never_automatic = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t automatic_from_bytes = never_automatic;
  bool automatic_without_slack = true;  // with a slack of 0, too
  // A sentence that says why such calls cannot be served; null if they can. Null: all can.
  const char* (*refusal)(const WeakRequest& request) noexcept = nullptr;
  std::span<const Parameter> parameters;

  // What each rank offers the others. `request` is complete but for the reduction's function. Null: ranks meet in the
  // region alone, and all have to be on one node. With both, each node has a region, of which request.nodes tells.
  SegmentShape (*segment)(const WeakRequest& request) = nullptr;
  // Bytes of Team::region, which is zero at first, if it needs one.
  std::size_t (*region_bytes)(const WeakRequest& request) = nullptr;
  // Team::wire is there, with such a segment.
  std::unique_ptr<Weak> (*prepare)(const Team& team, const WeakRequest& request) = nullptr;
};

// Of those that are stale synchronous parallel.
inline constexpr Parameter slack_parameter = {.name = "slack",
                                              .fallback = 0,
                                              .lowest = 0,
                                              .highest = 1 << 20,
                                              .help = "clocks that a contribution in the result may be old"};

// By collective, then by name.
std::span<const WeakDescriptor* const> weak_registry() noexcept;
const WeakDescriptor* find_weak(std::string_view name) noexcept;

class WeakRegistration {
 public:
  explicit WeakRegistration(const WeakDescriptor& descriptor);
};

}  // namespace papaya
