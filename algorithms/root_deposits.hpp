// What broadcasts and scatters through shared slots have in common: a message goes in rounds of a slot, and inside a
// slot every `chunk_bytes` are announced, so that whoever copies on works at the same time.
//
// A root never waits for receivers with a message of one round: if the slots are in use it falls back, which those who
// come to the call see, and all leave the call to MPI. (Larger messages make a root wait in MPI's own algorithms, too.)
// So it does, with messages of any size, where it has to borrow memory and finds none.
#pragma once

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"

namespace papaya::root_deposits {

inline constexpr std::size_t slot_limit = 256 << 10;
inline constexpr std::size_t chunk_bytes = 32 << 10;
inline constexpr std::size_t borrowed_slot_limit = 64 << 10;
static_assert(2 * borrowed_slot_limit <= DepositArena::least_largest_bytes);

inline std::size_t slot_for(std::size_t capacity, std::size_t limit = slot_limit) {
  return Rounds::round_up(std::min(capacity, limit), Rounds::line_bytes);
}

// Where memory is borrowed.
inline Rounds::Shape borrowing_shape_for(int ranks, int slots, std::size_t capacity, std::size_t largest) {
  const std::size_t slot = slot_for(capacity, borrowed_slot_limit);
  return {.ranks = ranks,
          .banks = Rounds::banks_for(std::min(Rounds::borrowed_for(capacity), largest) / slot, 2,
                                     std::clamp<std::size_t>(64 / static_cast<std::size_t>(slots), 2, 16)),
          .slots = slots,
          .slot_bytes = slot,
          .borrows = true,
          .lifetime = Lifetime::unbounded};
}

class Fragmented : public Prepared {
 public:
  Fragmented(const Team& team, const Rounds::Shape& shape) : rounds_(team, shape) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const std::size_t slot = rounds_.shape().slot_bytes;
    const std::uint64_t first = next_;
    next_ += Rounds::pieces(operands.bytes, slot);
    rounds_.enter(first);
    const bool is_root = rounds_.team().rank == operands.root;
    const bool deposits = start(operands, is_root);
    const bool is_one_round = next_ - first == 1;
    may_fall_back_ = (is_one_round || rounds_.shape().borrows) && !operands.waits && rounds_.team().messages != nullptr;
    fell_back_ = false;
    if (may_fall_back_ && deposits) {
      if (!is_one_round) wait_until_free(first, site);
      fell_back_ = rounds_.falls_back(first, next_, std::min(slot, operands.bytes));
    }
    bool is_served = !(is_root && fell_back_);
    if (!is_served) rounds_.ring(first);
    if (!is_root && operands.deposited != nullptr) operands.deposited(operands.context);
    std::size_t offset = 0;
    for (std::uint64_t round = first; round < next_ && is_served; ++round, offset += slot) {
      const std::size_t bytes = std::min(slot, operands.bytes - offset);
      if (is_root)
        deposit(operands, offset, bytes, round, site);
      else
        is_served = receive(static_cast<std::byte*>(operands.receive) + offset, bytes, round, operands.root, site);
      if (!is_one_round && is_served) rounds_.return_credit(round + 1);
    }
    rounds_.return_credit(next_);
    rounds_.give_back(next_);
    if (is_root && is_served && operands.deposited != nullptr) operands.deposited(operands.context);
    return is_served;
  }

  bool is_missing(int rank) const override { return !rounds_.has_entered(rank); }

 protected:
  // At a call's beginning. True if this rank puts what it has of the message into a slot.
  virtual bool start(const Operands& operands, bool is_root) = 0;
  // A round's `bytes`, which begin at `offset`, at the root and elsewhere. receive(): false if the root falls back.
  virtual void deposit(const Operands& operands, std::size_t offset, std::size_t bytes, std::uint64_t round,
                       wait::Site& site) = 0;
  virtual bool receive(std::byte* to, std::size_t bytes, std::uint64_t round, int root, wait::Site& site) = 0;

  // Bytes [begin, end) of this round's `bytes`, which lie at `from`, into a slot.
  void put(const std::byte* from, std::size_t begin, std::size_t end, std::size_t bytes, std::uint64_t round,
           int slot) {
    std::byte* const data = rounds_.own_data(round, slot, bytes);
    for (std::size_t done = begin; done < end;) {
      const std::size_t chunk = std::min(chunk_bytes, end - done);
      std::memcpy(data + done, from + done, chunk);
      done += chunk;
      rounds_.publish(round, slot, done == bytes ? Rounds::complete : done / chunk_bytes);
    }
  }
  bool is_left_to_mpi(std::uint64_t round, int root) const { return may_fall_back_ && rounds_.fell_back(round, root); }
  // How many of this round's `bytes` are in a slot.
  std::size_t bytes_in(std::uint64_t round, int slot, std::size_t bytes) const {
    const std::uint64_t progress = rounds_.progress_of(round, slot);
    return progress == Rounds::complete ? bytes : static_cast<std::size_t>(progress) * chunk_bytes;
  }
  template <typename Ready>
  void wait_until(const Ready& ready, std::uint64_t round, wait::Site& site) {
    if (!ready())
      rounds_.team().policy->until(
          site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
          static_cast<Prepared*>(this));
  }
  void wait_until_free(std::uint64_t round, wait::Site& site) {
    rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
  }

  Rounds rounds_;
  bool may_fall_back_ = false;  // from this call
  bool fell_back_ = false;      // from this call

 private:
  std::uint64_t next_ = rounds_.team().first_round;
};

}  // namespace papaya::root_deposits
