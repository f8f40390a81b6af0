// Messages by MPI, on a communicator of papaya's own that holds all ranks of the team.
#pragma once

#include <mpi.h>

#include <utility>
#include <vector>

#include "algorithms/transport/messages.hpp"

namespace papaya {

class TeamMessages final : public Messages {
 public:
  // By rank of the team: which that is in `comm`, and the tag of what is sent to it, which tells the team from others
  // there. Tags that are not known yet are set before the first message.
  TeamMessages(MPI_Comm comm, std::vector<int> ranks, std::vector<int> tags = {});
  void set_tags(std::vector<int> tags) noexcept { tags_ = std::move(tags); }

  void send(int to, const void* data, std::size_t bytes) noexcept override;
  void receive(int from, void* data, std::size_t bytes) noexcept override;
  void begin_send(int to, const void* data, std::size_t bytes) noexcept override;
  bool are_sent() noexcept override;
  bool has_received(int from, void* data, std::size_t room, std::size_t& bytes) noexcept override;

 private:
  int tag_here() const noexcept { return tags_[static_cast<std::size_t>(rank_)]; }

  const MPI_Comm comm_;
  const std::vector<int> ranks_;
  std::vector<int> tags_;
  int rank_ = 0;                       // this one's, of the team
  std::vector<MPI_Request> sends_;     // under way
  std::vector<MPI_Request> receives_;  // by rank; null: nothing has been asked for
};

}  // namespace papaya
