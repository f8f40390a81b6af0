#include "algorithms/tree.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "algorithms/patterns/tree.hpp"
#include "algorithms/transport/messages.hpp"
#include "base/copy.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 512 << 10;
constexpr std::uint32_t no_result = ~std::uint32_t{0};
constexpr std::uint32_t declined_result = no_result - 1;

// Trees of a chunk that there is room for: those of the NUMA nodes, if they are not more, and that of their
// results.
constexpr int most_groups = 8;
int trees_for(int ranks) {
  return ranks < 4 ? 1 : std::min(ranks / 2, most_groups) + 1;
}

}  // namespace

// The leader role of one tree of one chunk. `leader_lock` is 2n+1 while some rank leads round n, 2n while nobody does
// just now, smaller for earlier rounds. Taking it acquires, and giving it back releases, the partial results
// and `levels`. `finished` is n once the result of round n stands in slot `result`; released by the leader,
// acquired by who copies it or combines it further.
struct alignas(Rounds::line_bytes) Tree::Control {
  std::atomic<std::uint64_t> leader_lock;
  std::atomic<std::uint64_t> finished;
  std::atomic<std::uint32_t> result;  // relaxed: ordered by `finished` and `leader_lock`
  // Levels of the tree combined so far, plus one, of the subtree that begins at each member; 0 before its
  // chunk was seen. As many as there are members, on the lines that follow.
  std::uint8_t levels[Rounds::line_bytes - 20];

  static std::size_t bytes(int ranks) {
    return Rounds::round_up(offsetof(Control, levels) + static_cast<std::size_t>(ranks), Rounds::line_bytes);
  }
};

// Of a slot: chunks hold whole elements, so that they may be shorter than `chunk_bytes` by nearly one.
std::size_t Tree::most_chunks(std::size_t slot, std::size_t chunk_bytes) {
  return slot / (chunk_bytes - max_element_bytes) + 1;
}

// Of a bank: the count of finished chunks, and the leader roles.
std::size_t Tree::extra_bytes(int ranks, std::size_t slot, std::size_t chunk_bytes) {
  return Rounds::line_bytes +
         most_chunks(slot, chunk_bytes) * static_cast<std::size_t>(trees_for(ranks)) * Control::bytes(ranks);
}

Rounds::Shape Tree::shape_for(int ranks, std::size_t capacity, std::size_t chunk_bytes) {
  const std::size_t slot = Rounds::round_up(std::min(capacity, slot_limit), Rounds::line_bytes);
  const int banks = Rounds::banks_for(capacity / slot, slot <= 4096 ? 32 : slot <= 65536 ? 4 : 2, 32);
  return {.ranks = ranks,
          .banks = banks,
          .slots = ranks,
          .slot_bytes = slot,
          .extra_bytes = extra_bytes(ranks, slot, chunk_bytes)};
}

// Fewer banks where their cells and leader roles would take much of the window.
Rounds::Shape Tree::borrowing_shape_for(int ranks, std::size_t largest, std::size_t chunk_bytes) {
  const int banks = ranks <= 16 ? 4 : 2;
  const std::size_t slot = std::min(largest / static_cast<std::size_t>(banks), slot_limit);
  return {.ranks = ranks,
          .banks = banks,
          .slots = ranks,
          .slot_bytes = slot,
          .extra_bytes = extra_bytes(ranks, slot, chunk_bytes),
          .borrows = true};
}

Tree::Tree(const Team& team, const Rounds::Shape& shape, std::size_t chunk_bytes, NumaTrees numa_trees)
    : rounds_(team, shape), chunk_bytes_(chunk_bytes) {
  const std::size_t chunks = most_chunks(rounds_.shape().slot_bytes, chunk_bytes);
  seen_.resize(chunks);
  copied_.resize(chunks);
  plain_.order.resize(static_cast<std::size_t>(team.size));
  std::iota(plain_.order.begin(), plain_.order.end(), 0);
  plain_.ends = {team.size};
  by_numa_ = plain_;
  patterns::group_by_numa(team.locations, by_numa_.order, by_numa_.ends);
  if (by_numa_.groups() >= trees_for(team.size)) by_numa_ = plain_;
  const auto at = std::find(by_numa_.order.begin(), by_numa_.order.end(), team.rank) - by_numa_.order.begin();
  by_numa_.mine =
      static_cast<int>(std::upper_bound(by_numa_.ends.begin(), by_numa_.ends.end(), at) - by_numa_.ends.begin());
  const bool in_rank_order = by_numa_.order == plain_.order;
  const bool same_bits = in_rank_order && patterns::are_subtrees(by_numa_.ends);
  const bool always = numa_trees == NumaTrees::always;
  if (numa_trees == NumaTrees::never) return;
  numa_trees_in_rank_order_ = same_bits || (always && in_rank_order);
  numa_trees_if_commutative_ = same_bits || always || team.arrival_order;
}

