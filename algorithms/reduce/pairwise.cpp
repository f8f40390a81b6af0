#include "algorithms/reduce/pairwise.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "algorithms/patterns/tree.hpp"
#include "algorithms/transport/messages.hpp"
#include "base/copy.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 64 << 10;
static_assert(2 * slot_limit <= DepositArena::least_largest_bytes);

}  // namespace

// Few banks where there are many ranks, since each has a cell in each.
Rounds::Shape Pairwise::shape_for(int ranks, std::size_t capacity, std::size_t largest) {
  const std::size_t slot = Rounds::round_up(std::clamp(capacity, max_element_bytes, slot_limit), Rounds::line_bytes);
  const std::size_t most_banks = std::clamp<std::size_t>(64 / static_cast<std::size_t>(ranks), 2, 16);
  return {.ranks = ranks,
          .banks = Rounds::banks_for(std::min(Rounds::borrowed_for(capacity), largest) / slot, 2, most_banks),
          .slots = ranks,
          .slot_bytes = slot,
          .extra_bytes = static_cast<std::size_t>(ranks) * sizeof(std::uint64_t),
          .borrows = true,
          .stay = Stay::long_perhaps};
}

Pairwise::Pairwise(const Team& team, std::size_t capacity, std::size_t root_combines_bytes)
    : rounds_(team, shape_for(team.size, capacity, team.deposits->largest_bytes())),
      root_combines_bytes_(root_combines_bytes),
      height_(patterns::tree_height(team.size)),
      scratch_stride_(rounds_.shape().slot_bytes),
      messages_(static_cast<std::size_t>(team.size)),
      message_rounds_(static_cast<std::size_t>(team.size)) {}

std::size_t Pairwise::Part::count() const {
  return bytes / operands.reduction->element_bytes;
}

bool Pairwise::run(const Operands& operands, wait::Site& site) {
  const Team& team = rounds_.team();
  const std::size_t element = operands.reduction->element_bytes;
  const std::size_t slot = rounds_.shape().slot_bytes / element * element;
  const std::uint64_t first = next_;
  next_ += (operands.bytes + slot - 1) / slot;
  rounds_.enter(first);
  const bool is_root = team.rank == operands.root;
  const bool in_pairs =
      !operands.reduction->by_table || operands.bytes * static_cast<std::size_t>(team.size) > root_combines_bytes_;
  bool is_apart = false;
  if (!is_root) {
    // MPI makes ranks wait for each other who send messages of several rounds.
    if (next_ - first > 1) rounds_.wait_until_free(first, site, static_cast<Prepared*>(this));
    is_apart = rounds_.keeps_apart(first, next_, std::min(slot, operands.bytes));
  }
  std::size_t offset = 0;
  for (std::uint64_t round = first; round < next_; ++round, offset += slot) {
    const Part part{operands, site, round, offset, std::min(slot, operands.bytes - offset), in_pairs};
    if (is_root) {
      if (round == first && operands.deposited != nullptr) operands.deposited(operands.context);
      auto* const receive = static_cast<std::byte*>(operands.receive) + offset;
      const std::byte* const result = result_of(part, 0, height_, 0, receive);
      if (result != receive) std::memcpy(receive, result, part.bytes);  // of a single rank
    } else {
      if (is_apart) {
        team.messages->send(operands.root, static_cast<const std::byte*>(operands.send) + offset, part.bytes);
      } else {
        rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
        deposit(part);
      }
      if (round == first && operands.deposited != nullptr) operands.deposited(operands.context);
      if (!is_apart && in_pairs) combine_pairs(part);
      wake_root(part);
    }
    rounds_.take(round + 1);
  }
  rounds_.give_back(next_);
  return true;
}

void Pairwise::deposit(const Part& part) noexcept {
  const int rank = rounds_.team().rank;
  copy_bytes(rounds_.own_place(part.round, part.bytes), static_cast<const std::byte*>(part.operands.send) + part.offset,
             part.bytes);
  rounds_.publish(part.round, rank, Rounds::complete);
}

// Of two siblings, named by the first rank of the second: twice the round once one of them is complete, plus one when
// they are combined.
std::atomic<std::uint64_t>& Pairwise::pair(std::uint64_t round, int right) const noexcept {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(rounds_.extra(round))[right];
}

