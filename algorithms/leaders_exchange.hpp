// MPI_Allgather and MPI_Alltoall across nodes: the ranks of a node put what they have together in shared memory, one
// message goes to each other node, and what has come is broadcast in the node. What a message holds is the
// collective's: hierarchical_allgather, hierarchical_alltoall. N(N-1) messages between N nodes of q ranks, where each
// rank by itself sends q^2 as many.
//
// Ranks of a node take turns with the messages, so that as many cores copy and send: the one for the node i further on
// is number (i-1) mod k of k leaders, at both ends (DPML: Bayatpour et al., SC'17). A leader sends all its messages at
// once, to the next node first, and takes what comes in the order of arrival. Short messages are broadcast together:
// once for each leader, not for each message. Then each leader has its own before it takes part in the broadcasts, in
// the order of leaders; so none waits for one that waits for it.
//
// Blocks go in fragments, whose messages go in pieces of at most `piece_bytes`. A leader sends the next fragment when
// it has taken all of this one. The one that is most behind has slots for its pieces: all others have taken those of
// the fragment before. So somebody always goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/hierarchy.hpp"
#include "algorithms/streams.hpp"

namespace papaya {

class LeadersExchange : public Prepared {
 public:
  struct Shape {
    std::size_t piece_bytes;     // as piece_for() has it
    std::size_t fragment_bytes;  // of a block, at most
    std::int64_t leaders;        // of each node; 0: as many as pay
    std::size_t shared_bytes;    // then: of a message, from which on so many lead at least:
    int shared_leaders;
    std::size_t gathered_bytes;  // as gathered_for() has it
  };
  // Messages are broadcast together in the node up to so many bytes; the phases on a node cut what is larger.
  static constexpr std::size_t phase_bytes = 131072;
  // So many pieces a message of one fragment has at most. Credit for one of those before may not be due yet.
  static constexpr std::size_t pieces_at_once = Streams::slots_of_a_pair - 1;

  // As wanted, but no larger than the largest message, of so many blocks of `capacity` bytes, and less where there are
  // many nodes; at least a byte of each block.
  static std::size_t piece_for(const Layout& layout, std::int64_t wanted, std::size_t blocks,
                               std::size_t capacity) noexcept {
    const std::size_t useful = std::min(static_cast<std::size_t>(wanted), blocks * capacity);
    return in_lines(std::max(Streams::fair_chunk(layout.leaders(), useful), blocks));
  }
  // Of the phase that gathers in the node, where a rank gives so much: calls of few bytes take little shared memory.
  static std::size_t gathered_for(std::size_t given_bytes) noexcept {
    return std::min(in_lines(given_bytes), phase_bytes);
  }
  static SegmentShape segment(const Layout& layout, std::size_t piece_bytes) noexcept {
    return Streams::Shape::among_leaders(layout, piece_bytes).segment();
  }
  static std::size_t region_bytes(int node_ranks, std::size_t gathered_bytes);

  bool run(const Operands& operands, wait::Site& site) final;
  bool is_missing(int rank) const final;
  bool may_end() noexcept final { return streams_.may_end(); }

 protected:
  LeadersExchange(const Team& team, const Shape& shape);
  void allocate();  // once what a message holds is known

  // Of each block, bytes [offset, offset + bytes).
  struct Fragment {
    std::size_t offset;
    std::size_t bytes;
  };
  // What each rank gives its node.
  virtual std::size_t given_bytes(std::size_t fragment_bytes) const noexcept = 0;
  virtual const std::byte* give(const Operands& operands, const Fragment& fragment) = 0;
  virtual std::size_t message_bytes(int from, int to, std::size_t fragment_bytes) const noexcept = 0;
  // Of what the ranks of this node have given, one after the other, what goes to another: in place, or put together in
  // `room`.
  virtual const std::byte* message_for(int node, const std::byte* given, const Fragment& fragment,
                                       std::byte* room) noexcept = 0;
  // This rank's part of what its own node has given, and of the message from another.
  virtual void keep_own(const Operands& operands, const std::byte* given, const Fragment& fragment) noexcept = 0;
  virtual void keep(const Operands& operands, int origin, const std::byte* message,
                    const Fragment& fragment) noexcept = 0;

  std::size_t ranks_of(int node) const noexcept { return position_.nodes.ranks[static_cast<std::size_t>(node)].size(); }

  const Team team_;
  const NodePosition position_;

 private:
  // Messages of nodes [begin, end) before this one, which are broadcast together.
  struct Batch {
    int begin;
    int end;
  };
  void run_fragment(const Operands& operands, const Fragment& fragment, wait::Site& site);
  void gather(const Operands& operands, const Fragment& fragment, wait::Site& site);
  void send_all(const Fragment& fragment, int leaders, wait::Site& site);
  Batch batch_from(int begin, std::size_t fragment_bytes) const noexcept;
  void place(const Batch& batch, std::size_t fragment_bytes, int leaders) noexcept;
  void take_batch(const Operands& operands, const Fragment& fragment, const Batch& batch, int leaders,
                  wait::Site& site);
  void receive(const Batch& batch, int leaders, wait::Site& site);
  bool receive_what_has_come(const Batch& batch, int leaders);

  // Equal on all ranks.
  int leaders_for(std::size_t fragment_bytes) const noexcept;
  // Of the nodes [first, ...) further on or before, the first one that this leader serves; then every `of`th.
  static int first_of(int first, int leader, int of) noexcept { return first + (leader + of - (first - 1) % of) % of; }
  int origin_at(int distance) const noexcept {
    return (position_.node - distance + position_.nodes.count()) % position_.nodes.count();
  }
  // With this leader's number on another node.
  int peer_on(int node) const noexcept;
  template <class Ready>
  void wait_until(Ready&& ready, int rank, wait::Site& site);

  // By their distance from this node; the messages of one leader in a batch lie side by side.
  struct Incoming {
    std::byte* at;
    std::size_t bytes;
    std::size_t received;
  };

  const Shape shape_;
  const int most_leaders_;  // equal on all nodes
  const int largest_node_;  // its number
  NodePhase gathering_;
  NodePhase broadcast_;
  Streams streams_;
  std::unique_ptr<std::byte[]> given_;     // by all ranks of the node
  std::unique_ptr<std::byte[]> outgoing_;  // messages put together
  std::unique_ptr<std::byte[]> incoming_;  // of a batch
  std::vector<Incoming> messages_;
  int missing_ = -1;
};

}  // namespace papaya