Tree::Fragment Tree::Call::fragment(std::uint64_t round) const {
  const std::size_t offset = static_cast<std::size_t>(round - first) * slot_bytes;
  const std::size_t size = std::min(slot_bytes, bytes - offset);
  return {round, offset, size, static_cast<int>(Rounds::pieces(size, chunk_bytes))};
}

Tree::Call Tree::begin(const Operands& operands, bool by_numa) noexcept {
  // Slots and chunks hold whole elements. An element larger than a slot never gets here: see the descriptors.
  const std::size_t element = operands.reduction->element_bytes;
  Call call{.first = next_, .end = 0, .slot_bytes = 0, .chunk_bytes = 0, .bytes = operands.bytes};
  call.slot_bytes = Rounds::whole_elements(rounds_.shape().slot_bytes, element);
  call.chunk_bytes = std::max(Rounds::whole_elements(chunk_bytes_, element), element);
  next_ += Rounds::pieces(operands.bytes, call.slot_bytes);
  call.end = next_;
  declined_ = false;
  const bool allowed = operands.reduction->commutative ? numa_trees_if_commutative_ : numa_trees_in_rank_order_;
  trees_ = by_numa && allowed ? &by_numa_ : &plain_;
  rounds_.enter(call.first);
  return call;
}

Tree::Control& Tree::control(const Subtask& at) const noexcept {
  const int ranks = rounds_.team().size;
  const auto number = static_cast<std::size_t>(at.chunk * trees_for(ranks) + at.tree);
  return *reinterpret_cast<Control*>(rounds_.extra(at.fragment.round) + Rounds::line_bytes +
                                     number * Control::bytes(ranks));
}

std::byte* Tree::bytes_of(const Subtask& at, int rank) const noexcept {
  return rounds_.data(at.fragment.round, rank, at.fragment.bytes) + at.begin();
}

// In whose slot a member's operand, or a group's result, stands. Of a group: once that is there.
int Tree::rank_of(const Subtask& at, int member) const noexcept {
  if (!trees_->is_of_results(at.tree))
    return trees_->order[static_cast<std::size_t>(trees_->begin_of(at.tree) + member)];
  return static_cast<int>(control({at.fragment, at.call, at.chunk, member}).result.load(std::memory_order_relaxed));
}

Tree::State Tree::state_of(const Subtask& at, int member) const noexcept {
  if (trees_->is_of_results(at.tree)) {
    const Control& group = control({at.fragment, at.call, at.chunk, member});
    // Acquire: partner of the release in combine_ready; the group's result comes with it.
    if (group.finished.load(std::memory_order_acquire) < at.fragment.round) return State::away;
    return group.result.load(std::memory_order_relaxed) == declined_result ? State::declined : State::there;
  }
  const std::uint64_t progress = rounds_.progress_of(at.fragment.round, rank_of(at, member));
  if (progress <= static_cast<std::uint64_t>(at.chunk)) return State::away;
  return progress == Rounds::declined ? State::declined : State::there;
}

int Tree::arrived(const Subtask& at) const noexcept {
  int count = 0;
  for (int member = 0; member < trees_->members(at.tree); ++member)
    count += state_of(at, member) != State::away ? 1 : 0;
  return count;
}

void Tree::deposit(const Operands& operands, const Call& call, const Fragment& fragment) noexcept {
  const int rank = rounds_.team().rank;
  if (operands.declines) return rounds_.publish(fragment.round, rank, Rounds::declined);
  const auto* const from = static_cast<const std::byte*>(operands.send) + fragment.offset;
  std::byte* const data = rounds_.own_data(fragment.round, fragment.bytes);
  for (int c = 0; c < fragment.chunks; ++c) {
    const std::size_t begin = static_cast<std::size_t>(c) * call.chunk_bytes;
    copy_bytes(data + begin, from + begin, std::min(call.chunk_bytes, fragment.bytes - begin));
    rounds_.publish(fragment.round, rank,
                    c + 1 == fragment.chunks ? Rounds::complete : static_cast<std::uint64_t>(c + 1));
  }
}

