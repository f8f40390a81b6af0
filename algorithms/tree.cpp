#include "algorithms/tree.hpp"

#include <algorithm>
#include <cstring>

#include "algorithms/patterns.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 512 << 10;
constexpr std::uint32_t no_result = ~std::uint32_t{0};
constexpr std::uint32_t vetoed_result = no_result - 1;

}  // namespace

// The lead of one chunk. `holder` is 2n+1 while some rank leads round n, 2n while nobody does just now, smaller for earlier
// rounds. Taking it acquires, and giving it back releases, the partial results and `levels`. `finished` is n once the
// result of round n stands in slot `result`; released by the leader, acquired by who copies it.
struct alignas(Rounds::line_bytes) Tree::Control {
  std::atomic<std::uint64_t> holder;
  std::atomic<std::uint64_t> finished;
  std::atomic<std::uint32_t> result;  // relaxed: ordered by `finished` and `holder`
  // Levels of the tree combined so far, plus one, of the subtree that begins at each rank; 0 before its chunk was seen. As
  // many as there are ranks, on the lines that follow.
  std::uint8_t levels[Rounds::line_bytes - 20];

  static std::size_t bytes(int ranks) {
    return Rounds::round_up(offsetof(Control, levels) + static_cast<std::size_t>(ranks), Rounds::line_bytes);
  }
};

Rounds::Shape Tree::shape_for(int ranks, std::size_t capacity, std::size_t chunk_bytes) {
  const std::size_t slot = Rounds::round_up(std::min(capacity, slot_limit), Rounds::line_bytes);
  const int banks = Rounds::banks_for(capacity / slot, slot <= 4096 ? 32 : slot <= 65536 ? 4 : 2, 32);
  const std::size_t chunks = (slot + chunk_bytes - 1) / chunk_bytes + 1;  // one more: chunks hold whole elements
  return {.ranks = ranks,
          .banks = banks,
          .slots = ranks,
          .slot_bytes = slot,
          .extra_bytes = Rounds::line_bytes + chunks * Control::bytes(ranks)};
}

Tree::Tree(const Team& team, std::size_t capacity, std::size_t chunk_bytes)
    : rounds_(team, shape_for(team.size, capacity, chunk_bytes)),
      height_(patterns::tree_height(team.size)),
      chunk_bytes_(chunk_bytes) {
  const std::size_t chunks = rounds_.shape().slot_bytes / chunk_bytes + 2;
  seen_.resize(chunks);
  copied_.resize(chunks);
}

Tree::Part Tree::Call::part(std::uint64_t round) const {
  const std::size_t offset = static_cast<std::size_t>(round - first) * slot_bytes;
  const std::size_t size = std::min(slot_bytes, bytes - offset);
  return {round, offset, size, static_cast<int>((size + chunk_bytes - 1) / chunk_bytes)};
}

Tree::Call Tree::begin(const Operands& operands) noexcept {
  // Slots and chunks hold whole elements. An element larger than a slot never gets here: see the descriptors.
  const std::size_t element = operands.reduction->element_bytes;
  Call call{.first = next_, .end = 0, .slot_bytes = 0, .chunk_bytes = 0, .bytes = operands.bytes};
  call.slot_bytes = rounds_.shape().slot_bytes / element * element;
  call.chunk_bytes = std::max(chunk_bytes_ / element, std::size_t{1}) * element;
  next_ += (operands.bytes + call.slot_bytes - 1) / call.slot_bytes;
  call.end = next_;
  vetoed_ = false;
  rounds_.enter(call.first);
  return call;
}

Tree::Control& Tree::control(std::uint64_t round, int chunk) const noexcept {
  return *reinterpret_cast<Control*>(rounds_.extra(round) + Rounds::line_bytes +
                                     static_cast<std::size_t>(chunk) * Control::bytes(rounds_.team().size));
}

std::byte* Tree::chunk(const Part& part, const Call& call, int rank, int chunk) const noexcept {
  return rounds_.place(part.round, rank, part.bytes) + static_cast<std::size_t>(chunk) * call.chunk_bytes;
}

bool Tree::is_there(std::uint64_t round, int rank, int chunk) const noexcept {
  return rounds_.progress_of(round, rank) > static_cast<std::uint64_t>(chunk);
}

