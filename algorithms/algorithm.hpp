// The self-describing algorithm. One file per algorithm ends in a Descriptor that registers itself; the
// environment, `papaya info`, the tuning table, the trace and the tests read the registry and know no
// algorithm by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/datatype.hpp"
#include "algorithms/team.hpp"
#include "algorithms/transport/notified.hpp"
#include "base/collective.hpp"
#include "base/cost_model.hpp"

namespace papaya {

// What goes to or comes from one rank in an alltoallv or an allgatherv.
struct Block {
  std::byte* at;
  std::size_t bytes;
};

// One call of a collective as an algorithm sees it: this rank's contiguous buffers. What MPI calls
// insignificant on this rank is null.
//
//   collective   send                          receive                        bytes
//   allreduce    operand                       result; may equal send         message
//   reduce       operand                       at the root: result; may equal send   message
//   bcast        at the root: message          elsewhere: message             message
//   gather       own block; at the root it may lie in receive   at the root: blocks of all ranks   block
//   scatter      at the root: blocks for all ranks   own block; at the root null where it stays in send   block
//   allgather    own block, may lie in receive  blocks of all ranks           block
//   allgatherv   own block, may lie in receive  null; `receive_blocks` has the blocks of all ranks   largest block
//   alltoall     blocks for all ranks          blocks of all ranks; may equal send   block
//   alltoallv    null                          null                           0
//   barrier      null                          null                           0
//   reduce_scatter_block   operand, a block for each rank   own block of the result; may equal send   block
//   reduce_scatter         the same, `starts` has the blocks    the same                              largest block
struct Operands {
  const void* send;
  void* receive;
  std::size_t count;  // reductions: elements of `bytes`
  std::size_t bytes;
  int root;                    // rank in the team, -1 without
  const Reduction* reduction;  // reductions only

  // allgatherv: `receive_blocks`, whose sizes all ranks know. alltoallv: both, a block for each rank, of a size that
  // its sender and its receiver alone know. Both may be the same blocks. Afterwards the size of what is received is
  // what has come: no more than there is room for, less if the sender had less.
  const Block* send_blocks = nullptr;
  Block* receive_blocks = nullptr;

  // reduce_scatter only: where each rank's block begins in the operand, in bytes, and where the last one ends.
  const std::size_t* starts = nullptr;

  // This rank cannot be served as the others are (its buffer is on a device, say), which it alone knows. It
  // comes to the call all the same, and the algorithm makes sure that then all ranks leave it to MPI. Never set
  // where ranks may leave before all have arrived (reduce, bcast, barrier).
  bool declines = false;

  // A chunk of a message for which MPI makes those wait who are ahead: so does the algorithm (Team::messages).
  bool waits = false;

  // Called once this rank's operand is visible to the others, if it is set: bookkeeping that can wait until
  // then does not delay them.
  void (*deposited)(void* context) = nullptr;
  void* context = nullptr;
};

class OverWire;

// What one algorithm keeps for one team between calls. Made collectively by prepare, called by the team's own
// thread.
class Prepared {
 public:
  virtual ~Prepared() = default;
  // True when the result is in place on this rank. False, on every rank alike and with what the program sends
  // as it was, if any of them declines.
  virtual bool run(const Operands& operands, wait::Site& site) = 0;

  // During a run that waits: has `rank` not arrived yet? For the stall report.
  virtual bool is_missing(int rank) const = 0;

  // The whole that this is a phase of, on some of its ranks: who asks for missing ranks asks that one.
  const Prepared* phase_of = nullptr;

  // Whether its end would wait for no other rank: those that left calls early may have been told less than they will
  // be.
  virtual bool may_end() noexcept { return true; }

