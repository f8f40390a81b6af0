// Where the ranks of one weakly consistent collective meet: memory that they share if they are all on one node, else a
// wire between them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

#include "algorithms/team.hpp"
#include "algorithms/transport/mpi/node_window.hpp"
#include "algorithms/transport/notified.hpp"
#include "algorithms/transport/transport.hpp"
#include "api/error.hpp"
#include "base/settings.hpp"

namespace papaya::weak {

class Meeting {
 public:
  // Collective over `comm`, a communicator of papaya's, from here on this one's. `settings` are equal on all ranks.
  Meeting(MPI_Comm comm, const Settings& settings);
  // Collective, after nobody uses the wire any more.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  bool is_on_one_node() const noexcept { return is_on_one_node_; }

  // Collective. `region_bytes` only on one node. The same error on all ranks, if any.
  Error open(const SegmentShape& shape, std::size_t region_bytes, const Settings& settings);

  MPI_Comm comm() const noexcept { return comm_; }
  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  Team team() const;

  // Any thread.
  void progress() noexcept {
    if (transport_ != nullptr) transport_->progress();
  }
  // After a call: what it has written is on its way, as far as this rank has to see to that.
  void leave_call(std::size_t bytes) noexcept;

  // Error of the least rank that has one, on all ranks. Collective.
  Error agree(Error error) const;

 private:
  bool share_memory(const SegmentShape& shape, std::size_t region_bytes);
  Error connect(const SegmentShape& shape, const Settings& settings);

  MPI_Comm comm_;
  int rank_ = 0;
  int ranks_ = 1;
  bool is_on_one_node_ = false;
  NodeWindow window_;
  std::byte* region_ = nullptr;
  std::unique_ptr<Transport> transport_;
  bool takes_ucx_ = false;
  std::unique_ptr<Notified> wire_;  // over one of these
};

}  // namespace papaya::weak