int Tree::arrived(std::uint64_t round, int chunk) const noexcept {
  int count = 0;
  for (int rank = 0; rank < rounds_.team().size; ++rank) count += is_there(round, rank, chunk) ? 1 : 0;
  return count;
}

void Tree::deposit(const Operands& operands, const Call& call, const Part& part) noexcept {
  const int rank = rounds_.team().rank;
  if (operands.veto) return rounds_.publish(part.round, rank, Rounds::vetoed);
  const auto* const from = static_cast<const std::byte*>(operands.send) + part.offset;
  std::byte* const place = rounds_.place(part.round, rank, part.bytes);
  for (int c = 0; c < part.chunks; ++c) {
    const std::size_t begin = static_cast<std::size_t>(c) * call.chunk_bytes;
    std::memcpy(place + begin, from + begin, std::min(call.chunk_bytes, part.bytes - begin));
    rounds_.publish(part.round, rank, c + 1 == part.chunks ? Rounds::complete : static_cast<std::uint64_t>(c + 1));
  }
}

void Tree::help(const Operands& operands, const Call& call, const Part& part) noexcept {
  for (int c = 0; c < part.chunks; ++c) work(operands, call, part, c);
}

void Tree::start(const Part& part) noexcept {
  std::fill_n(seen_.begin(), part.chunks, 0);
  std::fill_n(copied_.begin(), part.chunks, char{0});
  copied_count_ = 0;
}

bool Tree::look(const Operands& operands, const Call& call, const Part& part) noexcept {
  const int ranks = rounds_.team().size;
  write_through_ = operands.root >= 0;
  // Ranks begin at different chunks, so that they do not all want the same lead.
  const int offset = static_cast<int>(static_cast<std::int64_t>(rounds_.team().rank) * part.chunks / ranks);
  for (int i = 0; i < part.chunks; ++i) {
    const int c = (i + offset) % part.chunks;
    const auto at = static_cast<std::size_t>(c);
    if (copied_[at]) continue;
    Control& k = control(part.round, c);
    // Acquire: partner of the release in combine_ready; the result's bytes come with it.
    if (k.finished.load(std::memory_order_acquire) < part.round) {
      const int now = arrived(part.round, c);
      if (now == seen_[at]) continue;
      seen_[at] = now;
      work(operands, call, part, c);
      if (copied_[at] || k.finished.load(std::memory_order_acquire) < part.round) continue;
    }
    const std::uint32_t result = k.result.load(std::memory_order_relaxed);
    copied_[at] = 1;
    ++copied_count_;
    if (result == vetoed_result) {
      vetoed_ = true;
      continue;
    }
    const std::size_t begin = static_cast<std::size_t>(c) * call.chunk_bytes;
    std::memcpy(static_cast<std::byte*>(operands.receive) + part.offset + begin, chunk(part, call, static_cast<int>(result), c),
                std::min(call.chunk_bytes, part.bytes - begin));
  }
  return copied_count_ == part.chunks;
}

// Combines what is ready of one chunk, unless somebody is at it.
void Tree::work(const Operands& operands, const Call& call, const Part& part, int c) noexcept {
  Control& k = control(part.round, c);
  while (k.finished.load(std::memory_order_relaxed) < part.round) {
    if (!try_lead(k, part.round)) return;
    const int combined = combine_ready(operands, call, part, c);
    if (combined == rounds_.team().size) {
      k.holder.store(2 * part.round, std::memory_order_release);
      return;
    }
    // A read-modify-write: partner of the one in try_lead. Whoever found the lead taken before this has raised its flag
    // before, and the look below sees it.
    k.holder.exchange(2 * part.round, std::memory_order_acq_rel);
    if (arrived(part.round, c) == combined) return;
  }
}

bool Tree::try_lead(Control& k, std::uint64_t round) const noexcept {
  // A read-modify-write even when the lead is taken: it orders this rank's flag before it; see work().
  std::uint64_t seen = k.holder.fetch_add(0, std::memory_order_acq_rel);
  while (seen <= 2 * round) {
    if (!k.holder.compare_exchange_weak(seen, 2 * round + 1, std::memory_order_acq_rel)) continue;
    if (seen < 2 * round) {
      std::memset(k.levels, 0, static_cast<std::size_t>(rounds_.team().size));
      k.result.store(no_result, std::memory_order_relaxed);
    }
    return true;
  }
  return false;
}

