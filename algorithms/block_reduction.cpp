#include "algorithms/block_reduction.hpp"

#include <algorithm>
#include <cstring>

#include "algorithms/patterns/tree.hpp"
#include "base/copy.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 512 << 10;
constexpr std::size_t region_limit = 16 << 20;
constexpr std::size_t announced_bytes = 16 << 10;  // blocks at least this large are announced one by one

// A slot holds one fragment of each rank's block.
std::size_t slot_for(int ranks, std::size_t wanted) {
  const auto p = static_cast<std::size_t>(ranks);
  return std::max(wanted / p / Rounds::line_bytes * Rounds::line_bytes, BlockReduction::max_element_bytes) * p;
}

Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const auto p = static_cast<std::size_t>(ranks);
  const std::size_t slot = slot_for(ranks, std::min({capacity * p, slot_limit, region_limit / (2 * p)}));
  return {.ranks = ranks,
          .banks = Rounds::banks_for(capacity / slot, slot <= 65536 ? 4 : 2, 8),
          .slots = ranks,
          .slot_bytes = slot};
}

Rounds::Shape borrowing_shape_for(int ranks, std::size_t largest, std::size_t own_bytes) {
  constexpr int banks = 4;
  return {.ranks = ranks,
          .banks = banks,
          .slots = ranks,
          .slot_bytes = slot_for(ranks, std::min(largest / banks, slot_limit)),
          .borrows = true,
          .own_bytes = Rounds::own_slot(own_bytes, banks)};
}

}  // namespace

std::size_t BlockReduction::region_bytes(int ranks, std::size_t capacity, std::span<const std::int64_t>) {
  return shape_for(ranks, capacity).total();
}

std::size_t BlockReduction::control_bytes(int ranks, std::size_t largest, std::size_t own_bytes) {
  return borrowing_shape_for(ranks, largest, own_bytes).total();
}

std::unique_ptr<Prepared> BlockReduction::prepare(const Team& team, std::size_t capacity,
                                                  std::span<const std::int64_t>) {
  return std::make_unique<BlockReduction>(team, team.deposits != nullptr
                                                    ? borrowing_shape_for(team.size, capacity, team.own_bytes)
                                                    : shape_for(team.size, capacity));
}

BlockReduction::BlockReduction(const Team& team, const Rounds::Shape& shape)
    : Exchange(team, shape, true, 0),
      piece_(shape.slot_bytes / static_cast<std::size_t>(team.size)),
      scratch_(shape.slot_bytes),
      levels_(static_cast<std::size_t>(team.size)),
      at_(static_cast<std::size_t>(team.size)) {}

BlockReduction::Part BlockReduction::part(const Operands& operands, const Fragment& fragment, int rank) noexcept {
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t first = operands.starts == nullptr ? r * operands.bytes : operands.starts[r];
  const std::size_t length = operands.starts == nullptr ? operands.bytes : operands.starts[r + 1] - first;
  const std::size_t offset = std::min(fragment.offset, length);
  return {first + offset, std::min(fragment.bytes, length - offset)};
}

// What travels with the flag has no room to lose.
std::size_t BlockReduction::stride(std::size_t fragment_bytes) const noexcept {
  const auto p = static_cast<std::size_t>(rounds_.team().size);
  return fragment_bytes * p <= Rounds::inline_bytes ? fragment_bytes
                                                    : Rounds::round_up(fragment_bytes, Rounds::line_bytes);
}
std::size_t BlockReduction::slot_bytes(std::size_t fragment_bytes) const noexcept {
  return stride(fragment_bytes) * static_cast<std::size_t>(rounds_.team().size);
}

std::size_t BlockReduction::round_bytes(const Operands& operands) const noexcept {
  return Rounds::whole_elements(piece_, operands.reduction->element_bytes);
}

std::size_t BlockReduction::deposit_bytes(const Operands& operands) const noexcept {
  return slot_bytes(std::min(operands.bytes, round_bytes(operands)));
}

