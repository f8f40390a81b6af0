// MPI_Bcast down a binomial tree by one-sided writes with a notification each, in chunks that go on as soon
// as they have come. For any root: ranks count from it on, and rank r gets the message from r less its lowest
// bit.
//
// Whoever writes to a rank, whatever the root, is a power of two before it, so that a rank has one stream (streams.hpp)
// for each of ceil(log2 p) writers. The root leaves as soon as its last chunks are in slots, whether or not anybody has
// arrived; with a small message it does so, or has it sent by MPI, even if the slots are in use.
//
// Cost: ceil(log2 p) latencies, and the root sends the message ceil(log2 p) times; chunks of several steps
// travel at once.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "algorithms/costs.hpp"
#include "algorithms/steps.hpp"
#include "algorithms/streams.hpp"

namespace papaya {

namespace {

constexpr std::uint64_t slots = 8;
constexpr std::int64_t most_chunk_bytes = std::int64_t{4} << 20;

std::size_t chunk_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  return in_lines(std::min(capacity, static_cast<std::size_t>(values[0])));
}

int streams_for(int ranks) noexcept {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

// The stream with number i goes to the rank 2^i behind this one, and comes from the one 2^i before it.
std::vector<Streams::Peer> peers_of(const Team& team) {
  std::vector<Streams::Peer> peers;
  for (int i = 0; i < streams_for(team.size); ++i)
    peers.push_back({.to = (team.rank + (1 << i)) % team.size,
                     .from = (team.rank - (1 << i) + team.size) % team.size,
                     .slots_there = i,
                     .slots_here = i,
                     .number_there = i,
                     .number_here = i});
  return peers;
}

class NotifiedBcast final : public OverWire {
 public:
  NotifiedBcast(const Team& team, std::size_t chunk_bytes)
      : OverWire(team), chunk_bytes_(chunk_bytes), peers_(peers_of(team)), streams_(team, peers_, slots, chunk_bytes) {}

  bool may_end() noexcept override { return streams_.may_end(); }

 private:
  Steps steps(Operands operands) override {
    const auto position = static_cast<unsigned>((team_.rank - operands.root + team_.size) % team_.size);
    const auto ranks = static_cast<unsigned>(team_.size);
    const int parent = position == 0 ? -1 : std::countr_zero(position);
    // Children are 2^i away, for all i below this rank's own lowest bit.
    int children = parent < 0 ? static_cast<int>(peers_.size()) : parent;
    while (children > 0 && position + (1u << (children - 1)) >= ranks) --children;
    auto* const message = static_cast<std::byte*>(parent < 0 ? const_cast<void*>(operands.send) : operands.receive);
    const std::uint64_t chunks = std::max<std::size_t>(1, (operands.bytes + chunk_bytes_ - 1) / chunk_bytes_);
    std::uint64_t here = parent < 0 ? chunks : 0;  // of this message
    std::vector<std::uint64_t> sent(static_cast<std::size_t>(children), 0);

    const bool may_fall_back = streams_.may_fall_back(operands.bytes);
    const auto may_receive = [&] { return here < chunks && streams_.may_receive(parent); };
    const auto may_send = [&](int child) {
      return sent[static_cast<std::size_t>(child)] < here && streams_.may_send(child, may_fall_back);
    };
    const auto chunk_at = [&](std::uint64_t number) { return message + number * chunk_bytes_; };
    const auto chunk_size = [&](std::uint64_t number) {
      return std::min(chunk_bytes_, operands.bytes - static_cast<std::size_t>(number) * chunk_bytes_);
    };

    bool told = false;
    while (true) {
      bool moved = false;
      if (may_receive()) {
        std::memcpy(chunk_at(here), streams_.front(parent), chunk_size(here));
        streams_.release(parent);
        ++here;
        moved = true;
      }
      // The farthest first: it has the most behind it.
      for (int child = children - 1; child >= 0; --child)
        if (may_send(child)) {
          std::uint64_t& number = sent[static_cast<std::size_t>(child)];
          streams_.send(child, chunk_at(number), chunk_size(number), may_fall_back);
          ++number;
          moved = true;
        }
      if (!told) tell_deposited(operands);
      told = true;
      const auto late = std::find_if(sent.begin(), sent.end(), [&](std::uint64_t one) { return one < chunks; });
      if (here == chunks && late == sent.end()) break;
      if (moved) continue;
      const auto can_move = [&] {
        if (may_receive()) return true;
        for (int child = 0; child < children; ++child)
          if (may_send(child)) return true;
        return false;
      };
      co_await until(can_move, here < chunks ? peers_[static_cast<std::size_t>(parent)].from
                                             : peers_[static_cast<std::size_t>(late - sent.begin())].to);
    }
    co_await until([&] { return streams_.are_sources_free(); });
  }

  const std::size_t chunk_bytes_;
  const std::vector<Streams::Peer> peers_;
  Streams streams_;
};

constexpr Parameter parameters[] = {
    {"chunk_bytes", usual_chunk_bytes, 64, most_chunk_bytes, "bytes that travel at a time", "piece_bytes"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::bcast,
    .name = "notified_bcast",
    .summary = "down a binomial tree in chunks, by notifications; ceil(log2 p) latencies, the root leaves early",
    .source = "binomial tree; notifications as in Iakymchuk et al. 2021",
    .one_node = false,
    .split_phase = true,
    .serves_declines = false,
    .parameters = parameters,
    // Any of its steps may lie between two nodes.
    .network_ns = [](const NetworkCall& call) { return std::ceil(std::log2(call.ranks)) * call.message_ns; },
    // Down a binomial tree of the ranks in chunks: the first log2 N steps are between nodes where ranks of a node
    // follow each other, from a root that is the first of its node; on others as many ranks cross. What a rank sends on
    // its node it copies.
    .call_ns =
        [](const NetworkCall& call) {
          const double inner = std::ceil(std::log2(call.node_ranks));
          const double chunk = std::min(1.0, static_cast<double>(usual_chunk_bytes) / std::max(call.bytes, 1.0));
          const double core = (inner + 1) * call.copy_ns();
          return costs::binomial_ns(call, call.log2_nodes(), static_cast<double>(usual_chunk_bytes), core) +
                 inner * (nominal_node_latency_ns + chunk * call.copy_ns());
        },
    .segment = [](const Layout& layout, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      const int streams = streams_for(layout.ranks);
      return Streams::segment_of(streams, streams, slots, chunk_bytes_of(capacity, values));
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<NotifiedBcast>(team, chunk_bytes_of(capacity, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
