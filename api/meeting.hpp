// Where the ranks of one weakly consistent collective meet: memory that they share if they are all on one node, else a
// wire between them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>

#include "algorithms/team.hpp"
#include "algorithms/transport/mpi/node_window.hpp"
#include "algorithms/transport/notified.hpp"
#include "algorithms/transport/transport.hpp"
#include "api/error.hpp"
#include "api/leaver.hpp"
#include "api/shared_segment.hpp"
#include "api/terms.hpp"
#include "base/settings.hpp"

namespace papaya::weak {

class Meeting {
 public:
  // Of all ranks of `comm`, a communicator of papaya's, from here on this one's.
  explicit Meeting(MPI_Comm comm);
  // Collective, after nobody uses the wire any more.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // First: agrees on the terms, which have the facts of the caller. Collective. `settings` are this process's, and
  // rank 0's afterwards as far as all ranks have to do alike.
  void agree(Terms& terms, Settings& settings);
  bool is_on_one_node() const noexcept { return is_on_one_node_; }

  // Then either: memory shared with all other ranks, which are on one node. Not collective, and this rank's outcome
  // alone: all have to agree on it.
  bool share_memory(const SegmentShape& shape, std::size_t region_bytes);
  void forget_name() noexcept { segment_.forget_name(); }
  // Or a wire, collective: the same error on all ranks, if any. Before that, where nodes are to have a region each:
  // whose ranks are where, and the region. Both collective, the latter's outcome this rank's alone.
  const Nodes& find_nodes();
  bool share_region(std::size_t bytes);
  Error connect(const SegmentShape& shape, OnFailure on_failure = OnFailure::end_job);
  // The least of all ranks' numbers. Collective.
  int least(int mine) const;

  // Where the ranks meet, for people.
  const char* place() const noexcept { return transport_ == nullptr ? "shared memory" : transport_->name(); }
  MPI_Comm comm() const noexcept { return comm_; }
  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  Team team() const;

  // Any thread.
  void progress() noexcept {
    if (transport_ != nullptr) transport_->progress();
  }
  // As Transport's; shared memory finds out nothing. Any thread.
  bool is_lost(int rank) noexcept { return transport_ != nullptr && transport_->is_lost(rank); }
  void lose(int rank) noexcept {
    if (transport_ != nullptr) transport_->lose(rank);
  }
  // Instead of destroying it, which is collective: then it never is.
  void discard() noexcept {
    if (transport_ != nullptr) transport_->discard();
  }
  // After a call: what it has written is on its way, as far as this rank has to see to that.
  void leave_call(std::size_t bytes) noexcept;

  // Error of the least rank that has one, on all ranks. Collective.
  Error agree(Error error) const;

 private:
  void start_process(const Settings& settings);
  MPI_Comm split_node() const;  // the ranks on this node, collective

  MPI_Comm comm_;
  int rank_ = 0;
  int ranks_ = 1;
  bool is_on_one_node_ = false;
  std::string name_;              // of the segment; empty: there is none
  std::size_t shared_bytes_ = 0;  // that it may have
  SharedSegment segment_;
  int node_size_ = 0;              // as PAPAYA_NODE_SIZE says
  MPI_Comm node_ = MPI_COMM_NULL;  // this rank's, where nodes have regions, as are these
  Nodes nodes_;
  NodeWindow window_;
  std::byte* region_ = nullptr;
  std::unique_ptr<Transport> transport_;
  bool wants_ucx_ = false;  // the user
  bool has_ucx_ = false;    // all processes, already
  bool takes_ucx_ = false;
  bool leaves_alone_ = false;       // the segment's
  std::unique_ptr<Notified> wire_;  // over one of these
  std::unique_ptr<Leaver> leaver_;  // of the wire, once needed
};

}  // namespace papaya::weak