void Pairwise::combine_pairs(const Part& part) noexcept {
  const Team& team = rounds_.team();
  const Reduction& reduction = *part.operands.reduction;
  int first = team.rank;
  for (int level = 0; level < height_; ++level) {
    const int sibling = patterns::tree_sibling(first, level);
    const int left = std::min(first, sibling);
    const int right = std::max(first, sibling);
    if (right >= team.size) continue;
    const int root = part.operands.root;
    if (root >= left && root < right + (1 << level)) return;
    std::atomic<std::uint64_t>& both = pair(part.round, right);
    // Acquire and release: the second of the two sees what all below the first have done.
    if (both.exchange(2 * part.round, std::memory_order_acq_rel) < 2 * part.round) return;
    std::byte* const out = rounds_.place(part.round, left, part.bytes);
    reduction.combine(reduction, out, rounds_.place(part.round, right, part.bytes), out, part.count());
    both.store(2 * part.round + 1, std::memory_order_release);  // partner: the acquire in result_of
    first = left;
  }
}

// The last to come wakes the root, should it sleep.
void Pairwise::wake_root(const Part& part) noexcept {
  if (!rounds_.is_anybody_asleep()) return;
  for (int rank = 0; rank < rounds_.team().size; ++rank)
    if (rank != part.operands.root && !rounds_.is_complete(part.round, rank) && !rounds_.is_apart(part.round, rank))
      return;
  rounds_.ring(part.round);
}

// The root's. What all ranks below a node of the tree give: where they have combined it, or in the root's own memory,
// in `out` if that is not null.
const std::byte* Pairwise::result_of(const Part& part, int first, int level, int depth, std::byte* out) {
  const int ranks = rounds_.team().size;
  const patterns::TreeNode node = patterns::tree_node(first, level, ranks);
  if (node.level == 0) return operand_of(part, first);
  const int right = first + (1 << (node.level - 1));
  const int end = patterns::tree_end(node, ranks);
  const int root = part.operands.root;
  if (part.in_pairs && (root < first || root >= end)) {
    const auto is_combined = [&] {
      return pair(part.round, right).load(std::memory_order_acquire) == 2 * part.round + 1;
    };
    wait_until(part, [&] { return is_combined() || has_message(part, first, end); });
    if (is_combined()) return rounds_.place(part.round, first, part.bytes);
  }
  const std::byte* const left_result = result_of(part, first, node.level - 1, depth, nullptr);
  const std::byte* const right_result = result_of(part, right, node.level - 1, depth + 1, nullptr);
  std::byte* const result = out != nullptr ? out : scratch(depth);
  const Reduction& reduction = *part.operands.reduction;
  reduction.combine(reduction, left_result, right_result, result, part.count());
  return result;
}

const std::byte* Pairwise::operand_of(const Part& part, int rank) {
  if (rank == part.operands.root) return static_cast<const std::byte*>(part.operands.send) + part.offset;
  wait_until(part, [&] { return rounds_.is_complete(part.round, rank) || has_message(part, rank, rank + 1); });
  return rounds_.is_complete(part.round, rank) ? rounds_.place(part.round, rank, part.bytes)
                                               : messages_[static_cast<std::size_t>(rank)].data();
}

bool Pairwise::has_message(const Part& part, int first, int end) const noexcept {
  const auto begin = message_rounds_.begin();
  return std::find(begin + first, begin + end, part.round) != begin + end;
}

// Whoever sends them may be waiting for it. So all that are on their way are taken at each look, whatever the root
// waits for.
void Pairwise::take_messages(const Part& part) {
  const std::uint64_t times = rounds_.times_apart();
  if (times == 0 || (looked_at_ == part.round && times_apart_ == times)) return;
  looked_at_ = part.round;
  times_apart_ = times;
  const Team& team = rounds_.team();
  for (int rank = 0; rank < team.size; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (rank == team.rank || message_rounds_[at] == part.round || !rounds_.is_apart(part.round, rank)) continue;
    messages_[at].resize(part.bytes);
    team.messages->receive(rank, messages_[at].data(), part.bytes);
    message_rounds_[at] = part.round;
  }
}

template <class Ready>
void Pairwise::wait_until(const Part& part, const Ready& ready) {
  const auto look = [&] {
    take_messages(part);
    return ready();
  };
  if (!look())
    rounds_.team().policy->until(
        part.site, rounds_.bell(), static_cast<std::uint32_t>(part.round), look, [] { return false; },
        static_cast<Prepared*>(this));
}

std::byte* Pairwise::scratch(int depth) {
  if (scratch_ == nullptr)
    scratch_.reset(new (std::align_val_t{Rounds::line_bytes})
                       std::byte[scratch_stride_ * static_cast<std::size_t>(height_ + 1)]);
  return scratch_.get() + static_cast<std::size_t>(depth) * scratch_stride_;
}

}  // namespace papaya
