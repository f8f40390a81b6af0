// MPI_Bcast over a shared tree, for ranks that arrive together on machines with several caches or NUMA nodes: a message
// enters each of them once, and no line is read by more than a few ranks at a time.
//
// Ranks with children copy chunks from their parent's slot into their own and take their result from there; the others
// copy straight into their buffer, and all levels work at once. A parent that has
// not arrived is passed by: its children take from the nearest ancestor that has, in the end from the root, which never
// waits for anybody but for a free slot.

#include <vector>

#include "algorithms/patterns/tree.hpp"
#include "algorithms/root_deposits.hpp"

namespace papaya {

namespace {

Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const std::size_t slot = root_deposits::slot_for(capacity);
  return {.ranks = ranks, .banks = slot <= 4096 ? 32 : slot <= 65536 ? 4 : 2, .slots = ranks, .slot_bytes = slot};
}

class TreeBcast final : public root_deposits::Fragmented {
 public:
  TreeBcast(const Team& team, std::size_t capacity, int radix)
      : Fragmented(team, shape_of(team, capacity)),
        radix_(radix),
        order_(static_cast<std::size_t>(team.size)),
        parents_(static_cast<std::size_t>(team.size)) {}

 private:
  static Rounds::Shape shape_of(const Team& team, std::size_t capacity) {
    return team.deposits == nullptr
               ? shape_for(team.size, capacity)
               : root_deposits::borrowing_shape_for(team.size, team.size, capacity, team.deposits->largest_bytes());
  }

  // Finds this rank's position in the tree below the root; true if it has children.
  bool start(const Operands& operands, bool) override {
    const int root = operands.root;
    if (root == root_) return has_children_;
    root_ = root;
    const int rank = rounds_.team().rank;
    patterns::broadcast_tree(rounds_.team().locations, root, radix_, order_, parents_);
    ancestors_.clear();
    for (int a = parents_[static_cast<std::size_t>(rank)]; a >= 0; a = parents_[static_cast<std::size_t>(a)])
      ancestors_.push_back(a);
    has_children_ = std::find(parents_.begin(), parents_.end(), rank) != parents_.end();
    return has_children_;
  }

  void deposit(const Operands& operands, std::size_t offset, std::size_t bytes, std::uint64_t round,
               wait::Site& site) override {
    if (has_children_) {
      wait_until_free(round, site);
      put(static_cast<const std::byte*>(operands.send) + offset, 0, bytes, bytes, round, rounds_.team().rank);
    }
    rounds_.ring(round);
  }

  // The nearest ancestor that has arrived, if it has more than `done` bytes of the round: then `there` says how many.
  int find_source(std::uint64_t round, std::size_t done, std::size_t bytes, std::size_t& there) const {
    for (const int ancestor : ancestors_) {
      there = bytes_in(round, ancestor, bytes);
      if (there > done) return ancestor;
      if (rounds_.has_entered(ancestor) && !(may_fall_back_ && rounds_.fell_back(round, ancestor))) return -1;
    }
    return -1;
  }

  bool receive(std::byte* to, std::size_t bytes, std::uint64_t round, int root, wait::Site& site) override {
    const int rank = rounds_.team().rank;
    // Who passes a message on must not wait for those who are behind either; its children pass it by.
    const bool passes_on = has_children_ && !fell_back_;
    if (passes_on) wait_until_free(round, site);
    for (std::size_t done = 0; done < bytes;) {
      std::size_t there = 0;
      int source = -1;
      wait_until([&] { return (source = find_source(round, done, bytes, there)) >= 0 || is_left_to_mpi(round, root); },
                 round, site);
      if (source < 0) return false;
      const std::byte* from = rounds_.data(round, source, bytes);
      if (passes_on) {
        put(from, done, there, bytes, round, rank);
        from = rounds_.data(round, rank, bytes);
      }
      std::memcpy(to + done, from + done, there - done);
      done = there;
    }
    rounds_.ring(round);
    return true;
  }

  const int radix_;
  std::vector<int> order_;
  std::vector<int> parents_;
  std::vector<int> ancestors_;  // the parent first, the root last
  int root_ = -1;               // of the tree below
  bool has_children_ = false;
};

constexpr Parameter parameters[] = {
    {.name = "radix", .fallback = 4, .lowest = 1, .highest = 64, .help = "children of a rank", .old_name = "fanout"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::bcast,
    .name = "tree_bcast",
    .summary = "k-ary shared tree by NUMA nodes and caches, pipelined; ancestors that are late are passed by",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 4, for balanced arrivals",
    .one_node = true,
    .parameters = parameters,
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return shape_for(ranks, capacity).total(); },
    .lean_bytes =
        [](int ranks, std::size_t capacity, std::size_t largest) {
          return root_deposits::borrowing_shape_for(ranks, ranks, capacity, largest).total();
        },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<TreeBcast>(team, capacity, static_cast<int>(values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
