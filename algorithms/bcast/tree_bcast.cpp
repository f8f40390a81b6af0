// MPI_Bcast over a shared tree, for ranks that arrive together on machines with several caches or NUMA nodes: a message
// enters each of them once, and no line is read by more than a few ranks at a time.
//
// Ranks with children copy parts from their parent's slot into their own and take their result from there; the others
// copy straight into their buffer. Every `chunk_bytes` are announced, so that all levels work at once. A parent that has
// not arrived is passed by: its children take from the nearest ancestor that has, in the end from the root, which never
// waits for anybody but for a free slot.

#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/patterns.hpp"
#include "algorithms/rounds.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 256 << 10;
constexpr std::size_t chunk_bytes = 32 << 10;

Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const std::size_t slot = Rounds::round_up(std::min(capacity, slot_limit), Rounds::line_bytes);
  return {.ranks = ranks, .banks = slot <= 4096 ? 32 : slot <= 65536 ? 4 : 2, .slots = ranks, .slot_bytes = slot};
}

class TreeBcast final : public Prepared {
 public:
  TreeBcast(const Team& team, std::size_t capacity, int fanout)
      : rounds_(team, shape_for(team.size, capacity)),
        fanout_(fanout),
        order_(static_cast<std::size_t>(team.size)),
        parents_(static_cast<std::size_t>(team.size)) {}

  bool run(const Operands& operands, wait::Site& site) override {
    if (operands.root != root_) find_place_in_tree(operands.root);
    const std::size_t slot = rounds_.shape().slot_bytes;
    const std::uint64_t first = next_;
    next_ += (operands.bytes + slot - 1) / slot;
    rounds_.enter(first);
    const bool is_root = ancestors_.empty();
    if (!is_root && operands.deposited != nullptr) operands.deposited(operands.context);
    std::size_t offset = 0;
    for (std::uint64_t round = first; round < next_; ++round, offset += slot) {
      const std::size_t bytes = std::min(slot, operands.bytes - offset);
      if (has_children_) rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
      if (is_root)
        pass_on(static_cast<const std::byte*>(operands.send) + offset, 0, bytes, bytes, round);
      else
        receive(static_cast<std::byte*>(operands.receive) + offset, bytes, round, site);
      rounds_.ring(round);
      if (next_ - first > 1) rounds_.take(round + 1);
    }
    rounds_.take(next_);
    if (is_root && operands.deposited != nullptr) operands.deposited(operands.context);
    return true;
  }

  bool is_missing(int rank) const override { return !rounds_.has_entered(rank); }

 private:
  void find_place_in_tree(int root) {
    root_ = root;
    const int rank = rounds_.team().rank;
    patterns::broadcast_tree(rounds_.team().places, root, fanout_, order_, parents_);
    ancestors_.clear();
    for (int a = parents_[static_cast<std::size_t>(rank)]; a >= 0; a = parents_[static_cast<std::size_t>(a)])
      ancestors_.push_back(a);
    has_children_ = std::find(parents_.begin(), parents_.end(), rank) != parents_.end();
  }

  // Bytes [begin, end) of this round's `bytes`, which lie at `from`, into this rank's slot.
  void pass_on(const std::byte* from, std::size_t begin, std::size_t end, std::size_t bytes, std::uint64_t round) {
    const int rank = rounds_.team().rank;
    std::byte* const place = rounds_.place(round, rank, bytes);
    for (std::size_t done = begin; done < end;) {
      const std::size_t part = std::min(chunk_bytes, end - done);
      std::memcpy(place + done, from + done, part);
      done += part;
      rounds_.publish(round, rank, done == bytes ? Rounds::complete : done / chunk_bytes);
    }
  }

  // The nearest ancestor that has arrived, if it has more than `done` bytes of the round: then `there` says how many.
  int find_source(std::uint64_t round, std::size_t done, std::size_t bytes, std::size_t& there) const {
    for (const int ancestor : ancestors_) {
      const std::uint64_t progress = rounds_.progress_of(round, ancestor);
      there = progress == Rounds::complete ? bytes : static_cast<std::size_t>(progress) * chunk_bytes;
      if (there > done) return ancestor;
      if (rounds_.has_entered(ancestor)) return -1;
    }
    return -1;
  }

  void receive(std::byte* to, std::size_t bytes, std::uint64_t round, wait::Site& site) {
    for (std::size_t done = 0; done < bytes;) {
      std::size_t there = 0;
      int source = -1;
      const auto ready = [&] { return (source = find_source(round, done, bytes, there)) >= 0; };
      if (!ready())
        rounds_.team().policy->until(site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
                                     static_cast<Prepared*>(this));
      const std::byte* from = rounds_.place(round, source, bytes);
      if (has_children_) {
        pass_on(from, done, there, bytes, round);
        from = rounds_.place(round, rounds_.team().rank, bytes);
      }
      std::memcpy(to + done, from + done, there - done);
      done = there;
    }
  }

  Rounds rounds_;
  const int fanout_;
  std::vector<int> order_;
  std::vector<int> parents_;
  std::vector<int> ancestors_;  // the parent first, the root last
  int root_ = -1;               // of the tree below
  bool has_children_ = false;
  std::uint64_t next_ = rounds_.team().first_round;
};

constexpr Parameter parameters[] = {
    {.name = "fanout", .fallback = 4, .lowest = 1, .highest = 64, .help = "children of a rank"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::bcast,
    .name = "tree_bcast",
    .summary = "k-ary shared tree by NUMA nodes and caches, pipelined; ancestors that are late are passed by",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 4, for balanced arrivals",
    .one_node = true,
    .parameters = parameters,
    .region_bytes = [](int ranks, std::size_t capacity) { return shape_for(ranks, capacity).total(); },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<TreeBcast>(team, capacity, static_cast<int>(values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
