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
          .lifetime = Lifetime::unbounded};
}

Pairwise::Pairwise(const Team& team, std::size_t capacity, std::size_t root_combines_bytes)
    : rounds_(team, shape_for(team.size, capacity, team.deposits->largest_bytes())),
      root_combines_bytes_(root_combines_bytes),
      height_(patterns::tree_height(team.size)),
      scratch_stride_(rounds_.shape().slot_bytes),
      messages_(static_cast<std::size_t>(team.size)),
      message_rounds_(static_cast<std::size_t>(team.size)) {}

std::size_t Pairwise::Fragment::count() const {
  return bytes / operands.reduction->element_bytes;
}

bool Pairwise::run(const Operands& operands, wait::Site& site) {
  const Team& team = rounds_.team();
  const std::size_t element = operands.reduction->element_bytes;
  const std::size_t slot = Rounds::whole_elements(rounds_.shape().slot_bytes, element);
  const std::uint64_t first = next_;
  next_ += Rounds::pieces(operands.bytes, slot);
  rounds_.enter(first);
  const bool is_root = team.rank == operands.root;
  const bool in_pairs =
      !operands.reduction->by_table || operands.bytes * static_cast<std::size_t>(team.size) > root_combines_bytes_;
  bool fell_back = false;
  if (!is_root) {
    // MPI makes ranks wait for each other who send messages of several rounds.
    if (next_ - first > 1) rounds_.wait_until_free(first, site, static_cast<Prepared*>(this));
    fell_back = rounds_.falls_back(first, next_, std::min(slot, operands.bytes));
  }
  std::size_t offset = 0;
  for (std::uint64_t round = first; round < next_; ++round, offset += slot) {
    const Fragment fragment{operands, site, round, offset, std::min(slot, operands.bytes - offset), in_pairs};
    if (is_root) {
      if (round == first && operands.deposited != nullptr) operands.deposited(operands.context);
      auto* const receive = static_cast<std::byte*>(operands.receive) + offset;
      const std::byte* const result = result_of(fragment, 0, height_, 0, receive);
      if (result != receive) std::memcpy(receive, result, fragment.bytes);  // of a single rank
    } else {
      if (fell_back) {
        rounds_.send_as_message(round, operands.root, static_cast<const std::byte*>(operands.send) + offset,
                                fragment.bytes, site);
      } else {
        rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
        deposit(fragment);
      }
      if (round == first && operands.deposited != nullptr) operands.deposited(operands.context);
      if (!fell_back && in_pairs) combine_pairs(fragment);
      wake_root(fragment);
    }
    rounds_.return_credit(round + 1);
  }
  rounds_.give_back(next_);
  return true;
}

void Pairwise::deposit(const Fragment& fragment) noexcept {
  const int rank = rounds_.team().rank;
  copy_bytes(rounds_.own_data(fragment.round, fragment.bytes),
             static_cast<const std::byte*>(fragment.operands.send) + fragment.offset, fragment.bytes);
  rounds_.publish(fragment.round, rank, Rounds::complete);
}

// Of two siblings, named by the first rank of the second: twice the round once one of them is complete, plus one when
// they are combined.
std::atomic<std::uint64_t>& Pairwise::pair(std::uint64_t round, int right) const noexcept {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(rounds_.extra(round))[right];
}

void Pairwise::combine_pairs(const Fragment& fragment) noexcept {
  const Team& team = rounds_.team();
  const Reduction& reduction = *fragment.operands.reduction;
  int first = team.rank;
  for (int level = 0; level < height_; ++level) {
    const int sibling = patterns::tree_sibling(first, level);
    const int left = std::min(first, sibling);
    const int right = std::max(first, sibling);
    if (right >= team.size) continue;
    const int root = fragment.operands.root;
    if (root >= left && root < right + (1 << level)) return;
    std::atomic<std::uint64_t>& both = pair(fragment.round, right);
    // Acquire and release: the second of the two sees what all below the first have done.
    if (both.exchange(2 * fragment.round, std::memory_order_acq_rel) < 2 * fragment.round) return;
    std::byte* const out = rounds_.data(fragment.round, left, fragment.bytes);
    reduction.combine(reduction, out, rounds_.data(fragment.round, right, fragment.bytes), out, fragment.count());
    both.store(2 * fragment.round + 1, std::memory_order_release);  // partner: the acquire in result_of
    first = left;
  }
}

