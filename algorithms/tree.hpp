// Reductions over the fixed tree in rank order whose ready subtrees are combined as ranks arrive. Allreduce and reduce
// share it.
//
// Every rank deposits its operand in its own slot, chunk by chunk. Each chunk has a lead, which whoever finds something to
// combine takes and gives back: it combines every subtree of that chunk that has become ready, in the slot of the subtree's
// first rank. So early arrivals are combined while the others are away, and after the last arrival only its path to the
// root is left, log2(p) combines, whose chunks all ranks that wait take as work. No rank ever waits for a lead: whoever
// finds it taken has raised its flag before, and its holder looks once more after giving it back.
//
// Messages larger than a slot take several rounds; ranks that wait deposit further rounds ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"

namespace papaya {

class Tree : public Prepared {
 public:
  static constexpr std::size_t max_element_bytes = 4096;  // the smallest slot

  static constexpr std::size_t default_chunk_bytes = 32 << 10;

  static Rounds::Shape shape_for(int ranks, std::size_t capacity, std::size_t chunk_bytes = default_chunk_bytes);
  Tree(const Team& team, std::size_t capacity, std::size_t chunk_bytes = default_chunk_bytes);

  bool is_missing(int rank) const final { return !rounds_.has_entered(rank); }

 protected:
  // One round of one call: bytes [offset, offset + bytes) of the message.
  struct Part {
    std::uint64_t round;
    std::size_t offset;
    std::size_t bytes;
    int chunks;
  };

  // The rounds of a call.
  struct Call {
    std::uint64_t first;
    std::uint64_t end;
    std::size_t slot_bytes;  // whole elements of a slot
    std::size_t chunk_bytes;
    std::size_t bytes;

    Part part(std::uint64_t round) const;
  };
  Call begin(const Operands& operands) noexcept;

  void deposit(const Operands& operands, const Call& call, const Part& part) noexcept;

  // Combines what is ready of all chunks once. Non-roots of a reduce call it before they leave.
  void help(const Operands& operands, const Call& call, const Part& part) noexcept;

  // One look at a round whose result this rank wants: helps, and copies finished chunks to `receive`. True when all have
  // been copied. start() comes before the first look.
  void start(const Part& part) noexcept;
  bool look(const Operands& operands, const Call& call, const Part& part) noexcept;

  bool vetoed_ = false;
  Rounds rounds_;

 private:
  struct Control;
  Control& control(std::uint64_t round, int chunk) const noexcept;
  std::byte* chunk(const Part& part, const Call& call, int rank, int chunk) const noexcept;
  int arrived(std::uint64_t round, int chunk) const noexcept;
  bool is_there(std::uint64_t round, int rank, int chunk) const noexcept;
  bool try_lead(Control& control, std::uint64_t round) const noexcept;
  int combine_ready(const Operands& operands, const Call& call, const Part& part, int chunk) noexcept;
  void climb(const Operands& operands, const Call& call, const Part& part, int chunk, int rank) noexcept;
  void work(const Operands& operands, const Call& call, const Part& part, int chunk) noexcept;

  const int height_;
  const std::size_t chunk_bytes_;
  std::uint64_t next_ = rounds_.team().first_round;
  // Of the round whose result is awaited, by chunk: ranks there at the last look, and whether the result was copied.
  std::vector<int> seen_;
  std::vector<char> copied_;
  int copied_count_ = 0;
  bool write_through_ = false;       // this rank alone wants the result
};

}  // namespace papaya
