#include "algorithms/chain.hpp"

#include <algorithm>
#include <cstring>

#include "algorithms/transport/messages.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 512 << 10;
constexpr std::size_t chunk_limit = 32 << 10;

// A counter of one round: round * 65536 + count. What it holds of an earlier round counts as nothing.
struct alignas(Rounds::line_bytes) Counter {
  std::atomic<std::uint64_t> value;

  std::uint64_t of(std::uint64_t round) const noexcept {
    // Acquire: partner of the release in set; the chunk's bytes come with it.
    const std::uint64_t now = value.load(std::memory_order_acquire);
    return now >> 16 < round ? 0 : now & 0xffff;
  }
  void set(std::uint64_t round, std::uint64_t count) noexcept {
    value.store(round << 16 | count, std::memory_order_release);
  }
};

constexpr std::uint64_t declined = 0x8000;  // of the first counter: somebody declines

}  // namespace

Rounds::Shape Chain::shape_for(int ranks, std::size_t capacity) {
  const std::size_t slot = Rounds::round_up(std::min(capacity, slot_limit), Rounds::line_bytes);
  const std::size_t bytes = std::min<std::size_t>(capacity * static_cast<std::size_t>(ranks), 16 << 20);
  const std::size_t chunks = slot / chunk_limit + 2;
  return {.ranks = ranks,
          .banks = Rounds::banks_for(bytes / slot, 4, 32),
          .slots = 1,
          .slot_bytes = slot,
          .extra_bytes = (1 + chunks) * sizeof(Counter)};
}

// This rank's position in the chain, from 0.
int Chain::join(std::uint64_t round) noexcept {
  std::atomic<std::uint64_t>& links = reinterpret_cast<Counter*>(rounds_.extra(round))->value;
  std::uint64_t seen = links.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    next = seen >> 16 == round ? seen + 1 : round << 16 | 1;
    // Acquire and release: this link sees whether one before it declines.
  } while (!links.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  return static_cast<int>(next & 0x7fff) - 1;
}

// The root adds for those who fall back what they sent, until all links are there.
template <class WaitFor, class IsWhole, class Add>
void Chain::add_messages(std::uint64_t round, std::size_t bytes, const WaitFor& wait_for, const IsWhole& is_whole,
                         const Add& add) {
  const Team& team = rounds_.team();
  std::vector<bool> is_added(static_cast<std::size_t>(team.size));
  std::vector<std::byte> operand;
  std::uint64_t seen = 0;
  for (;;) {
    wait_for(round, [&] { return is_whole() || rounds_.times_fallen_back() != seen; });
    if (is_whole()) return;
    seen = rounds_.times_fallen_back();
    for (int rank = 0; rank < team.size; ++rank) {
      if (rank == team.rank || is_added[static_cast<std::size_t>(rank)] || !rounds_.fell_back(round, rank)) continue;
      operand.resize(bytes);
      team.messages->receive(rank, operand.data(), bytes);
      add(operand.data());
      is_added[static_cast<std::size_t>(rank)] = true;
    }
  }
}

bool Chain::run(const Operands& operands, wait::Site& site) {
  const Team& team = rounds_.team();
  const Reduction& reduction = *operands.reduction;
  const std::size_t element = reduction.element_bytes;
  const std::size_t slot = Rounds::whole_elements(rounds_.shape().slot_bytes, element);
  const std::size_t chunk = std::max(Rounds::whole_elements(chunk_limit, element), element);
  const std::uint64_t first = next_;
  next_ += Rounds::pieces(operands.bytes, slot);
  rounds_.enter(first);
  bool is_declined = false;

  const bool has_result = operands.receive != nullptr || operands.declines;
  const bool may_fall_back = next_ - first == 1 && !operands.waits && team.messages != nullptr && operands.root >= 0;
  if (may_fall_back && !has_result && rounds_.falls_back(first, operands.bytes)) {
    rounds_.send_as_message(first, operands.root, operands.send, operands.bytes, site);
    if (operands.deposited != nullptr) operands.deposited(operands.context);
    rounds_.return_credit(next_);
    return true;
  }

  const auto wait_for = [&](std::uint64_t round, const auto& ready) {
    if (!ready())
      team.policy->until(
          site, rounds_.bell(), static_cast<std::uint32_t>(round), ready, [] { return false; },
          static_cast<Prepared*>(this));
  };

  std::size_t offset = 0;
  for (std::uint64_t round = first; round < next_ && !is_declined; ++round, offset += slot) {
    const std::size_t bytes = std::min(slot, operands.bytes - offset);
    const auto chunks = static_cast<int>(Rounds::pieces(bytes, chunk));
    rounds_.wait_until_free(round, site, static_cast<Prepared*>(this));
    auto* const links = reinterpret_cast<Counter*>(rounds_.extra(round));
    Counter* const counts = links + 1;
    std::byte* const total = rounds_.data(round, 0, bytes);
    // Adds an operand as the chain's next link.
    const auto add = [&](const std::byte* mine) {
      const int position = join(round);
      if (operands.declines) links->value.fetch_or(declined, std::memory_order_acq_rel);
      for (int c = 0; c < chunks; ++c) {
        const std::size_t begin = static_cast<std::size_t>(c) * chunk;
        const std::size_t size = std::min(chunk, bytes - begin);
        wait_for(round, [&] { return counts[c].of(round) >= static_cast<std::uint64_t>(position); });
        if (operands.declines)
          ;
        else if (position == 0)
          std::memcpy(total + begin, mine + begin, size);
        else
          reduction.combine(reduction, total + begin, mine + begin, total + begin, size / element);
        counts[c].set(round, static_cast<std::uint64_t>(position + 1));
      }
      if (position + 1 == team.size) rounds_.ring(round);
    };
    add(static_cast<const std::byte*>(operands.send) + offset);
    if (round == first && operands.deposited != nullptr) operands.deposited(operands.context);
    if (has_result) {
      const auto all = static_cast<std::uint64_t>(team.size);
      if (may_fall_back)
        add_messages(
            round, bytes, wait_for, [&] { return counts[chunks - 1].of(round) >= all; }, add);
      for (int c = 0; c < chunks; ++c) {
        wait_for(round, [&] { return counts[c].of(round) >= all; });
        is_declined = (links->value.load(std::memory_order_relaxed) & declined) != 0;
        if (is_declined) break;
        const std::size_t begin = static_cast<std::size_t>(c) * chunk;
        std::memcpy(static_cast<std::byte*>(operands.receive) + offset + begin, total + begin,
                    std::min(chunk, bytes - begin));
      }
    }
    rounds_.return_credit(round + 1);
  }
  rounds_.return_credit(next_);
  return !is_declined;
}

}  // namespace papaya
