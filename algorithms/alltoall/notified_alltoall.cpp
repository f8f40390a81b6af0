// MPI_Alltoall and MPI_Alltoallv by one-sided writes with a notification each (Iakymchuk et al. 2021, section IV-B):
// every rank writes its block for each other rank straight into that one's segment. Blocks are taken as they come,
// whoever's they are.
//
// Rank r begins with r+1 and goes round, so that in every step each rank is written to by one. A block goes in chunks
// of at most `chunk_bytes`, at least one, and the last one says that it is: only the two ranks concerned know a block's
// size. The chunks from one rank to another are counted from the first call on; number n goes to slot n mod 2 of the
// pair, whose notification says the number, the bytes and whether the block ends there.
//
// Each pair is a sliding window. What was sent before the last call in which the peer was heard is known to be
// released: it comes to a call only after it has ended the one before. So blocks of one chunk, the usual ones, need no
// credit. Each chunk of a longer block returns it.
//
// Cost: (p-1) S bytes sent and received by each rank, one latency; a copy out of the segment.

#include <algorithm>
#include <cstring>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/sliding_window.hpp"
#include "algorithms/steps.hpp"

namespace papaya {

namespace {

constexpr SlidingWindow window = {.slots = 2, .credits_at_once = SlidingWindow::explicit_only};
constexpr std::int64_t most_chunk_bytes = 1 << 20;

// With many ranks so small that all chunks together take 2 MiB, but 4 KiB at least.
std::size_t chunk_bytes_of(int ranks, std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  constexpr std::size_t memory = 2 << 20;
  constexpr std::size_t least = 4096;
  return in_lines(std::min({capacity, static_cast<std::size_t>(values[0]),
                            std::max(memory / (window.slots * static_cast<std::size_t>(ranks)), least)}));
}

// What a slot's notification says.
struct Mark {
  std::uint64_t chunks;  // of the pair, this one included
  std::size_t bytes;
  bool is_last;  // of its block

  static constexpr int bytes_bits = 21;
  static_assert(most_chunk_bytes < 1 << bytes_bits);
  std::uint64_t packed() const noexcept {
    return chunks << (bytes_bits + 1) | static_cast<std::uint64_t>(bytes) << 1 | (is_last ? 1 : 0);
  }
  static Mark unpacked(std::uint64_t value) noexcept {
    return {value >> (bytes_bits + 1), static_cast<std::size_t>(value >> 1 & ((1 << bytes_bits) - 1)),
            (value & 1) != 0};
  }
};

class NotifiedAlltoall final : public OverWire {
 public:
  NotifiedAlltoall(const Team& team, std::size_t chunk_bytes)
      : OverWire(team),
        chunk_bytes_(chunk_bytes),
        pairs_(static_cast<std::size_t>(team.size), Pair(team.first_round - 1)) {}

  // Waits for the last credits of the others, which write nothing after them.
  ~NotifiedAlltoall() override {
    wait::Site site;
    for (int peer = 0; peer < team_.size; ++peer)
      if (const std::uint64_t last = pair_of(peer).to.last_credit(); last > team_.first_round - 1)
        team_.wire->wait(
            *team_.policy, site, [&] { return team_.wire->look(credit_id(peer)) >= last; }, this);
  }

  bool is_missing(int rank) const override { return pairs_[static_cast<std::size_t>(rank)].receives; }

 private:
  // This rank and a peer: chunks since the beginning, and what is left of the present call.
  struct Pair {
    explicit Pair(std::uint64_t before) noexcept : to(window, before), from(window, before) {}

    SlidingWindow::Sender to;
    SlidingWindow::Receiver from;
    std::uint64_t sent_before = 0;  // the present call
    std::uint64_t received_before = 0;
    Block out{};
    Block in{};
    std::size_t bytes_sent = 0;
    std::size_t bytes_received = 0;
    bool sends = false;
    bool receives = false;
  };

  Steps steps(Operands operands) override {
    begin(operands);
    if (operands.send_blocks != nullptr)
      in_place_ = operands.send_blocks == operands.receive_blocks;
    else
      in_place_ = operands.send == operands.receive;
    bool told = false;
    while (open_ > 0) {
      bool moved = send_what_may_go();
      if (moved && in_place_) co_await released(*team_.wire);
      moved |= receive_what_has_come();
      if (!told) tell_deposited(operands);
      told = true;
      if (open_ > 0 && !moved) co_await until([this] { return can_move(); });
    }
    co_await released(*team_.wire);
    if (operands.receive_blocks != nullptr)
      for (int rank = 0; rank < team_.size; ++rank) operands.receive_blocks[rank].bytes = pair_of(rank).bytes_received;
  }

  void begin(const Operands& operands) noexcept {
    open_ = 0;
    for (int rank = 0; rank < team_.size; ++rank) {
      Pair& pair = pair_of(rank);
      if (operands.send_blocks != nullptr) {
        pair.out = operands.send_blocks[rank];
        pair.in = operands.receive_blocks[rank];
      } else {
        const std::size_t at = static_cast<std::size_t>(rank) * operands.bytes;
        pair.out = {const_cast<std::byte*>(static_cast<const std::byte*>(operands.send)) + at, operands.bytes};
        pair.in = {static_cast<std::byte*>(operands.receive) + at, operands.bytes};
      }
      pair.bytes_sent = pair.bytes_received = 0;
      pair.sent_before = pair.to.sent();
      pair.received_before = pair.from.released();
      if (rank == team_.rank) {
        pair.bytes_received = std::min(pair.out.bytes, pair.in.bytes);
        if (pair.out.at != pair.in.at && pair.bytes_received != 0)
          std::memcpy(pair.in.at, pair.out.at, pair.bytes_received);
      } else {
        pair.sends = pair.receives = true;
        open_ += 2;
      }
    }
  }

