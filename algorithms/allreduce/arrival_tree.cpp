// MPI_Allreduce over the fixed tree of algorithms/tree.hpp, all sizes. It answers the limit of the thesis's leader, p-1
// combines after the last arrival in the worst case, and one core to make them: here they are log2(p), cut into chunks
// that all waiting ranks take.
//
// Cost after the last arrival: a copy of S bytes in, log2(p) combines of S bytes over all idle cores, a copy of S bytes
// out, pipelined by chunks.

#include "algorithms/tree.hpp"

namespace papaya {

namespace {

class ArrivalTree final : public Tree {
 public:
  using Tree::Tree;

  bool run(const Operands& operands, wait::Site& site) override {
    if (!operands.declines && !rounds_.borrow(std::min(operands.bytes, rounds_.shape().slot_bytes), site)) {
      Operands left_out = operands;
      left_out.declines = true;
      return reduce(left_out, site).is_done;
    }
    const Outcome outcome = reduce(operands, site);
    rounds_.give_back(outcome.next);
    return outcome.is_done;
  }

 private:
  struct Outcome {
    bool is_done;
    std::uint64_t next;  // round
  };

  Outcome reduce(const Operands& operands, wait::Site& site) {
    const Call call = begin(operands);
    std::uint64_t deposited = call.first;
    for (std::uint64_t round = call.first; round < call.end; ++round) {
      const Fragment fragment = call.fragment(round);
      if (deposited == round) {
        rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
        deposit(operands, call, fragment);
        ++deposited;
        if (round == call.first && operands.deposited != nullptr) operands.deposited(operands.context);
      }
      start(fragment);
      const auto ready = [&] {
        if (look(operands, call, fragment)) return true;
        // Nothing to do for this round: run ahead.
        if (!operands.declines && deposited < call.end && rounds_.is_free(deposited))
          deposit(operands, call, call.fragment(deposited++));
        return false;
      };
      if (!ready())
        rounds_.team().policy->until(
            site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
            static_cast<Prepared*>(this));
      if (round == call.first)
        rounds_.all_have_released(call.first);  // all have come, so all have left the call before
      if (declined_) break;
      rounds_.return_credit(round + 1);
    }
    rounds_.return_credit(call.end);
    return {!declined_, call.end};
  }
};

constexpr Parameter parameters[] = {Tree::numa_trees_parameter};

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "arrival_tree",
    .summary = "ready subtrees are combined as ranks arrive, in chunks that all waiting ranks take",
    .source = "Mohammadalizadehbakhtevari 2021, sections 4.1 and 4.3, over a fixed tree",
    .one_node = true,
    .max_element_bytes = Tree::max_element_bytes,
    .parameters = parameters,
    .automatic = {.most_ranks = 64},
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return Tree::shape_for(ranks, capacity).total(); },
    .control_bytes = [](int ranks, std::size_t largest,
                        std::size_t) { return Tree::borrowing_shape_for(ranks, largest).total(); },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      const Rounds::Shape shape = team.deposits != nullptr ? Tree::borrowing_shape_for(team.size, capacity)
                                                           : Tree::shape_for(team.size, capacity);
      return std::make_unique<ArrivalTree>(team, shape, Tree::default_chunk_bytes,
                                           static_cast<Tree::NumaTrees>(values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