// The last to come wakes the root, should it sleep.
void Pairwise::wake_root(const Fragment& fragment) noexcept {
  if (!rounds_.is_anybody_asleep()) return;
  for (int rank = 0; rank < rounds_.team().size; ++rank)
    if (rank != fragment.operands.root && !rounds_.is_complete(fragment.round, rank) &&
        !rounds_.fell_back(fragment.round, rank))
      return;
  rounds_.ring(fragment.round);
}

// The root's. What all ranks below a node of the tree give: where they have combined it, or in the root's own memory,
// in `out` if that is not null.
const std::byte* Pairwise::result_of(const Fragment& fragment, int first, int level, int depth, std::byte* out) {
  const int ranks = rounds_.team().size;
  const patterns::TreeNode node = patterns::tree_node(first, level, ranks);
  if (node.level == 0) return operand_of(fragment, first);
  const int right = first + (1 << (node.level - 1));
  const int end = patterns::tree_end(node, ranks);
  const int root = fragment.operands.root;
  if (fragment.in_pairs && (root < first || root >= end)) {
    const auto is_combined = [&] {
      return pair(fragment.round, right).load(std::memory_order_acquire) == 2 * fragment.round + 1;
    };
    wait_until(fragment, [&] { return is_combined() || has_message(fragment, first, end); });
    if (is_combined()) return rounds_.data(fragment.round, first, fragment.bytes);
  }
  const std::byte* const left_result = result_of(fragment, first, node.level - 1, depth, nullptr);
  const std::byte* const right_result = result_of(fragment, right, node.level - 1, depth + 1, nullptr);
  std::byte* const result = out != nullptr ? out : scratch(depth);
  const Reduction& reduction = *fragment.operands.reduction;
  reduction.combine(reduction, left_result, right_result, result, fragment.count());
  return result;
}

const std::byte* Pairwise::operand_of(const Fragment& fragment, int rank) {
  if (rank == fragment.operands.root) return static_cast<const std::byte*>(fragment.operands.send) + fragment.offset;
  wait_until(fragment,
             [&] { return rounds_.is_complete(fragment.round, rank) || has_message(fragment, rank, rank + 1); });
  return rounds_.is_complete(fragment.round, rank) ? rounds_.data(fragment.round, rank, fragment.bytes)
                                                   : messages_[static_cast<std::size_t>(rank)].data();
}

bool Pairwise::has_message(const Fragment& fragment, int first, int end) const noexcept {
  const auto begin = message_rounds_.begin();
  return std::find(begin + first, begin + end, fragment.round) != begin + end;
}

// Whoever sends them may be waiting for it. So all that are on their way are taken at each look, whatever the root
// waits for.
void Pairwise::take_messages(const Fragment& fragment) {
  const std::uint64_t times = rounds_.times_fallen_back();
  if (times == 0 || (looked_at_ == fragment.round && times_fallen_back_ == times)) return;
  looked_at_ = fragment.round;
  times_fallen_back_ = times;
  const Team& team = rounds_.team();
  for (int rank = 0; rank < team.size; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (rank == team.rank || message_rounds_[at] == fragment.round || !rounds_.fell_back(fragment.round, rank))
      continue;
    messages_[at].resize(fragment.bytes);
    team.messages->receive(rank, messages_[at].data(), fragment.bytes);
    message_rounds_[at] = fragment.round;
  }
}

template <class Ready>
void Pairwise::wait_until(const Fragment& fragment, const Ready& ready) {
  const auto look = [&] {
    take_messages(fragment);
    return ready();
  };
  if (!look())
    rounds_.team().policy->until(
        fragment.site, rounds_.bell(), static_cast<std::uint32_t>(fragment.round), look, [] { return false; },
        static_cast<Prepared*>(this));
}

std::byte* Pairwise::scratch(int depth) {
  if (scratch_ == nullptr)
    scratch_.reset(new (std::align_val_t{Rounds::line_bytes})
                       std::byte[scratch_stride_ * static_cast<std::size_t>(height_ + 1)]);
  return scratch_.get() + static_cast<std::size_t>(depth) * scratch_stride_;
}

}  // namespace papaya