  bool may_send(int peer) noexcept {
    Pair& pair = pair_of(peer);
    return pair.sends && pair.to.has_slot([&] { return team_.wire->look(credit_id(peer)); });
  }
  void send(int peer) noexcept {
    Pair& pair = pair_of(peer);
    const std::size_t bytes = std::min(chunk_bytes_, pair.out.bytes - pair.bytes_sent);
    const bool is_first = pair.bytes_sent == 0;
    const bool is_last = pair.bytes_sent + bytes == pair.out.bytes;
    const std::uint64_t number = pair.to.send();
    const std::uint64_t slot = slot_of(number);
    team_.wire->write_notify(peer, slot_offset(team_.rank, slot), pair.out.at + pair.bytes_sent, bytes,
                             chunk_id(team_.rank, slot), Mark{number, bytes, is_last}.packed());
    pair.bytes_sent += bytes;
    if (!is_first || !is_last) pair.to.expect_credit();
    if (is_last) {
      pair.sends = false;
      --open_;
    }
  }

  bool may_receive(int peer) noexcept {
    const Pair& pair = pair_of(peer);
    if (!pair.receives) return false;
    // In place what comes overwrites what has been sent.
    if (in_place_ && pair.sends && pair.to.sent() - pair.sent_before <= pair.from.released() - pair.received_before)
      return false;
    const std::uint64_t next = pair.from.released() + 1;
    return Mark::unpacked(team_.wire->look(chunk_id(peer, slot_of(next)))).chunks >= next;
  }
  void receive(int peer) noexcept {
    Pair& pair = pair_of(peer);
    const std::uint64_t slot = slot_of(pair.from.released() + 1);
    const Mark mark = Mark::unpacked(team_.wire->look(chunk_id(peer, slot)));
    const std::size_t bytes = std::min(mark.bytes, pair.in.bytes - pair.bytes_received);
    if (bytes != 0)
      std::memcpy(pair.in.at + pair.bytes_received, team_.wire->segment() + slot_offset(peer, slot), bytes);
    const bool is_first = pair.from.released() == pair.received_before;
    pair.bytes_received += bytes;
    pair.from.release();
    // It has ended the call before.
    if (is_first) pair.to.knows_released(pair.sent_before);
    if (!is_first || !mark.is_last) team_.wire->notify(peer, credit_id(team_.rank), pair.from.released());
    if (mark.is_last) {
      pair.receives = false;
      --open_;
    }
  }

  bool send_what_may_go() noexcept {
    bool moved = false;
    for (int i = 1; i < team_.size; ++i)
      if (const int peer = (team_.rank + i) % team_.size; may_send(peer)) {
        send(peer);
        moved = true;
      }
    return moved;
  }
  bool receive_what_has_come() noexcept {
    bool moved = false;
    // From the rank before on: they are the first to write to this one.
    for (int i = 1; i < team_.size; ++i)
      if (const int peer = (team_.rank - i + team_.size) % team_.size; may_receive(peer)) {
        receive(peer);
        moved = true;
      }
    return moved;
  }
  bool can_move() noexcept {
    for (int peer = 0; peer < team_.size; ++peer)
      if (may_receive(peer) || may_send(peer)) return true;
    return false;
  }

  Pair& pair_of(int peer) noexcept { return pairs_[static_cast<std::size_t>(peer)]; }
  static std::uint64_t slot_of(std::uint64_t number) noexcept { return number % window.slots; }
  // In the segment of whoever receives.
  std::size_t slot_offset(int writer, std::uint64_t slot) const noexcept {
    return (static_cast<std::size_t>(writer) * window.slots + static_cast<std::size_t>(slot)) * chunk_bytes_;
  }
  static int chunk_id(int writer, std::uint64_t slot) noexcept {
    return writer * static_cast<int>(window.slots) + static_cast<int>(slot);
  }
  int credit_id(int reader) const noexcept { return team_.size * static_cast<int>(window.slots) + reader; }

  const std::size_t chunk_bytes_;
  std::vector<Pair> pairs_;
  int open_ = 0;  // blocks of the present call that are still to be sent or received
  bool in_place_ = false;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", usual_chunk_bytes, 64, most_chunk_bytes,
     "bytes of a block that travel at a time, or fewer with many ranks", "part_bytes"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::alltoall,
    .name = "notified_alltoall",
    .summary = "each rank writes to all others with a notification each; blocks are taken as they come",
    .source = "Iakymchuk et al. 2021, section IV-B",
    .one_node = false,
    .serves_alltoallv = true,
    .split_phase = true,
    .serves_declines = false,
    .parameters = parameters,
    .network_ns =
        [](const NetworkCall& call) {
          return call.latency_ns + call.node_ranks * (call.ranks - call.node_ranks) * call.transfer_ns();
        },
    // q (p-q) S bytes into each node, alpha; each rank starts p-1 messages and copies p-1 blocks in place.
    .call_ns =
        [](const NetworkCall& call) {
          const double network = call.node_ranks * (call.ranks - call.node_ranks) * call.transfer_ns();
          const double core = (call.ranks - call.node_ranks) * (call.start_ns() + call.copy_ns()) +
                              (call.node_ranks - 1) * 2 * call.copy_ns();
          return call.latency_ns + std::max(network, core) + std::min(network, core) / 2;
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return {window.slots * static_cast<std::size_t>(layout.ranks) * chunk_bytes_of(layout.ranks, capacity, values),
              static_cast<int>(window.slots + 1) * layout.ranks};
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<NotifiedAlltoall>(team, chunk_bytes_of(team.size, capacity, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
