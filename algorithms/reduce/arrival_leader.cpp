// MPI_Reduce by whoever has arrived. Mohammadalizadehbakhtevari 2021, Algorithm 4.1 without its last step.
//
// Every rank deposits its operand. The first to arrive leads: it reduces what is ready. Two things differ from the
// thesis: a leader that is not the root does not wait for the others but gives the role back and leaves, and whoever
// comes next takes it up; and where p*S is small, a second transfer costs more than the reduction, so that non-roots
// only deposit, in the flag's own cache line up to 48 bytes and in that and the next up to 112, and the root reduces as
// they come.
//
// Cost for a non-root: a copy of S bytes, and what it combines as a leader. For the root after the last arrival: one
// transfer and at most log2(p) combines. Order as in algorithms/tree.hpp.

#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "algorithms/reduce/pairwise.hpp"
#include "algorithms/transport/messages.hpp"
#include "algorithms/tree.hpp"

namespace papaya {

namespace {

constexpr std::size_t largest_bytes = 65536;
constexpr int max_levels = 32;

class ArrivalLeader final : public Tree {
 public:
  ArrivalLeader(const Team& team, std::size_t capacity, std::int64_t root_serves_bytes)
      : Tree(team, capacity, largest_bytes),
        root_serves_bytes_(static_cast<std::size_t>(root_serves_bytes)),
        scratch_stride_(Rounds::round_up(capacity, Rounds::line_bytes)) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const Call call = begin(operands);
    const Fragment fragment = call.fragment(call.first);
    const bool is_root = rounds_.team().rank == operands.root;
    const bool root_serves = operands.reduction->by_table &&
                             operands.bytes * static_cast<std::size_t>(rounds_.team().size) <= root_serves_bytes_;
    if (is_root && root_serves) {
      if (operands.deposited != nullptr) operands.deposited(operands.context);
      serve_root(operands, fragment, site);
    } else if (!is_root && leaves_by_message(operands, call, site)) {
      if (operands.deposited != nullptr) operands.deposited(operands.context);
    } else {
      rounds_.wait_until_free(fragment.round, site, static_cast<Prepared*>(this));
      deposit(operands, call, fragment);
      if (operands.deposited != nullptr) operands.deposited(operands.context);
      if (is_root)
        await(operands, call, fragment, site);
      else if (root_serves)
        wake_root(fragment.round, operands.root);
      else
        help(operands, call, fragment);
    }
    rounds_.return_credit(call.end);
    return true;
  }

 private:
  void await(const Operands& operands, const Call& call, const Fragment& fragment, wait::Site& site) {
    start(fragment);
    const auto ready = [&] {
      take_messages(fragment);
      return look(operands, call, fragment);
    };
    if (!ready())
      rounds_.team().policy->until(
          site, rounds_.bell(), static_cast<std::uint32_t>(fragment.round), ready, [] { return false; },
          static_cast<Prepared*>(this));
  }

  // The last to deposit wakes the root, should it sleep.
  void wake_root(std::uint64_t round, int root) {
    if (!rounds_.is_anybody_asleep()) return;
    for (int rank = 0; rank < rounds_.team().size; ++rank)
      if (rank != root && !rounds_.is_complete(round, rank) && !rounds_.fell_back(round, rank)) return;
    rounds_.ring(round);
  }

  // The root reduces all deposits itself, in rank order as far as they have come; its own operand stays where it is.
  void serve_root(const Operands& operands, const Fragment& fragment, wait::Site& site) {
    const Team& team = rounds_.team();
    const Reduction& reduction = *operands.reduction;
    auto* const receive = static_cast<std::byte*>(operands.receive);
    const std::byte* stack[max_levels];  // finished subtrees, the largest first, as the digits of a binary counter
    int depth = 0;
    for (int next = 0; next < team.size; ++next) {
      if (next != team.rank) {
        const auto is_there = [&] {
          return rounds_.is_complete(fragment.round, next) ||
                 (team.messages != nullptr && rounds_.fell_back(fragment.round, next));
        };
        if (!is_there())
          team.policy->until(
              site, rounds_.bell(), static_cast<std::uint32_t>(fragment.round), is_there, [] { return false; },
              static_cast<Prepared*>(this));
        if (!rounds_.is_complete(fragment.round, next)) {
          rounds_.wait_until_free(fragment.round, site, static_cast<Prepared*>(this));
          team.messages->receive(next, rounds_.data(fragment.round, next, fragment.bytes), fragment.bytes);
        }
      }
      stack[depth++] = next == team.rank ? static_cast<const std::byte*>(operands.send)
                                         : rounds_.data(fragment.round, next, fragment.bytes);
      // One subtree is complete for every trailing one of `next`; after the last rank all that is left is combined.
      const bool last = next == team.size - 1;
      for (int merges = last ? depth - 1 : std::countr_one(static_cast<unsigned>(next)); merges > 0; --merges) {
        --depth;
        std::byte* const out = last && depth == 1 ? receive : scratch(depth - 1);
        reduction.combine(reduction, stack[depth - 1], stack[depth], out, operands.count);
        stack[depth - 1] = out;
      }
    }
    if (team.size == 1 && receive != operands.send) std::memcpy(receive, operands.send, operands.bytes);
  }

  std::byte* scratch(int level) {
    if (scratch_ == nullptr)
      scratch_.reset(new (std::align_val_t{Rounds::line_bytes}) std::byte[scratch_stride_ * max_levels]);
    return scratch_.get() + static_cast<std::size_t>(level) * scratch_stride_;
  }

  struct AlignedDelete {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{Rounds::line_bytes}); }
  };

  const std::size_t root_serves_bytes_;
  const std::size_t scratch_stride_;
  std::unique_ptr<std::byte[], AlignedDelete> scratch_;  // touched as far as used
};

constexpr Parameter parameters[] = {
    {"self_serve_bytes", 16384, 0, 1 << 20, "where ranks * message bytes is at most this, the root alone reduces"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::reduce,
    .name = "arrival_leader",
    .summary = "non-roots deposit, reduce what is ready and leave; small messages are reduced by the root",
    .source = "Mohammadalizadehbakhtevari 2021, Algorithm 4.1",
    .one_node = true,
    .max_bytes = largest_bytes,
    .max_element_bytes = Tree::max_element_bytes,
    .parameters = parameters,
    .automatic = {.most_ranks = 64},
    .is_node_phase = true,
    .region_bytes =
        [](int ranks, std::size_t capacity, std::span<const std::int64_t>) {
          return Tree::shape_for(ranks, capacity, largest_bytes).total();
        },
    .lean_bytes = [](int ranks, std::size_t capacity,
                     std::size_t largest) { return Pairwise::shape_for(ranks, capacity, largest).total(); },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      if (team.deposits != nullptr)
        return std::make_unique<Pairwise>(team, capacity, static_cast<std::size_t>(values[0]));
      return std::make_unique<ArrivalLeader>(team, capacity, values[0]);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
