// MPI_Alltoall by one-sided writes with a notification each (Iakymchuk et al. 2021, section IV-B): every rank
// writes its block for each other rank straight into that one's segment. Blocks are taken as they come,
// whoever's they are.
//
// Rank r begins with r+1 and goes round, so that in every step each rank is written to by one. Blocks larger
// than `part_bytes` go in parts, one round each. Round n has bank n mod 2 of everybody's segment: who has
// ended round n-1 has heard from all ranks that they have ended round n-2.
//
// Cost: (p-1) S bytes sent and received by each rank, one latency; a copy out of the segment.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "algorithms/algorithm.hpp"

namespace papaya {

namespace {

constexpr std::size_t banks = 2;
constexpr std::int64_t most_part_bytes = 1 << 20;

std::size_t part_bytes_of(std::size_t capacity, std::span<const std::int64_t> values) noexcept {
  return (std::min(capacity, static_cast<std::size_t>(values[0])) + 63) / 64 * 64;
}

class NotifiedAlltoall final : public Prepared {
 public:
  NotifiedAlltoall(const Team& team, std::size_t part_bytes)
      : team_(team),
        part_bytes_(part_bytes),
        round_(team.first_round - 1),
        awaited_(static_cast<std::size_t>(team.size)) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t own = static_cast<std::size_t>(team_.rank) * operands.bytes;
    if (operands.send != operands.receive)
      std::memcpy(static_cast<std::byte*>(operands.receive) + own,
                  static_cast<const std::byte*>(operands.send) + own, operands.bytes);
    for (std::size_t offset = 0; offset < operands.bytes; offset += part_bytes_) {
      ++round_;
      const Part part{offset, std::min(part_bytes_, operands.bytes - offset)};
      send(operands, part);
      if (offset == 0 && operands.deposited != nullptr) operands.deposited(operands.context);
      receive(operands, part, site);
    }
    return true;
  }

  bool is_missing(int rank) const override {
    const std::vector<int>::const_iterator end = awaiting_;
    return std::find(awaited_.begin(), end, rank) != end;
  }

 private:
  struct Part {
    std::size_t offset;
    std::size_t bytes;
  };

  std::size_t place(int writer) const noexcept {
    return (static_cast<std::size_t>(round_ % banks) * static_cast<std::size_t>(team_.size) +
            static_cast<std::size_t>(writer)) *
           part_bytes_;
  }

  void send(const Operands& operands, const Part& part) noexcept {
    for (int i = 1; i < team_.size; ++i) {
      const int peer = (team_.rank + i) % team_.size;
      const auto* const block =
          static_cast<const std::byte*>(operands.send) + static_cast<std::size_t>(peer) * operands.bytes;
      team_.wire->write_notify(peer, place(team_.rank), block + part.offset, part.bytes, team_.rank, round_);
    }
    // In place, what comes overwrites what was sent.
    team_.wire->release_sources();
  }

  void receive(const Operands& operands, const Part& part, wait::Site& site) noexcept {
    // From the rank before on: they are the first to write to this one.
    for (int i = 1; i < team_.size; ++i)
      awaited_[static_cast<std::size_t>(i - 1)] = (team_.rank - i + team_.size) % team_.size;
    awaiting_ = awaited_.begin() + (team_.size - 1);
    const auto has_come = [&](int writer) { return team_.wire->look(writer) >= round_; };
    while (awaiting_ != awaited_.begin()) {
      awaiting_ = std::remove_if(awaited_.begin(), awaiting_, [&](int writer) {
        if (!has_come(writer)) return false;
        auto* const block =
            static_cast<std::byte*>(operands.receive) + static_cast<std::size_t>(writer) * operands.bytes;
        std::memcpy(block + part.offset, team_.wire->segment() + place(writer), part.bytes);
        return true;
      });
      if (awaiting_ != awaited_.begin())
        team_.wire->wait(
            *team_.policy, site, [&] { return std::any_of(awaited_.begin(), awaiting_, has_come); }, this);
    }
  }

  const Team team_;
  const std::size_t part_bytes_;
  std::uint64_t round_;
  std::vector<int> awaited_;  // the ranks whose part has not come yet, up to `awaiting_`
  std::vector<int>::iterator awaiting_ = awaited_.begin();
};

constexpr Parameter parameters[] = {
    {"part_bytes", 65536, 64, most_part_bytes, "bytes of a block that travel at a time"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::alltoall,
    .name = "notified_alltoall",
    .summary = "each rank writes to all others with a notification each; blocks are taken as they come",
    .source = "Iakymchuk et al. 2021, section IV-B",
    .one_node = false,
    .takes_vetoes = false,
    .parameters = parameters,
    .segment = [](int ranks, std::size_t capacity, std::span<const std::int64_t> values) -> SegmentShape {
      return {banks * static_cast<std::size_t>(ranks) * part_bytes_of(capacity, values), ranks};
    },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<NotifiedAlltoall>(team, part_bytes_of(capacity, values));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
