// What plans are made of. Nothing here knows MPI, so that tests put something else in its place (tests/unit/plan.cpp).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "algorithms/transport/deposit_arena.hpp"
#include "algorithms/transport/messages.hpp"
#include "algorithms/transport/regions.hpp"
#include "algorithms/transport/transport.hpp"
#include "base/reason.hpp"

namespace papaya {

// Messages for ranks that are ahead of others (Team::messages). Members are ranks in MPI_COMM_WORLD; tags, by member,
// tell apart teams that exist at once. Throws std::bad_alloc.
class MessageChannels {
 public:
  virtual ~MessageChannels() = default;
  virtual std::unique_ptr<Messages> on_node(const std::vector<int>& members, std::vector<int> tags) = 0;
  virtual std::unique_ptr<Messages> between_nodes(const std::vector<int>& members, std::vector<int> tags) = 0;
  virtual int largest_tag() const noexcept = 0;  // between nodes; equal on all ranks
};

// The process's.
struct Resources {
  Regions& regions;        // of the node's window
  DepositArena& deposits;  // in it
  Transport* transport;    // between nodes; null: there is none,
  bool has_too_little;     // because PAPAYA_SHM_LIMIT allows no memory that ranks of other nodes write to
  MessageChannels& channels;
  std::size_t limit;                                // PAPAYA_SHM_LIMIT
  Reason why_no_memory = Reason::no_shared_memory;  // of the node, if there is none
};

}  // namespace papaya