void BlockReduction::deposit(const Operands& operands, const Fragment& fragment) noexcept {
  const Team& team = rounds_.team();
  const bool one_by_one = fragment.bytes >= announced_bytes;
  const std::size_t step = stride(fragment.bytes);
  const auto* const send = static_cast<const std::byte*>(operands.send);
  std::byte* const data = rounds_.own_data(fragment.round, slot_bytes(fragment.bytes));
  for (int i = 1; i < team.size; ++i) {
    const int receiver = (team.rank + i) % team.size;
    const Part block = part(operands, fragment, receiver);
    copy_bytes(data + static_cast<std::size_t>(receiver) * step, send + block.begin, block.bytes);
    if (one_by_one && i + 1 < team.size) rounds_.publish(fragment.round, team.rank, static_cast<std::uint64_t>(i));
  }
  rounds_.publish(fragment.round, team.rank, Rounds::complete);
}

std::uint64_t BlockReduction::needed_progress(const Operands&, const Fragment& fragment, int sender) const noexcept {
  const Team& team = rounds_.team();
  const int turn = (team.rank - sender + team.size) % team.size;
  return fragment.bytes >= announced_bytes && turn + 1 < team.size ? static_cast<std::uint64_t>(turn)
                                                                   : Rounds::complete;
}

void BlockReduction::take(const Operands& operands, const Fragment& fragment, int sender) noexcept {
  if (round_ != fragment.round) begin(operands, fragment);
  const std::byte* const data = rounds_.data(fragment.round, sender, slot_bytes(fragment.bytes));
  add(operands, sender, data + static_cast<std::size_t>(rounds_.team().rank) * stride_);
}

// The only rank has nothing to take, and so has combined nothing.
void BlockReduction::keep(const Operands& operands) noexcept {
  if (rounds_.team().size != 1 || operands.send == operands.receive) return;
  copy_bytes(static_cast<std::byte*>(operands.receive), static_cast<const std::byte*>(operands.send), operands.bytes);
}

// The rank's own operand is combined from where it is. In place the result may overlap it: from a copy then.
void BlockReduction::begin(const Operands& operands, const Fragment& fragment) noexcept {
  const int rank = rounds_.team().rank;
  round_ = fragment.round;
  stride_ = stride(fragment.bytes);
  mine_ = part(operands, fragment, rank);
  result_ = static_cast<std::byte*>(operands.receive) + fragment.offset;
  added_ = 0;
  std::fill(levels_.begin(), levels_.end(), std::uint8_t{0});
  const std::byte* own = static_cast<const std::byte*>(operands.send) + mine_.begin;
  if (operands.send == operands.receive && mine_.bytes > 0) {
    copy_bytes(own_memory(rank), own, mine_.bytes);
    own = own_memory(rank);
  }
  add(operands, rank, own);
}

void BlockReduction::add(const Operands& operands, int rank, const std::byte* operand) noexcept {
  if (mine_.bytes == 0) return;
  const Team& team = rounds_.team();
  const Reduction& reduction = *operands.reduction;
  at_[static_cast<std::size_t>(rank)] = operand;
  if (!team.arrival_order || !reduction.commutative) return climb(reduction, rank);
  if (++added_ == 1) {
    total_ = operand;
    return;
  }
  // Not where a copy of the own operand stands.
  std::byte* const out = added_ == team.size ? result_ : own_memory(team.rank == 0 ? 1 : 0);
  reduction.combine(reduction, total_, operand, out, mine_.bytes / reduction.element_bytes);
  total_ = out;
}

// Combines the subtree that ends at `rank` with its sibling as long as the sibling is complete; the last time into the
// result.
void BlockReduction::climb(const Reduction& reduction, int rank) noexcept {
  const int ranks = rounds_.team().size;
  const int root_height = patterns::tree_height(ranks);
  int first = rank;
  levels_[static_cast<std::size_t>(first)] = 1;
  for (int height = 0; height < root_height; ++height) {
    const int sibling = patterns::tree_sibling(first, height);
    const bool is_left = patterns::tree_is_left(first, height);
    if (is_left && sibling >= ranks) {
      levels_[static_cast<std::size_t>(first)] = static_cast<std::uint8_t>(height + 2);
      continue;
    }
    if (levels_[static_cast<std::size_t>(sibling)] != height + 1) return;
    const auto left = static_cast<std::size_t>(is_left ? first : sibling);
    const auto right = static_cast<std::size_t>(is_left ? sibling : first);
    std::byte* const out = height + 1 == root_height ? result_ : own_memory(static_cast<int>(left));
    reduction.combine(reduction, at_[left], at_[right], out, mine_.bytes / reduction.element_bytes);
    at_[left] = out;
    levels_[left] = static_cast<std::uint8_t>(height + 2);
    first = static_cast<int>(left);
  }
}

}  // namespace papaya
