// MPI_Bcast down a binomial tree by one-sided writes with a notification each, in pieces that go on as soon
// as they have come. For any root: ranks count from it on, and rank r gets the message from r less its lowest
// bit.
//
// Whoever writes to a rank, whatever the root, is a power of two before it, so that a rank has one stream for
// each of ceil(log2 p) writers. The pieces of a stream are counted from the first call on; number n goes to
// slot n mod `slots` of the stream and sets its notification to n + 1. The reader answers, half a round of
// slots at a time, how many pieces it has taken; no writer is ahead of that by more than the slots there are.
// So the root leaves as soon as its last pieces are in slots, whether or not anybody has arrived.
//
// Cost: ceil(log2 p) latencies, and the root sends the message ceil(log2 p) times; pieces of several steps
// travel at once.

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "algorithms/steps.hpp"

namespace papaya {

namespace {

constexpr std::size_t slots = 8;
constexpr std::size_t answered_at_once = slots / 2;
constexpr std::int64_t most_piece_bytes = std::int64_t{4} << 20;

std::size_t piece_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  return in_lines(std::min(capacity, static_cast<std::size_t>(values[0])));
}

int streams_for(int ranks) noexcept {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

class NotifiedBcast final : public OverWire {
 public:
  NotifiedBcast(const Team& team, std::size_t piece_bytes)
      : OverWire(team), piece_bytes_(piece_bytes), begin_(team.first_round - 1) {
    for (int i = 0; i < streams_for(team.size); ++i) streams_.push_back({begin_, begin_, begin_});
  }

  // The last answers of those written to, which have no more to say after them.
  ~NotifiedBcast() override {
    wait::Site site;
    for (int i = 0; i < stream_count(); ++i) {
      const std::uint64_t last = stream(i).sent / answered_at_once * answered_at_once;
      if (last > begin_)
        team_.wire->wait(
            *team_.policy, site, [&] { return team_.wire->look(taken_id(i)) >= last; }, this);
    }
  }

 private:
  // To the rank 2^i behind this one, and from the one 2^i before it.
  struct Stream {
    std::uint64_t sent;
    std::uint64_t taken;  // of those sent, as far as is known
    std::uint64_t received;
  };

  Steps steps(Operands operands) override {
    const auto place = static_cast<unsigned>((team_.rank - operands.root + team_.size) % team_.size);
    const auto ranks = static_cast<unsigned>(team_.size);
    const int parent = place == 0 ? -1 : std::countr_zero(place);
    // Children are 2^i away, for all i below this rank's own lowest bit.
    int children = parent < 0 ? stream_count() : parent;
    while (children > 0 && place + (1u << (children - 1)) >= ranks) --children;
    auto* const message =
        static_cast<std::byte*>(parent < 0 ? const_cast<void*>(operands.send) : operands.receive);
    const std::uint64_t pieces = std::max<std::size_t>(1, (operands.bytes + piece_bytes_ - 1) / piece_bytes_);
    std::uint64_t here = parent < 0 ? pieces : 0;  // of this message
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(children), 0);

    const auto may_receive = [&] {
      return here < pieces && team_.wire->look(arrived_id(parent)) > stream(parent).received;
    };
    const auto may_send = [&](int child) {
      if (sent[static_cast<std::size_t>(child)] >= here) return false;
      Stream& to = stream(child);
      if (to.sent < to.taken + slots) return true;
      to.taken = std::max(to.taken, team_.wire->look(taken_id(child)));
      return to.sent < to.taken + slots;
    };
    const auto piece_at = [&](std::uint64_t number) { return message + number * piece_bytes_; };
    const auto piece_size = [&](std::uint64_t number) {
      return std::min(piece_bytes_, operands.bytes - static_cast<std::size_t>(number) * piece_bytes_);
    };

    bool told = false;
    while (true) {
      bool moved = false;
      if (may_receive()) {
        Stream& from = stream(parent);
        std::memcpy(piece_at(here), team_.wire->segment() + slot(parent, from.received), piece_size(here));
        ++here;
        if (++from.received % answered_at_once == 0)
          team_.wire->notify(before(parent), taken_id(parent), from.received);
        moved = true;
      }
      // The farthest first: it has the most behind it.
      for (int child = children - 1; child >= 0; --child)
        if (may_send(child)) {
          std::uint64_t& number = sent[static_cast<std::size_t>(child)];
          Stream& to = stream(child);
          const std::uint64_t in_stream = to.sent++;
          team_.wire->write_notify(behind(child), slot(child, in_stream), piece_at(number),
                                   piece_size(number), arrived_id(child), in_stream + 1);
          ++number;
          moved = true;
        }
      if (!told) tell_deposited(operands);
      told = true;
      const auto late =
          std::find_if(sent.begin(), sent.end(), [&](std::uint64_t one) { return one < pieces; });
      if (here == pieces && late == sent.end()) break;
      if (moved) continue;
      const auto can_move = [&] {
        if (may_receive()) return true;
        for (int child = 0; child < children; ++child)
          if (may_send(child)) return true;
        return false;
      };
      co_await until(can_move,
                     here < pieces ? before(parent) : behind(static_cast<int>(late - sent.begin())));
    }
    co_await released(*team_.wire);
  }

  int stream_count() const noexcept { return static_cast<int>(streams_.size()); }
  Stream& stream(int i) noexcept { return streams_[static_cast<std::size_t>(i)]; }
  int before(int i) const noexcept { return (team_.rank - (1 << i) + team_.size) % team_.size; }
  int behind(int i) const noexcept { return (team_.rank + (1 << i)) % team_.size; }
  std::size_t slot(int i, std::uint64_t number) const noexcept {
    return (static_cast<std::size_t>(i) * slots + static_cast<std::size_t>(number % slots)) * piece_bytes_;
  }
  // The reader's, set by the rank 2^i before it; and the writer's, set by the rank 2^i behind it.
  int arrived_id(int i) const noexcept { return i; }
  int taken_id(int i) const noexcept { return stream_count() + i; }

  const std::size_t piece_bytes_;
  const std::uint64_t begin_;  // pieces of each stream before the first call
  std::vector<Stream> streams_;
};

constexpr Parameter parameters[] = {
    {"piece_bytes", 65536, 64, most_piece_bytes, "bytes that travel at a time"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::bcast,
    .name = "notified_bcast",
    .summary =
        "down a binomial tree in pieces, by notifications; ceil(log2 p) latencies, the root leaves early",
    .source = "binomial tree; notifications as in Iakymchuk et al. 2021",
    .one_node = false,
    .split_phase = true,
    .takes_vetoes = false,
    .parameters = parameters,
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      const int streams = streams_for(layout.ranks);
      return {std::max<std::size_t>(
                  static_cast<std::size_t>(streams) * slots * piece_bytes_of(capacity, values), 64),
              std::max(2 * streams, 1)};
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<NotifiedBcast>(team, piece_bytes_of(capacity, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
