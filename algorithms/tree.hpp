// Reductions over the fixed tree in rank order whose ready subtrees are combined as ranks arrive. Allreduce
// and reduce share it.
//
// Every rank deposits its operand in its own slot, chunk by chunk. Each chunk has a leader role, which whoever finds
// something to combine takes and gives back: it combines every subtree of that chunk that has become ready,
// in the slot of the subtree's first rank. So early arrivals are combined while the others are away, and
// after the last arrival only its path to the root is left, log2(p) combines, whose chunks all ranks that
// wait take as work. No rank ever waits for a role: whoever finds it taken has raised its flag before, and
// the leader looks once more after giving it back.
//
// Where ranks are bound to several NUMA nodes each node's ranks may have a tree of their own, with its own
// leader, and the nodes' results are combined over a tree of the nodes: operands cross between the nodes once,
// and as many ranks lead at a time as there are nodes. See NumaTrees.
//
// Messages larger than a slot take several rounds; ranks that wait deposit further rounds ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"

namespace papaya {

class Tree : public Prepared {
 public:
  static constexpr std::size_t max_element_bytes = 4096;  // the smallest slot

  static constexpr std::size_t default_chunk_bytes = 32 << 10;

  // When a NUMA node's ranks have a tree of their own. `same_bits`: where both kinds of trees are the same,
  // so that where a run is placed does not show in its results: the nodes hold as many consecutive ranks
  // each, a power of two (the last one may hold fewer); under PAPAYA_ORDER=arrival also with all operations
  // that commute, whose bits differ anyway. `always`: with all operations that commute, and with the others
  // if the nodes hold consecutive ranks.
  enum class NumaTrees : std::uint8_t { never, same_bits, always };
  static constexpr Parameter numa_trees_parameter = {
      "numa_trees", 1, 0, 2,
      "a tree for each NUMA node: 0: never, 1: where that cannot change a result, 2: wherever allowed"};

  static std::size_t most_chunks(std::size_t slot, std::size_t chunk_bytes);
  static Rounds::Shape shape_for(int ranks, std::size_t capacity, std::size_t chunk_bytes = default_chunk_bytes);
  // Where what ranks deposit is borrowed: every rank has to wait for every other.
  static Rounds::Shape borrowing_shape_for(int ranks, std::size_t largest,
                                           std::size_t chunk_bytes = default_chunk_bytes);
  Tree(const Team& team, std::size_t capacity, std::size_t chunk_bytes = default_chunk_bytes,
       NumaTrees numa_trees = NumaTrees::same_bits)
      : Tree(team, shape_for(team.size, capacity, chunk_bytes), chunk_bytes, numa_trees) {}
  Tree(const Team& team, const Rounds::Shape& shape, std::size_t chunk_bytes, NumaTrees numa_trees);

  bool is_missing(int rank) const final { return !rounds_.has_entered(rank); }

 protected:
  // One round of one call: bytes [offset, offset + bytes) of the message.
  struct Fragment {
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

    Fragment fragment(std::uint64_t round) const;
  };
  // `by_numa` false: one tree of all ranks, which any rank may finish alone.
  Call begin(const Operands& operands, bool by_numa = true) noexcept;

  void deposit(const Operands& operands, const Call& call, const Fragment& fragment) noexcept;

  // For a non-root of a reduce. True: it need not wait for a free bank, and its operand is on its way to the root as a
  // message.
  bool leaves_by_message(const Operands& operands, const Call& call, wait::Site& site) noexcept;
  // For the root, at each look: deposits operands that have come as messages.
  void take_messages(const Fragment& fragment) noexcept;

  // Combines what is ready of all chunks once. Non-roots of a reduce call it before they leave.
  void help(const Operands& operands, const Call& call, const Fragment& fragment) noexcept;

  // One look at a round whose result this rank wants: helps, and copies finished chunks to `receive`. True when all
  // have been copied. start() comes before the first look.
  void start(const Fragment& fragment) noexcept;
  bool look(const Operands& operands, const Call& call, const Fragment& fragment) noexcept;

  bool declined_ = false;
  Rounds rounds_;

 private:
  struct Control;
  static std::size_t extra_bytes(int ranks, std::size_t slot, std::size_t chunk_bytes);

  // The ranks in `order`, cut into groups that end at `ends`. With several of them, the last tree is that of
  // their results.
  struct Arrangement {
    std::vector<int> order;
    std::vector<int> ends;
    int mine = 0;  // this rank's group

    int groups() const { return static_cast<int>(ends.size()); }
    int last() const { return groups() > 1 ? groups() : 0; }
    bool is_of_results(int tree) const { return tree == groups(); }
    int begin_of(int tree) const { return tree == 0 ? 0 : ends[static_cast<std::size_t>(tree - 1)]; }
    int members(int tree) const {
      return is_of_results(tree) ? groups() : ends[static_cast<std::size_t>(tree)] - begin_of(tree);
    }
  };

  // One of the trees of one chunk of one round.
  struct Subtask {
    const Fragment& fragment;
    const Call& call;
    int chunk;
    int tree;

    std::size_t begin() const { return static_cast<std::size_t>(chunk) * call.chunk_bytes; }
    std::size_t bytes() const { return std::min(call.chunk_bytes, fragment.bytes - begin()); }
  };

  Control& control(const Subtask& at) const noexcept;
  std::byte* bytes_of(const Subtask& at, int rank) const noexcept;
  int rank_of(const Subtask& at, int member) const noexcept;
  enum class State { away, there, declined };
  State state_of(const Subtask& at, int member) const noexcept;
  int arrived(const Subtask& at) const noexcept;
  bool try_lead(Control& k, const Subtask& at) const noexcept;
  int combine_ready(const Operands& operands, const Subtask& at) noexcept;
  void climb(const Operands& operands, const Subtask& at, int member) noexcept;
  void work(const Operands& operands, Subtask at) noexcept;

  const std::size_t chunk_bytes_;
  Arrangement plain_;
  Arrangement by_numa_;
  bool numa_trees_in_rank_order_ = false;   // what does not commute is reduced by NUMA node
  bool numa_trees_if_commutative_ = false;  // what does
  const Arrangement* trees_ = nullptr;      // of the present call
  std::uint64_t next_ = rounds_.team().first_round;
  // Of the round whose result is awaited, by chunk: ranks there at the last look, and whether the result was copied.
  std::vector<int> seen_;
  std::vector<char> copied_;
  int copied_count_ = 0;
  std::uint64_t looked_at_ = 0;          // the round whose messages have been looked for,
  std::uint64_t times_fallen_back_ = 0;  // and how many intervals there were then
  bool write_through_ = false;           // this rank alone wants the result
};

}  // namespace papaya