// Calls of several rounds wait: MPI makes ranks wait for such messages, too.
bool Tree::leaves_by_message(const Operands& operands, const Call& call, wait::Site& site) noexcept {
  if (rounds_.team().messages == nullptr || operands.waits || call.end - call.first != 1 ||
      !rounds_.falls_back(call.first, call.bytes))
    return false;
  rounds_.send_as_message(call.first, operands.root, operands.send, operands.bytes, site);
  return true;
}

// The bank is free, since the root has waited for it, and a rank that falls back does not touch its slot.
void Tree::take_messages(const Fragment& fragment) noexcept {
  const Team& team = rounds_.team();
  if (team.messages == nullptr) return;
  const std::uint64_t times = rounds_.times_fallen_back();
  if (times == 0 || (looked_at_ == fragment.round && times_fallen_back_ == times)) return;
  looked_at_ = fragment.round;
  times_fallen_back_ = times;
  for (int rank = 0; rank < team.size; ++rank) {
    if (rank == team.rank || !rounds_.fell_back(fragment.round, rank) || rounds_.is_complete(fragment.round, rank))
      continue;
    team.messages->receive(rank, rounds_.data(fragment.round, rank, fragment.bytes), fragment.bytes);
    rounds_.publish(fragment.round, rank, Rounds::complete);
  }
}

void Tree::help(const Operands& operands, const Call& call, const Fragment& fragment) noexcept {
  for (int c = 0; c < fragment.chunks; ++c) work(operands, {fragment, call, c, trees_->mine});
}

void Tree::start(const Fragment& fragment) noexcept {
  std::fill_n(seen_.begin(), fragment.chunks, 0);
  std::fill_n(copied_.begin(), fragment.chunks, char{0});
  copied_count_ = 0;
}

bool Tree::look(const Operands& operands, const Call& call, const Fragment& fragment) noexcept {
  const int ranks = rounds_.team().size;
  write_through_ = operands.root >= 0;
  // Ranks begin at different chunks, so that they do not all want the same role.
  const int offset = static_cast<int>(static_cast<std::int64_t>(rounds_.team().rank) * fragment.chunks / ranks);
  for (int i = 0; i < fragment.chunks; ++i) {
    const int c = (i + offset) % fragment.chunks;
    const auto at = static_cast<std::size_t>(c);
    if (copied_[at]) continue;
    const Subtask last{fragment, call, c, trees_->last()};
    const Control& k = control(last);
    // Acquire: partner of the release in combine_ready; the result's bytes come with it.
    if (k.finished.load(std::memory_order_acquire) < fragment.round) {
      // Who completes another group's tree goes on with the results.
      const Subtask mine{fragment, call, c, trees_->mine};
      const int now = arrived(mine);
      if (now == seen_[at]) continue;
      seen_[at] = now;
      work(operands, mine);
      if (copied_[at] || k.finished.load(std::memory_order_acquire) < fragment.round) continue;
    }
    const std::uint32_t result = k.result.load(std::memory_order_relaxed);
    copied_[at] = 1;
    ++copied_count_;
    if (result == declined_result) {
      declined_ = true;
      continue;
    }
    std::memcpy(static_cast<std::byte*>(operands.receive) + fragment.offset + last.begin(),
                bytes_of(last, static_cast<int>(result)), last.bytes());
  }
  return copied_count_ == fragment.chunks;
}

// Combines what is ready of one tree, unless somebody is at it; whoever completes a group's goes on with the
// results.
void Tree::work(const Operands& operands, Subtask at) noexcept {
  for (;;) {
    Control& k = control(at);
    for (;;) {
      if (k.finished.load(std::memory_order_relaxed) >= at.fragment.round || !try_lead(k, at)) return;
      const int combined = combine_ready(operands, at);
      if (combined == trees_->members(at.tree)) break;
      // A read-modify-write: partner of the one in try_lead. Whoever found the role taken before this has
      // raised its flag before, and the look below sees it.
      k.leader_lock.exchange(2 * at.fragment.round, std::memory_order_acq_rel);
      if (arrived(at) == combined) return;
    }
    k.leader_lock.store(2 * at.fragment.round, std::memory_order_release);
    if (at.tree == trees_->last()) return;
    at.tree = trees_->last();
  }
}