  // Not null where a call can be started and finished apart (steps.hpp).
  virtual OverWire* split_phase() noexcept { return nullptr; }
};

struct Parameter {
  std::string_view name;
  std::int64_t fallback;
  std::int64_t lowest;
  std::int64_t highest;
  std::string_view help;
  std::string_view old_name = {};  // what it was called before: still understood, with a warning
};

// When `auto` takes an algorithm for calls on one node, as measured (docs/measurements.md). Sizes begin where those of
// an algorithm with a lower limit end.
struct AutomaticUse {
  static constexpr std::uint64_t any_size = std::numeric_limits<std::uint64_t>::max();
  int most_ranks = 0;  // 0: never
  std::uint64_t lowest_bytes = 1;
  std::uint64_t highest_bytes = any_size;           // or Descriptor::max_bytes, if that is less
  std::uint64_t highest_oversubscribed = any_size;  // where ranks outnumber cores and MPI yields
};

struct Descriptor {
  Collective collective;
  std::string_view name;             // the file's name
  std::string_view old_name = {};    // what it was called before: still understood, with a warning
  std::string_view summary;          // one line with its cost
  std::string_view source;           // the paper
  bool one_node;                     // needs all ranks on one node
  bool serves_alltoallv = false;     // alltoall: run() takes Operands::send_blocks too
  bool serves_allgatherv = false;    // allgather: run() takes Operands::receive_blocks too
  bool needs_arrival_order = false;  // only under PAPAYA_ORDER=arrival and for commutative operations
  bool predefined_only = false;      // reductions: cuts messages at elements, which only these have alike on all ranks
  bool split_phase =
      false;  // prepared with the wire alone (no nodes, no region) it has one: nonblocking calls may have it
  bool serves_declines = true;  // Operands::declines; where not, a device's buffer goes through the host
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();          // largest Operands::bytes it takes
  std::size_t max_element_bytes = std::numeric_limits<std::size_t>::max();  // largest Reduction::element_bytes
  std::span<const Parameter> parameters;
  AutomaticUse automatic = {};
  // Inside a hierarchical algorithm it may be the phase on one node, for messages of up to max_bytes (hierarchy.hpp).
  bool is_node_phase = false;
  // For those that the report proposes across nodes: how long the message is between nodes, once it is complete on
  // each. On one node it proposes those of `automatic`.
  NetworkTime network_ns = nullptr;
  // For those that work across nodes: how long a call takes if all ranks come at once, with what it does on the nodes
  // (costs.hpp). Trials across nodes leave out who cannot win by it.
  NetworkTime call_ns = nullptr;
  // Its parameter `radix`, which is measured by tens of calls unless the user says it, as call_ns has it: trials set it
  // so, since they are to lose little.
  int (*radix)(const NetworkCall& call) noexcept = nullptr;

  // For those that work across nodes: what each rank offers the others. Team::wire is there. `layout` is the team's
  // that is prepared.
  SegmentShape (*segment)(const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) = nullptr;

  // For those that work in shared memory: bytes needed for `ranks`; the region is zeroed before prepare.
  // `capacity` is the largest Operands::bytes of these calls, or, where calls may be larger than that, the
  // bytes each rank may use to run ahead of the others.
  // Those with both have a region for each node, for the ranks on it: Team::nodes says who they are.
  std::size_t (*region_bytes)(int ranks, std::size_t capacity, std::span<const std::int64_t> values) = nullptr;
  // For those that may instead borrow the memory of their deposits, with Team::deposits: bytes of the region then, for
  // calls of any size that the algorithm takes. `capacity` is the arena's largest extent; `own_bytes` as in Team. They
  // serve declines, and every rank waits for every other: see transport/deposit_arena.hpp.
  std::size_t (*control_bytes)(int ranks, std::size_t capacity, std::size_t own_bytes) = nullptr;
  // For those that ranks may leave before others come, and that may borrow memory nevertheless: as much of the region
  // as they need then. `largest` is the arena's largest extent, the other two are as for region_bytes. With
  // Team::deposits they are prepared for that.
  std::size_t (*lean_bytes)(int ranks, std::size_t capacity, std::size_t largest) = nullptr;
  // `values` has one number per parameter.
  std::unique_ptr<Prepared> (*prepare)(const Team& team, std::size_t capacity, std::span<const std::int64_t> values);
};

// Bytes of memory that the ranks of one node share for a team that is all on it: what stands for the wire, if it has
// one, then the region.
struct SharedBytes {
  std::size_t wire;
  std::size_t region;
  std::size_t total() const noexcept { return wire + region; }
};
SharedBytes shared_bytes(const Descriptor& descriptor, const Layout& layout, std::size_t capacity,
                         std::span<const std::int64_t> values);

// All algorithms of the library, in no particular order.
std::span<const Descriptor* const> registry() noexcept;
// By its name or its old name.
const Descriptor* find_algorithm(Collective collective, std::string_view name) noexcept;

// Can it be chosen for calls of `collective`?
inline bool serves(const Descriptor& descriptor, Collective collective) noexcept {
  return descriptor.collective == collective || (collective == Collective::alltoallv && descriptor.serves_alltoallv) ||
         (collective == Collective::allgatherv && descriptor.serves_allgatherv);
}

// Its position in the registry, from 1: the number by which records refer to it. 0 is "native".
std::uint32_t trace_number(const Descriptor& descriptor) noexcept;

class Registration {
 public:
  explicit Registration(const Descriptor& descriptor);
};

}  // namespace papaya
