// MPI_Bcast through a ring of shared slots: the root deposits and leaves, whoever is there takes part by part as it is
// deposited, and who comes late finds the data. The root may be ahead of the slowest rank by the whole ring.
//
// A message of up to 112 bytes travels with its flag; larger ones go in parts of a slot, and inside a slot every
// `chunk_bytes` are announced. Root: a copy of S bytes. Others, after the later of their arrival and the root's: one
// transfer and a copy of S bytes, which overlaps with the root's.

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 256 << 10;
constexpr std::size_t chunk_bytes = 32 << 10;

Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const std::size_t slot = Rounds::round_up(std::min(capacity, slot_limit), Rounds::line_bytes);
  // One rank deposits at a time, in all ranks' share.
  const std::size_t bytes = std::min<std::size_t>(capacity * static_cast<std::size_t>(ranks), 16 << 20);
  return {.ranks = ranks, .banks = static_cast<int>(std::clamp<std::size_t>(bytes / slot, slot <= 4096 ? 64 : 16, 64)), .slots = 1, .slot_bytes = slot};
}

class ArrivalBcast final : public Prepared {
 public:
  ArrivalBcast(const Team& team, std::size_t capacity) : rounds_(team, shape_for(team.size, capacity)) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t slot = rounds_.shape().slot_bytes;
    const std::uint64_t first = next_;
    next_ += (operands.bytes + slot - 1) / slot;
    rounds_.enter(first);
    const bool is_root = rounds_.team().rank == operands.root;
    if (!is_root && operands.deposited != nullptr) operands.deposited(operands.context);
    std::size_t offset = 0;
    for (std::uint64_t round = first; round < next_; ++round, offset += slot) {
      const std::size_t bytes = std::min(slot, operands.bytes - offset);
      if (is_root)
        deposit(static_cast<const std::byte*>(operands.send) + offset, bytes, round, site);
      else
        receive(static_cast<std::byte*>(operands.receive) + offset, bytes, round, site);
      if (next_ - first > 1) rounds_.take(round + 1);
    }
    rounds_.take(next_);
    if (is_root && operands.deposited != nullptr) operands.deposited(operands.context);
    return true;
  }

  bool is_missing(int rank) const override { return !rounds_.has_entered(rank); }

 private:
  void deposit(const std::byte* from, std::size_t bytes, std::uint64_t round, wait::Site& site) {
    rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
    std::byte* const place = rounds_.place(round, 0, bytes);
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t part = std::min(chunk_bytes, bytes - done);
      std::memcpy(place + done, from + done, part);
      done += part;
      rounds_.publish(round, 0, done == bytes ? Rounds::complete : done / chunk_bytes);
    }
    rounds_.ring(round);
  }

  void receive(std::byte* to, std::size_t bytes, std::uint64_t round, wait::Site& site) {
    const std::byte* const place = rounds_.place(round, 0, bytes);
    for (std::size_t done = 0; done < bytes;) {
      std::size_t there = 0;
      const auto ready = [&] {
        const std::uint64_t progress = rounds_.progress_of(round, 0);
        there = progress == Rounds::complete ? bytes : static_cast<std::size_t>(progress) * chunk_bytes;
        return there > done;
      };
      if (!ready())
        rounds_.team().policy->until(site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
                                     static_cast<Prepared*>(this));
      std::memcpy(to + done, place + done, there - done);
      done = there;
    }
  }

  Rounds rounds_;
  std::uint64_t next_ = rounds_.team().first_round;
};

constexpr Descriptor descriptor = {
    .collective = Collective::bcast,
    .name = "arrival_bcast",
    .summary = "the root deposits and leaves; the others take as they arrive; one transfer and a pipelined copy",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 4: deposits in shared memory",
    .one_node = true,
    .parameters = {},
    .region_bytes = [](int ranks, std::size_t capacity) { return shape_for(ranks, capacity).total(); },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t>) -> std::unique_ptr<Prepared> {
      return std::make_unique<ArrivalBcast>(team, capacity);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
