// MPI_Allreduce over a ring, segmented and pipelined, without any synchronisation but notifications
// (Iakymchuk et al. 2021, section IV-A). For large messages and across nodes: every rank sends and receives
// the least there is.
//
// The message is cut into p chunks. In step t of 2(p-1) rank r sends chunk r-t to rank r+1 and gets chunk
// r-t-1 from rank r-1: in the first p-1 steps partial results, to which each rank adds its own operand, so
// that rank r ends with the whole of chunk r+1; in the others the results. A chunk goes in segments, and each
// goes on as soon as it has come: all links are busy at once, and a late rank holds up nobody before its own
// part is needed.
//
// Each link is a sliding window. Segments are counted, from the first call on and alike on all ranks: number s goes to
// slot s mod `slots` of the receiver's segment, which is notified of s; it answers half a round of slots at a time.
//
// Order: chunk c is reduced in the order c, c+1, ... around the ring, by every rank and in every run, and by
// one rank for all: the same bits everywhere and always. The operation must
// be commutative, as the predefined ones are.
//
// Cost: 2(p-1)/p S bytes sent and received by each rank, 2(p-1) latencies.

#include <algorithm>
#include <cstring>

#include "algorithms/sliding_window.hpp"
#include "algorithms/steps.hpp"

namespace papaya {

namespace {

constexpr SlidingWindow window = {.slots = 8, .answered_at_once = 4};
constexpr std::size_t most_segment_bytes = std::size_t{4} << 20;

enum Notification : int { arrived, taken, notifications };

class Ring final : public OverWire {
 public:
  Ring(const Team& team, std::size_t segment_bytes)
      : OverWire(team),
        next_((team.rank + 1) % team.size),
        previous_((team.rank + team.size - 1) % team.size),
        segment_bytes_(segment_bytes),
        begin_(team.first_round - 1),
        out_(window, begin_),
        in_(window, begin_) {}

  // The last answers of the next rank, which has no more to say after them.
  ~Ring() override {
    const std::uint64_t last = out_.last_answer();
    if (last == begin_) return;
    wait::Site site;
    team_.wire->wait(
        *team_.policy, site, [&] { return team_.wire->look(taken) >= last; }, this);
  }

 private:
  Steps steps(Operands operands) override {
    if (team_.size == 1) {
      std::memmove(operands.receive, operands.send, operands.bytes);
      co_return;
    }
    Call call(*this, operands);
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

  // One call's progress, in segments.
  struct Call {
    Ring& ring;
    const Operands& operands;
    const std::size_t element = operands.reduction->element_bytes;
    const std::size_t per_segment = ring.segment_bytes_ / element;  // elements
    const std::uint64_t segments;                                   // of a chunk
    const std::uint64_t steps = 2 * static_cast<std::uint64_t>(ring.team_.size - 1);
    const std::uint64_t total;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;

    Call(Ring& r, const Operands& o)
        : ring(r),
          operands(o),
          segments(std::max<std::size_t>(1, (largest_chunk() + per_segment - 1) / per_segment)),
          total(steps * segments) {}

    std::size_t ranks() const noexcept { return static_cast<std::size_t>(ring.team_.size); }
    std::size_t largest_chunk() const noexcept { return (operands.count + ranks() - 1) / ranks(); }
    // The first element of a chunk; of chunk p the end.
    std::size_t chunk_begin(std::size_t chunk) const noexcept {
      return chunk * (operands.count / ranks()) + std::min(chunk, operands.count % ranks());
    }

    struct Piece {
      std::size_t offset;    // bytes
      std::size_t elements;  // a short chunk's last segments may be empty
    };
    // Segment `number` of `step`, of the chunk that is then `behind` of this rank.
    Piece piece(std::uint64_t number, std::uint64_t behind) const noexcept {
      const std::size_t p = ranks();
      const std::size_t chunk =
          (static_cast<std::size_t>(ring.team_.rank) + 2 * p - static_cast<std::size_t>(behind)) % p;
      const std::size_t begin = chunk_begin(chunk);
      const std::size_t size = chunk_begin(chunk + 1) - begin;
      const std::size_t from = std::min(static_cast<std::size_t>(number % segments) * per_segment, size);
      return {(begin + from) * element, std::min(per_segment, size - from)};
    }

    bool may_receive() const noexcept { return received < total && ring.team_.wire->look(arrived) > ring.in_.taken(); }
    void receive() noexcept {
      const std::uint64_t step = received / segments;
      const Piece p = piece(received, step + 1);
      const std::byte* const from = ring.team_.wire->segment() + ring.slot(ring.in_.taken() + 1);
      auto* const to = static_cast<std::byte*>(operands.receive) + p.offset;
      if (step < steps / 2)
        operands.reduction->combine(*operands.reduction, from, static_cast<const std::byte*>(operands.send) + p.offset,
                                    to, p.elements);
      else
        std::memcpy(to, from, p.elements * element);
      ++received;
      if (ring.in_.take()) ring.team_.wire->notify(ring.previous_, taken, ring.in_.taken());
    }

    bool may_send() noexcept {
      // What is sent in a later step is what came in the step before.
      if (sent == total || (sent >= segments && received < sent - segments + 1)) return false;
      return ring.out_.has_slot([this] { return ring.team_.wire->look(taken); });
    }
    void send() noexcept {
      const std::uint64_t step = sent / segments;
      const Piece p = piece(sent, step);
      const void* const from = static_cast<const std::byte*>(step == 0 ? operands.send : operands.receive) + p.offset;
      const std::uint64_t number = ring.out_.send();
      ring.team_.wire->write_notify(ring.next_, ring.slot(number), from, p.elements * element, arrived, number);
      if (sent == 0) tell_deposited(operands);
      ++sent;
    }
  };

  std::size_t slot(std::uint64_t number) const noexcept {
    return static_cast<std::size_t>(number % window.slots) * segment_bytes_;
  }

  const int next_;
  const int previous_;
  const std::size_t segment_bytes_;
  const std::uint64_t begin_;   // what the numbers of segments begin after
  SlidingWindow::Sender out_;   // to the next rank
  SlidingWindow::Receiver in_;  // from the previous one
};

constexpr Parameter parameters[] = {
    {"segment_bytes", 262144, 1024, most_segment_bytes,
     "bytes that travel at a time, or fewer where memory is short; a multiple of 64"},
};

std::size_t segment_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  constexpr std::size_t always = 65536;  // bytes of a segment that there is memory for
  return std::min(static_cast<std::size_t>(values[0]), std::max(capacity / window.slots, always)) / 64 * 64;
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "ring",
    .summary = "reduce-scatter and allgather over a ring in segments, by notifications; 2(p-1)/p S bytes a rank",
    .source = "Iakymchuk et al. 2021, section IV-A",
    .one_node = false,
    .predefined_only = true,
    .split_phase = true,
    .takes_vetoes = false,
    .max_element_bytes = 1024,
    .parameters = parameters,
    .segment = [](const Layout&, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return {window.slots * segment_bytes_of(capacity, values), notifications};
    },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t> values)
        -> std::unique_ptr<Prepared> { return std::make_unique<Ring>(team, segment_bytes_of(capacity, values)); },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
