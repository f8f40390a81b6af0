// MPI_Allreduce over a ring, in chunks and pipelined, without any synchronisation but notifications
// (Iakymchuk et al. 2021, section IV-A). For large messages and across nodes: every rank sends and receives
// the least there is.
//
// The message is cut into p blocks. In step t of 2(p-1) rank r sends block r-t to rank r+1 and gets block
// r-t-1 from rank r-1: in the first p-1 steps partial results, to which each rank adds its own operand, so
// that rank r ends with the whole of block r+1; in the others the results. A block goes in chunks, and each
// goes on as soon as it has come: all links are busy at once, and a late rank holds up nobody before its own
// operand is needed.
//
// Each link is a sliding window. Chunks are counted, from the first call on and alike on all ranks: number s goes to
// slot s mod `slots` of the receiver's segment, which is notified of s; it returns credit for half of the slots at a
// time.
//
// Where the wire can, results come to the program's buffer itself (Notified::redirect). They contain this rank's own
// operand, so that none comes before the rank has told where to; and a place that a result comes to was sent from, if
// at all, in what that result is made of.
//
// Order: block c is reduced in the order c, c+1, ... around the ring, by every rank and in every run, and by
// one rank for all: the same bits everywhere and always. The operation must
// be commutative, as the predefined ones are.
//
// Cost: 2(p-1)/p S bytes sent and received by each rank, 2(p-1) latencies.

#include <algorithm>
#include <cstring>

#include "algorithms/costs.hpp"
#include "algorithms/sliding_window.hpp"
#include "algorithms/steps.hpp"

namespace papaya {

namespace {

constexpr SlidingWindow window = {.slots = 8, .credits_at_once = 4};
constexpr std::size_t most_chunk_bytes = std::size_t{4} << 20;

enum Notification : int { arrived, credit, notifications };

class Ring final : public OverWire {
 public:
  Ring(const Team& team, std::size_t chunk_bytes)
      : OverWire(team),
        next_((team.rank + 1) % team.size),
        previous_((team.rank + team.size - 1) % team.size),
        chunk_bytes_(chunk_bytes),
        begin_(team.first_round - 1),
        out_(window, begin_),
        in_(window, begin_) {}

  // Waits for the last credit of the next rank, which writes nothing after it.
  ~Ring() override {
    const std::uint64_t last = out_.last_credit();
    if (last == begin_) return;
    wait::Site site;
    team_.wire->wait(
        *team_.policy, site, [&] { return team_.wire->look(credit) >= last; }, this);
  }

 private:
  Steps steps(Operands operands) override {
    if (team_.size == 1) {
      std::memmove(operands.receive, operands.send, operands.bytes);
      co_return;
    }
    Call call(*this, operands);
    call.redirect_first();
    while (call.received < call.total || call.sent < call.total) {
      const bool receives = call.may_receive();
      if (receives) call.receive();
      const bool sends = call.may_send();
      if (sends) call.send();
      if (receives || sends) continue;
      co_await until([&] { return call.may_receive() || call.may_send(); },
                     call.received < call.total ? previous_ : next_);
    }
    co_await released(*team_.wire);
  }

  // One call's progress, in chunks.
  struct Call {
    Ring& ring;
    const Operands& operands;
    const std::size_t element = operands.reduction->element_bytes;
    const std::size_t per_chunk = ring.chunk_bytes_ / element;  // elements
    const std::uint64_t chunks;                                 // of a block
    const std::uint64_t steps = 2 * static_cast<std::uint64_t>(ring.team_.size - 1);
    const std::uint64_t total;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    bool is_in_place = false;  // what comes as a result

    Call(Ring& r, const Operands& o)
        : ring(r),
          operands(o),
          chunks(std::max<std::size_t>(1, (largest_block() + per_chunk - 1) / per_chunk)),
          total(steps * chunks) {}

    std::size_t ranks() const noexcept { return static_cast<std::size_t>(ring.team_.size); }
    std::size_t largest_block() const noexcept { return (operands.count + ranks() - 1) / ranks(); }
    // The first element of a block; of block p the end.
    std::size_t block_begin(std::size_t block) const noexcept {
      return block * (operands.count / ranks()) + std::min(block, operands.count % ranks());
    }

    struct Chunk {
      std::size_t offset;    // bytes
      std::size_t elements;  // a short block's last chunks may be empty
    };
    // Chunk `number` of `step`, of the block that is then `behind` of this rank.
    Chunk chunk_at(std::uint64_t number, std::uint64_t behind) const noexcept {
      const std::size_t p = ranks();
      const std::size_t block =
          (static_cast<std::size_t>(ring.team_.rank) + 2 * p - static_cast<std::size_t>(behind)) % p;
      const std::size_t begin = block_begin(block);
      const std::size_t size = block_begin(block + 1) - begin;
      const std::size_t from = std::min(static_cast<std::size_t>(number % chunks) * per_chunk, size);
      return {(begin + from) * element, std::min(per_chunk, size - from)};
    }