bool Tree::try_lead(Control& k, const Subtask& at) const noexcept {
  const std::uint64_t round = at.fragment.round;
  // A read-modify-write even when the role is taken: it orders this rank's flag, or its group's, before it;
  // see work().
  std::uint64_t seen = k.leader_lock.fetch_add(0, std::memory_order_acq_rel);
  while (seen <= 2 * round) {
    if (!k.leader_lock.compare_exchange_weak(seen, 2 * round + 1, std::memory_order_acq_rel)) continue;
    // Finished and given back since the caller looked: the chunk must not be counted twice.
    if (k.finished.load(std::memory_order_relaxed) >= round) {
      k.leader_lock.store(2 * round, std::memory_order_release);
      return false;
    }
    if (seen < 2 * round) {
      std::memset(k.levels, 0, static_cast<std::size_t>(trees_->members(at.tree)));
      k.result.store(no_result, std::memory_order_relaxed);
    }
    return true;
  }
  return false;
}

// Leader only: combines every subtree that has become ready. Returns how many members it has seen.
int Tree::combine_ready(const Operands& operands, const Subtask& at) noexcept {
  Control& k = control(at);
  const Reduction& reduction = *operands.reduction;
  const bool by_arrival = rounds_.team().arrival_order && reduction.commutative;
  const int members = trees_->members(at.tree);
  int combined = 0;
  for (int member = 0; member < members; ++member) {
    if (k.levels[member] != 0) {
      ++combined;
      continue;
    }
    const State state = state_of(at, member);
    if (state == State::away) continue;
    k.levels[member] = 1;
    ++combined;
    if (state == State::declined) k.result.store(declined_result, std::memory_order_relaxed);
    const std::uint32_t sum = k.result.load(std::memory_order_relaxed);
    if (sum == declined_result) continue;
    if (!by_arrival) {
      climb(operands, at, member);
    } else if (sum == no_result) {
      k.result.store(static_cast<std::uint32_t>(rank_of(at, member)), std::memory_order_relaxed);
    } else {
      std::byte* const total = bytes_of(at, static_cast<int>(sum));
      reduction.combine(reduction, total, bytes_of(at, rank_of(at, member)), total,
                        at.bytes() / reduction.element_bytes);
    }
  }
  if (combined < members) return combined;
  if (k.result.load(std::memory_order_relaxed) == no_result)
    k.result.store(static_cast<std::uint32_t>(rank_of(at, 0)), std::memory_order_relaxed);
  k.finished.store(at.fragment.round, std::memory_order_release);
  if (at.tree != trees_->last()) return combined;
  // Whoever finishes the round's last chunk wakes those who sleep. The count lies in the extra's first line.
  const std::uint64_t round = at.fragment.round;
  auto& finished = *reinterpret_cast<std::atomic<std::uint64_t>*>(rounds_.extra(round));
  std::uint64_t count = finished.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    next = count >> 16 == round ? count + 1 : round << 16 | 1;
    // Acquire and release: the last one vouches for the others' chunks.
  } while (!finished.compare_exchange_weak(count, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  if ((next & 0xffff) == static_cast<std::uint64_t>(at.fragment.chunks)) rounds_.ring(round);
  return combined;
}

// Combines the subtree that ends at `member` with its sibling as long as the sibling is complete.
void Tree::climb(const Operands& operands, const Subtask& at, int member) noexcept {
  Control& k = control(at);
  const Reduction& reduction = *operands.reduction;
  const std::size_t count = at.bytes() / reduction.element_bytes;
  const int members = trees_->members(at.tree);
  const int root_height = patterns::tree_height(members);
  int first = member;
  for (int height = 0; height < root_height; ++height) {
    const int sibling = patterns::tree_sibling(first, height);
    const bool is_left = patterns::tree_is_left(first, height);
    if (is_left && sibling >= members) {
      k.levels[first] = static_cast<std::uint8_t>(height + 2);
      continue;
    }
    if (k.levels[sibling] != height + 1) return;
    const int left = is_left ? first : sibling;
    const int right = is_left ? sibling : first;
    std::byte* const in = bytes_of(at, rank_of(at, left));
    std::byte* out = in;
    if (write_through_ && at.tree == trees_->last() && height + 1 == root_height && operands.receive != nullptr) {
      // The root of a reduce makes the last combine itself: straight into its buffer.
      out = static_cast<std::byte*>(operands.receive) + at.fragment.offset + at.begin();
      copied_[static_cast<std::size_t>(at.chunk)] = 1;
      ++copied_count_;
    }
    reduction.combine(reduction, in, bytes_of(at, rank_of(at, right)), out, count);
    k.levels[left] = static_cast<std::uint8_t>(height + 2);
    first = left;
  }
}

}  // namespace papaya
