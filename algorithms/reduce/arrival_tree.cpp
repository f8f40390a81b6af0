// MPI_Reduce over the fixed tree of algorithms/tree.hpp, all sizes. Who is not the root deposits its operand, combines
// what has become ready by that, and leaves; after the last arrival only that rank's path to the tree's root is left.
//
// Where p*S is small, deposits are all that non-roots do, and the root combines: a combine costs less than the transfer
// of the leader role. Cost for a non-root: a copy of S bytes and at most log2(p) combines. For the root after the last
// arrival: log2(p) combines of S bytes.

#include "algorithms/reduce/pairwise.hpp"
#include "algorithms/tree.hpp"

namespace papaya {

namespace {

constexpr std::size_t root_combines_bytes = 16384;

class ArrivalTree final : public Tree {
 public:
  using Tree::Tree;

  bool run(const Operands& operands, wait::Site& site) override {
    const bool is_root = rounds_.team().rank == operands.root;
    const auto ranks = static_cast<std::size_t>(rounds_.team().size);
    const bool root_combines = operands.reduction->by_table && operands.bytes * ranks <= root_combines_bytes;
    const Call call = begin(operands, !root_combines);
    if (!is_root && leaves_by_message(operands, call, site)) {
      if (operands.deposited != nullptr) operands.deposited(operands.context);
      rounds_.return_credit(call.end);
      return true;
    }
    std::uint64_t deposited = call.first;
    for (std::uint64_t round = call.first; round < call.end; ++round) {
      const Fragment fragment = call.fragment(round);
      if (deposited == round) {
        rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
        deposit(operands, call, fragment);
        ++deposited;
        if (round == call.first && operands.deposited != nullptr) operands.deposited(operands.context);
      }
      if (is_root) {
        await(operands, call, fragment, deposited, site);
      } else if (root_combines) {
        wake_root(round);
      } else {
        help(operands, call, fragment);
      }
      rounds_.return_credit(round + 1);
    }
    return true;
  }

 private:
  void await(const Operands& operands, const Call& call, const Fragment& fragment, std::uint64_t& deposited,
             wait::Site& site) {
    start(fragment);
    const bool is_one_round = call.end - call.first == 1;
    const auto ready = [&] {
      if (is_one_round) take_messages(fragment);
      if (look(operands, call, fragment)) return true;
      if (deposited < call.end && rounds_.is_free(deposited)) deposit(operands, call, call.fragment(deposited++));
      return false;
    };
    if (!ready())
      rounds_.team().policy->until(
          site, rounds_.bell(), static_cast<std::uint32_t>(fragment.round), ready, [] { return false; },
          static_cast<Prepared*>(this));
  }

  // The last to deposit wakes the root, should it sleep.
  void wake_root(std::uint64_t round) {
    if (!rounds_.is_anybody_asleep()) return;
    for (int rank = 0; rank < rounds_.team().size; ++rank)
      if (!rounds_.is_complete(round, rank) && !rounds_.fell_back(round, rank)) return;
    rounds_.ring(round);
  }
};

constexpr Parameter parameters[] = {Tree::numa_trees_parameter};

constexpr Descriptor descriptor = {
    .collective = Collective::reduce,
    .name = "arrival_tree",
    .summary = "non-roots deposit, combine what is ready and leave; the last arrival's path to the root is left",
    .source = "Mohammadalizadehbakhtevari 2021, sections 4.1 and 4.3, over a fixed tree",
    .one_node = true,
    .max_element_bytes = Tree::max_element_bytes,
    .parameters = parameters,
    .automatic = {.most_ranks = 64},
    .is_node_phase = true,
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return Tree::shape_for(ranks, capacity).total(); },
    .lean_bytes = [](int ranks, std::size_t capacity,
                     std::size_t largest) { return Pairwise::shape_for(ranks, capacity, largest).total(); },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      if (team.deposits != nullptr) return std::make_unique<Pairwise>(team, capacity, root_combines_bytes);
      return std::make_unique<ArrivalTree>(team, capacity, Tree::default_chunk_bytes,
                                           static_cast<Tree::NumaTrees>(values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
