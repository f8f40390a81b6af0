// MPI_Bcast down a binomial tree by one-sided writes with a notification each, in pieces that go on as soon
// as they have come. For any root: ranks count from it on, and rank r gets the message from r less its lowest
// bit.
//
// Whoever writes to a rank, whatever the root, is a power of two before it, so that a rank has one stream (streams.hpp)
// for each of ceil(log2 p) writers. The root leaves as soon as its last pieces are in slots, whether or not anybody has
// arrived; with a small message it does so, or has it sent by MPI, even if the slots are in use.
//
// Cost: ceil(log2 p) latencies, and the root sends the message ceil(log2 p) times; pieces of several steps
// travel at once.

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "algorithms/steps.hpp"
#include "algorithms/streams.hpp"

namespace papaya {

namespace {

constexpr std::uint64_t slots = 8;
constexpr std::int64_t most_piece_bytes = std::int64_t{4} << 20;

std::size_t piece_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  return in_lines(std::min(capacity, static_cast<std::size_t>(values[0])));
}

int streams_for(int ranks) noexcept {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

// The stream with number i goes to the rank 2^i behind this one, and comes from the one 2^i before it.
std::vector<Streams::Line> lines_of(const Team& team) {
  std::vector<Streams::Line> lines;
  for (int i = 0; i < streams_for(team.size); ++i)
    lines.push_back({.to = (team.rank + (1 << i)) % team.size,
                     .from = (team.rank - (1 << i) + team.size) % team.size,
                     .place_there = i,
                     .place_here = i,
                     .number_there = i,
                     .number_here = i});
  return lines;
}

class NotifiedBcast final : public OverWire {
 public:
  NotifiedBcast(const Team& team, std::size_t piece_bytes)
      : OverWire(team), piece_bytes_(piece_bytes), lines_(lines_of(team)), streams_(team, lines_, slots, piece_bytes) {}

  bool may_end() noexcept override { return streams_.may_end(); }

 private:
  Steps steps(Operands operands) override {
    const auto place = static_cast<unsigned>((team_.rank - operands.root + team_.size) % team_.size);
    const auto ranks = static_cast<unsigned>(team_.size);
    const int parent = place == 0 ? -1 : std::countr_zero(place);
    // Children are 2^i away, for all i below this rank's own lowest bit.
    int children = parent < 0 ? static_cast<int>(lines_.size()) : parent;
    while (children > 0 && place + (1u << (children - 1)) >= ranks) --children;
    auto* const message = static_cast<std::byte*>(parent < 0 ? const_cast<void*>(operands.send) : operands.receive);
    const std::uint64_t pieces = std::max<std::size_t>(1, (operands.bytes + piece_bytes_ - 1) / piece_bytes_);
    std::uint64_t here = parent < 0 ? pieces : 0;  // of this message
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(children), 0);

    const bool may_go_apart = streams_.may_go_apart(operands.bytes);
    const auto may_receive = [&] { return here < pieces && streams_.may_receive(parent); };
    const auto may_send = [&](int child) {
      return sent[static_cast<std::size_t>(child)] < here && streams_.may_send(child, may_go_apart);
    };
    const auto piece_at = [&](std::uint64_t number) { return message + number * piece_bytes_; };
    const auto piece_size = [&](std::uint64_t number) {
      return std::min(piece_bytes_, operands.bytes - static_cast<std::size_t>(number) * piece_bytes_);
    };

    bool told = false;
    while (true) {
      bool moved = false;
      if (may_receive()) {
        std::memcpy(piece_at(here), streams_.front(parent), piece_size(here));
        streams_.take(parent);
        ++here;
        moved = true;
      }
      // The farthest first: it has the most behind it.
      for (int child = children - 1; child >= 0; --child)
        if (may_send(child)) {
          std::uint64_t& number = sent[static_cast<std::size_t>(child)];
          streams_.send(child, piece_at(number), piece_size(number), may_go_apart);
          ++number;
          moved = true;
        }
      if (!told) tell_deposited(operands);
      told = true;
      const auto late = std::find_if(sent.begin(), sent.end(), [&](std::uint64_t one) { return one < pieces; });
      if (here == pieces && late == sent.end()) break;
      if (moved) continue;
      const auto can_move = [&] {
        if (may_receive()) return true;
        for (int child = 0; child < children; ++child)
          if (may_send(child)) return true;
        return false;
      };
      co_await until(can_move, here < pieces ? lines_[static_cast<std::size_t>(parent)].from
                                             : lines_[static_cast<std::size_t>(late - sent.begin())].to);
    }
    co_await until([&] { return streams_.are_sources_free(); });
  }

  const std::size_t piece_bytes_;
  const std::vector<Streams::Line> lines_;
  Streams streams_;
};

constexpr Parameter parameters[] = {
    {"piece_bytes", 65536, 64, most_piece_bytes, "bytes that travel at a time"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::bcast,
    .name = "notified_bcast",
    .summary = "down a binomial tree in pieces, by notifications; ceil(log2 p) latencies, the root leaves early",
    .source = "binomial tree; notifications as in Iakymchuk et al. 2021",
    .one_node = false,
    .split_phase = true,
    .takes_vetoes = false,
    .parameters = parameters,
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      const int streams = streams_for(layout.ranks);
      return Streams::segment_of(streams, streams, slots, piece_bytes_of(capacity, values));
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<NotifiedBcast>(team, piece_bytes_of(capacity, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