// Leader only: combines every subtree of the chunk that has become ready. Returns how many ranks it has seen.
int Tree::combine_ready(const Operands& operands, const Call& call, const Part& part, int c) noexcept {
  const Team& team = rounds_.team();
  Control& k = control(part.round, c);
  const Reduction& reduction = *operands.reduction;
  const bool by_arrival = team.arrival_order && reduction.commutative;
  const std::size_t bytes = std::min(call.chunk_bytes, part.bytes - static_cast<std::size_t>(c) * call.chunk_bytes);
  int combined = 0;
  for (int rank = 0; rank < team.size; ++rank) {
    if (k.levels[rank] != 0) {
      ++combined;
      continue;
    }
    const std::uint64_t progress = rounds_.progress_of(part.round, rank);
    if (progress <= static_cast<std::uint64_t>(c)) continue;
    k.levels[rank] = 1;
    ++combined;
    if (progress == Rounds::vetoed) k.result.store(vetoed_result, std::memory_order_relaxed);
    const std::uint32_t sum = k.result.load(std::memory_order_relaxed);
    if (sum == vetoed_result) continue;
    if (!by_arrival) {
      climb(operands, call, part, c, rank);
    } else if (sum == no_result) {
      k.result.store(static_cast<std::uint32_t>(rank), std::memory_order_relaxed);
    } else {
      std::byte* const total = chunk(part, call, static_cast<int>(sum), c);
      reduction.combine(reduction, total, chunk(part, call, rank, c), total, bytes / reduction.element_bytes);
    }
  }
  if (combined < team.size) return combined;
  if (k.result.load(std::memory_order_relaxed) == no_result) k.result.store(0, std::memory_order_relaxed);
  k.finished.store(part.round, std::memory_order_release);
  // Whoever finishes the round's last chunk wakes those who sleep. The count lies in the extra's first line.
  auto& finished = *reinterpret_cast<std::atomic<std::uint64_t>*>(rounds_.extra(part.round));
  std::uint64_t count = finished.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    next = count >> 16 == part.round ? count + 1 : part.round << 16 | 1;
    // Acquire and release: the last one vouches for the others' chunks.
  } while (!finished.compare_exchange_weak(count, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  if ((next & 0xffff) == static_cast<std::uint64_t>(part.chunks)) rounds_.ring(part.round);
  return combined;
}

// Combines the subtree that ends at `rank` with its sibling as long as the sibling is complete.
void Tree::climb(const Operands& operands, const Call& call, const Part& part, int c, int rank) noexcept {
  Control& k = control(part.round, c);
  const Reduction& reduction = *operands.reduction;
  const std::size_t begin = static_cast<std::size_t>(c) * call.chunk_bytes;
  const std::size_t count = std::min(call.chunk_bytes, part.bytes - begin) / reduction.element_bytes;
  int first = rank;
  for (int height = 0; height < height_; ++height) {
    const int sibling = patterns::tree_sibling(first, height);
    const bool is_left = patterns::tree_is_left(first, height);
    if (is_left && sibling >= rounds_.team().size) {
      k.levels[first] = static_cast<std::uint8_t>(height + 2);
      continue;
    }
    if (k.levels[sibling] != height + 1) return;
    const int left = is_left ? first : sibling;
    const int right = is_left ? sibling : first;
    std::byte* const in = chunk(part, call, left, c);
    std::byte* out = in;
    if (write_through_ && height + 1 == height_ && operands.receive != nullptr) {
      // The root of a reduce makes the last combine itself: straight into its buffer.
      out = static_cast<std::byte*>(operands.receive) + part.offset + begin;
      copied_[static_cast<std::size_t>(c)] = 1;
      ++copied_count_;
    }
    reduction.combine(reduction, in, chunk(part, call, right, c), out, count);
    k.levels[left] = static_cast<std::uint8_t>(height + 2);
    first = left;
  }
}

}  // namespace papaya
