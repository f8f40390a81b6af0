// MPI_Gather through shared slots: every rank deposits its block and leaves; the root takes the blocks in the order in
// which they arrive. After the last arrival only that rank's block is left to be copied.
//
// A block of up to 112 bytes travels with its flag; larger ones go in fragments, of which every 32 KiB are announced,
// so that the root copies while they are deposited. A rank that finds its slots in use sends its block to the root as a
// message of MPI's (docs/architecture/early_leavers.md); with blocks of several fragments it waits, as natively. Cost
// for a non-root: a copy of S bytes. For the root after the last arrival: one transfer and a copy of S bytes.

#include <algorithm>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"
#include "algorithms/transport/messages.hpp"
#include "base/copy.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 256 << 10;
constexpr std::size_t chunk_bytes = 32 << 10;
constexpr std::size_t worth_waking_bytes = 16 << 10;  // their copy takes longer than to wake the root for it

Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const std::size_t slot = Rounds::round_up(std::min(capacity, slot_limit), Rounds::line_bytes);
  return {.ranks = ranks, .banks = slot <= 4096 ? 32 : slot <= 65536 ? 8 : 4, .slots = ranks, .slot_bytes = slot};
}

class ArrivalGather final : public Prepared {
 public:
  ArrivalGather(const Team& team, std::size_t capacity)
      : rounds_(team, shape_for(team.size, capacity)), taken_(static_cast<std::size_t>(team.size)) {
    awaited_.reserve(static_cast<std::size_t>(team.size));
  }

  bool run(const Operands& operands, wait::Site& site) override {
    const std::uint64_t first = next_;
    next_ += Rounds::pieces(operands.bytes, rounds_.shape().slot_bytes);
    may_send_messages_ = rounds_.team().messages != nullptr && !operands.waits && next_ - first == 1;
    rounds_.enter(first);
    if (rounds_.team().rank == operands.root)
      gather(operands, first, site);
    else
      give(operands, first, site);
    return true;
  }

  bool is_missing(int rank) const override { return !rounds_.has_entered(rank); }

 private:
  void give(const Operands& operands, std::uint64_t first, wait::Site& site) {
    const auto* const from = static_cast<const std::byte*>(operands.send);
    if (may_send_messages_ && rounds_.falls_back(first, operands.bytes)) {
      rounds_.send_as_message(first, operands.root, from, operands.bytes, site);
    } else {
      const std::size_t slot = rounds_.shape().slot_bytes;
      std::size_t offset = 0;
      for (std::uint64_t round = first; round < next_; ++round, offset += slot) {
        rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
        deposit(from + offset, std::min(slot, operands.bytes - offset), round);
        wake_root(round, operands);
        if (round + 1 < next_) rounds_.return_credit(round + 1);
      }
    }
    if (operands.deposited != nullptr) operands.deposited(operands.context);
    rounds_.return_credit(next_);
  }

  void deposit(const std::byte* from, std::size_t bytes, std::uint64_t round) noexcept {
    const int rank = rounds_.team().rank;
    std::byte* const data = rounds_.own_data(round, bytes);
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t chunk = std::min(chunk_bytes, bytes - done);
      copy_bytes(data + done, from + done, chunk);
      done += chunk;
      rounds_.publish(round, rank, done == bytes ? Rounds::complete : done / chunk_bytes);
    }
  }

  // Should the root sleep: for a block whose copy takes a while, and by who deposits last.
  void wake_root(std::uint64_t round, const Operands& operands) noexcept {
    if (!rounds_.is_anybody_asleep()) return;
    for (int rank = 0; rank < rounds_.team().size; ++rank) {
      if (rank == operands.root || rounds_.is_complete(round, rank) || rounds_.fell_back(round, rank)) continue;
      if (operands.bytes >= worth_waking_bytes) wait::Policy::stir(rounds_.bell());
      return;
    }
    rounds_.ring(round);
  }

  void gather(const Operands& operands, std::uint64_t first, wait::Site& site) {
    const Team& team = rounds_.team();
    if (operands.deposited != nullptr) operands.deposited(operands.context);
    if (std::byte* const own = block(operands, team.rank); own != operands.send)
      copy_bytes(own, operands.send, operands.bytes);
    const std::size_t slot = rounds_.shape().slot_bytes;
    std::size_t offset = 0;
    for (std::uint64_t round = first; round < next_; ++round, offset += slot) {
      awaited_.clear();
      for (int rank = 0; rank < team.size; ++rank)
        if (rank != team.rank) awaited_.push_back(rank);
      std::fill(taken_.begin(), taken_.end(), 0);
      const std::size_t bytes = std::min(slot, operands.bytes - offset);
      const auto ready = [&] { return take(operands, offset, bytes, round); };
      if (!ready())
        team.policy->until(
            site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
            static_cast<Prepared*>(this));
      rounds_.return_credit(round + 1);
    }
  }

  // What has come of this round's `bytes` of each rank, which begin at `offset`. True: all.
  bool take(const Operands& operands, std::size_t offset, std::size_t bytes, std::uint64_t round) noexcept {
    const bool looks_for_messages = may_send_messages_ && rounds_.times_fallen_back() != 0;
    const auto has_all = [&](int rank) {
      std::size_t& taken = taken_[static_cast<std::size_t>(rank)];
      const std::uint64_t progress = rounds_.progress_of(round, rank);
      const std::size_t there = progress == Rounds::complete ? bytes : static_cast<std::size_t>(progress) * chunk_bytes;
      std::byte* const to = block(operands, rank) + offset;
      if (there > taken) {
        copy_bytes(to + taken, rounds_.data(round, rank, bytes) + taken, there - taken);
        taken = there;
      } else if (looks_for_messages && there == 0 && rounds_.fell_back(round, rank)) {
        rounds_.team().messages->receive(rank, to, bytes);
        taken = bytes;
      }
      return taken == bytes;
    };
    std::erase_if(awaited_, has_all);
    return awaited_.empty();
  }

  static std::byte* block(const Operands& operands, int rank) noexcept {
    return static_cast<std::byte*>(operands.receive) + static_cast<std::size_t>(rank) * operands.bytes;
  }

  Rounds rounds_;
  std::uint64_t next_ = rounds_.team().first_round;
  bool may_send_messages_ = false;  // in this call
  std::vector<int> awaited_;        // the root's: ranks of which this round's data are not all there
  std::vector<std::size_t> taken_;  // the root's: how many bytes of each rank's have been copied
};

constexpr Descriptor descriptor = {
    .collective = Collective::gather,
    .name = "arrival_gather",
    .summary =
        "ranks deposit and leave; the root takes the blocks as they arrive, after the last arrival only that one",
    .source = "Proficz 2019: blocks in the order of arrival; Mohammadalizadehbakhtevari 2021, chapter 4: shared memory",
    .one_node = true,
    .parameters = {},
    .automatic = {.most_ranks = 64, .lowest_bytes = 512},
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return shape_for(ranks, capacity).total(); },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t>) -> std::unique_ptr<Prepared> {
      return std::make_unique<ArrivalGather>(team, capacity);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
