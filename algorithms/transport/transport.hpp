// What carries data between nodes, and how a wire is made of it: notified communication among the ranks of one
// communicator. The steps are the same for every transport, and none of them waits for another rank, so that a
// nonblocking call may take them too:
//
//   1. where the transport connects(), begin_connecting(); then progress_connections() until link() is no longer under
//      way. The ranks agree on whether all links are up.
//   2. offer(): this rank's share of the wire. The ranks exchange the offsets; after this barrier all shares are
//      zero.
//   3. ArenaNotified::connect() with these offsets, if all have a share.
//
// interpose/make_wire.hpp takes them, for the library and for tests.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "algorithms/transport/arena.hpp"
#include "algorithms/transport/arena_notified.hpp"
#include "algorithms/transport/link.hpp"
#include "algorithms/transport/notified.hpp"
#include "algorithms/transport/on_failure.hpp"

namespace papaya {

class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual const char* name() const noexcept = 0;  // for people
  virtual Arena& arena() noexcept = 0;            // of this rank: what others write to

  // False, on all ranks alike: every rank reaches every other from the beginning.
  virtual bool connects() const noexcept { return false; }
  // `members` are ranks in MPI_COMM_WORLD. Connections that exist stay.
  virtual Link begin_connecting(const std::vector<int>& /*members*/) noexcept { return Link::up; }
  virtual Link link(const std::vector<int>& /*members*/) noexcept { return Link::up; }
  // An address that no answer comes from by then will not answer; TCP itself gives up after minutes.
  static constexpr std::chrono::seconds longest_connecting{20};
  // Other ranks that connect to this one may need it too. False if this rank can connect no more.
  virtual bool progress_connections() noexcept { return true; }

  // Null if there is no memory. `policy` outlives it. Throws std::bad_alloc.
  virtual std::unique_ptr<ArenaNotified> offer(const std::vector<int>& members, wait::Policy& policy,
                                               const SegmentShape& shape) = 0;

  // Moves what is under way. What a failure does is said when a transport is opened (on_failure.hpp).
  virtual void progress() noexcept = 0;
  // Where a failure loses a peer: whether this member is lost. Any thread.
  virtual bool is_lost(int /*member*/) noexcept { return false; }
  // The same for one whose failure the transport has not found out. Any thread.
  virtual void lose(int /*member*/) noexcept {}
  // Not collective: nothing is taken any more, and MPI_Finalize finds as little of it as may be. It is never closed nor
  // destroyed, since others may still write to its arena.
  virtual void discard() noexcept {}
  // Collective over the job, once no wire is left.
  virtual void close() noexcept = 0;

 protected:
  Transport() = default;
};

}  // namespace papaya
