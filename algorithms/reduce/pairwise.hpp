// MPI_Reduce where what ranks deposit lies in memory that each of them borrows (transport/deposit_arena.hpp). A rank
// that finds none must not wait for it, and sends its operand to the root; which may find no memory for that where
// others could read it. So whatever the root has, its own operand and those messages, is the root's alone, and it needs
// no shared memory.
//
// The fixed tree in rank order of patterns/tree.hpp: of two siblings whose ranks have all deposited, whoever completes
// the second combines them, in the slot of the first's first rank, goes on to the level above, and leaves. What holds
// the root's operand, or one sent to it, the root combines, in its own memory. Nobody but the root waits for an
// operand.
//
// Where p*S is small, deposits are all that the others do. Cost for a non-root: a copy of S bytes and at most log2(p)
// combines. For the root after the last arrival: log2(p) combines of S bytes, and one more for each operand that was
// sent.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"

namespace papaya {

class Pairwise final : public Prepared {
 public:
  static constexpr std::size_t max_element_bytes = 4096;  // the smallest slot

  static Rounds::Shape shape_for(int ranks, std::size_t capacity, std::size_t largest);
  // Where ranks * message bytes is at most `root_combines_bytes`, the root alone reduces.
  Pairwise(const Team& team, std::size_t capacity, std::size_t root_combines_bytes);

  bool run(const Operands& operands, wait::Site& site) override;
  bool is_missing(int rank) const override { return !rounds_.has_entered(rank); }

 private:
  // Bytes [offset, offset + bytes) of the message of a call.
  struct Fragment {
    const Operands& operands;
    wait::Site& site;
    std::uint64_t round;
    std::size_t offset;
    std::size_t bytes;
    bool in_pairs;  // else the root combines all

    std::size_t count() const;
  };
  struct AlignedDelete {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{Rounds::line_bytes}); }
  };

  void deposit(const Fragment& fragment) noexcept;
  void combine_pairs(const Fragment& fragment) noexcept;
  void wake_root(const Fragment& fragment) noexcept;

  const std::byte* result_of(const Fragment& fragment, int first, int level, int depth, std::byte* out);
  const std::byte* operand_of(const Fragment& fragment, int rank);
  bool has_message(const Fragment& fragment, int first, int end) const noexcept;
  void take_messages(const Fragment& fragment);
  template <class Ready>
  void wait_until(const Fragment& fragment, const Ready& ready);

  std::atomic<std::uint64_t>& pair(std::uint64_t round, int right) const noexcept;
  std::byte* scratch(int depth);

  Rounds rounds_;
  const std::size_t root_combines_bytes_;
  const int height_;
  const std::size_t scratch_stride_;
  std::unique_ptr<std::byte[], AlignedDelete> scratch_;  // touched as far as used
  std::uint64_t next_ = rounds_.team().first_round;
  // The root's: what others have sent, and for which round that is.
  std::vector<std::vector<std::byte>> messages_;
  std::vector<std::uint64_t> message_rounds_;
  std::uint64_t looked_at_ = 0;          // the round whose messages have been looked for,
  std::uint64_t times_fallen_back_ = 0;  // and how many intervals there were then
};

}  // namespace papaya
