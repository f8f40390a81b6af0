// A wire between nodes, made by the ranks of a communicator together. The one way to make one, for blocking and
// nonblocking callers (agreement.hpp) and every transport (algorithms/transport/transport.hpp says the steps).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/steps.hpp"
#include "algorithms/transport/transport.hpp"
#include "base/reason.hpp"
#include "interpose/agreement.hpp"

namespace papaya {

// All of it outlives the steps, and the policy the wire.
struct WireRequest {
  Transport& transport;
  const std::vector<int>& members;  // ranks in MPI_COMM_WORLD
  wait::Policy& policy;
  SegmentShape shape;
};

struct MadeWire {
  std::unique_ptr<ArenaNotified> wire;  // null, on all ranks alike: there can be none,
  Reason failure = Reason::none;        // and why
};

// Collective. `offsets` has room for a number of each member.
Steps make_wire(WireRequest request, Agreement& agreement, std::vector<std::int64_t>& offsets, MadeWire& made);

}  // namespace papaya