    bool is_result(std::uint64_t number) const noexcept { return number / chunks >= steps / 2; }
    // Chunk `number` comes to a slot that is free, or will be once this rank has said so.
    void redirect(std::uint64_t number) noexcept {
      if (number >= total || !is_result(number)) return;
      const Chunk c = chunk_at(number, number / chunks + 1);
      if (c.elements == 0) return;
      is_in_place =
          ring.team_.wire->redirect(ring.slot(ring.in_.released() + 1 + number - received), c.elements * element,
                                    static_cast<std::byte*>(operands.receive) + c.offset);
    }
    void redirect_first() noexcept {
      for (std::uint64_t number = 0; number < window.slots; ++number) redirect(number);
    }

    bool may_receive() const noexcept {
      return received < total && ring.team_.wire->look(arrived) > ring.in_.released();
    }
    void receive() noexcept {
      const Chunk c = chunk_at(received, received / chunks + 1);
      const std::byte* const from = ring.team_.wire->segment() + ring.slot(ring.in_.released() + 1);
      auto* const to = static_cast<std::byte*>(operands.receive) + c.offset;
      if (!is_result(received))
        operands.reduction->combine(*operands.reduction, from, static_cast<const std::byte*>(operands.send) + c.offset,
                                    to, c.elements);
      else if (!is_in_place)
        std::memcpy(to, from, c.elements * element);
      ++received;
      const bool is_credit_due = ring.in_.release();
      redirect(received + window.slots - 1);
      if (is_credit_due) ring.team_.wire->notify(ring.previous_, credit, ring.in_.released());
    }

    bool may_send() noexcept {
      // What is sent in a later step is what came in the step before.
      if (sent == total || (sent >= chunks && received < sent - chunks + 1)) return false;
      return ring.out_.has_slot([this] { return ring.team_.wire->look(credit); });
    }
    void send() noexcept {
      const std::uint64_t step = sent / chunks;
      const Chunk c = chunk_at(sent, step);
      const void* const from = static_cast<const std::byte*>(step == 0 ? operands.send : operands.receive) + c.offset;
      const std::uint64_t number = ring.out_.send();
      ring.team_.wire->write_notify(ring.next_, ring.slot(number), from, c.elements * element, arrived, number);
      if (sent == 0) tell_deposited(operands);
      ++sent;
    }
  };

  std::size_t slot(std::uint64_t number) const noexcept {
    return static_cast<std::size_t>(number % window.slots) * chunk_bytes_;
  }

  const int next_;
  const int previous_;
  const std::size_t chunk_bytes_;
  const std::uint64_t begin_;   // what the numbers of chunks begin after
  SlidingWindow::Sender out_;   // to the next rank
  SlidingWindow::Receiver in_;  // from the previous one
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", 262144, 1024, most_chunk_bytes,
     "bytes that travel at a time, or fewer where memory is short; a multiple of 64", "segment_bytes"},
};

std::size_t chunk_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  constexpr std::size_t always = 65536;  // bytes of a chunk that there is memory for
  return std::min(static_cast<std::size_t>(values[0]), std::max(capacity / window.slots, always)) / 64 * 64;
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "ring",
    .summary = "reduce-scatter and allgather over a ring in chunks, by notifications; 2(p-1)/p S bytes a rank",
    .source = "Iakymchuk et al. 2021, section IV-A",
    .one_node = false,
    .predefined_only = true,
    .split_phase = true,
    .serves_declines = false,
    .max_element_bytes = 1024,
    .parameters = parameters,
    // 2(N-1) hops between nodes and 2(p-N) on them, each of a latency; 2(p-1)/p S bytes over each link. All cores are
    // busy with their own blocks: (p-1)/p S gamma, and on nodes 2(p-1)/p S c. With one rank a node a chunk waits for
    // both.
    .call_ns =
        [](const NetworkCall& call) {
          const double part = costs::share(call.ranks);
          const bool is_flat = call.node_ranks <= 1;
          const double hops =
              2 * (call.nodes - 1) * call.latency_ns + 2 * (call.ranks - call.nodes) * nominal_node_latency_ns;
          const double network = 2 * part * call.transfer_ns();
          const double core = part * (call.reduce_ns() + (is_flat ? 0 : 2 * call.copy_ns()));
          if (!is_flat) return hops + std::max(network, core);
          constexpr double chunk_bytes = 262144;
          return hops + (call.bytes > call.ranks * chunk_bytes ? std::max(network, core) + 0.6 * std::min(network, core)
                                                               : network + core);
        },
    .segment = [](const Layout&, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return {window.slots * chunk_bytes_of(capacity, values), notifications};
    },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t> values)
        -> std::unique_ptr<Prepared> { return std::make_unique<Ring>(team, chunk_bytes_of(capacity, values)); },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
