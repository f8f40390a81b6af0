// MPI_Allreduce by the first to arrive. Mohammadalizadehbakhtevari 2021, Algorithm 4.1.
//
// Every rank deposits its operand in its own slot and raises its flag. The first to arrive leads: it reduces
// what is ready while the others are still away, so that after the last arrival only that rank's path to the
// tree's root is left; it publishes the result and all copy it. Cost after the last arrival: log2(p) combines
// of S bytes, two cache-line transfers and a read of S bytes.
//
// Three things differ from the thesis.
//   - The leader is a role, not a rank: partial results live in the shared slots, and a leader that is about to
//     give its core away gives the role back. With more ranks than cores the last to arrive then finishes the call
//     itself and wakes all others at once: no context switch lies between the last arrival and the result.
//   - Where p*S is small, the leader's second transfer costs more than the reduction: every rank reduces all
//   deposits
//     itself over the same tree (`self_serve_bytes`), which gives the same bits, and nobody waits for a
//     result. For messages up to 48 bytes the deposit travels in the flag's own cache line, up to 112 bytes
//     in that and the next.
//   - Flags are sequence numbers that are never reset. Their lowest bit says that the rank declines:
//     everybody who sees it leaves the call to MPI.
//
// Order: by default the fixed tree of patterns/tree.hpp in rank order, whose ready subtrees are combined as
// ranks arrive. Under PAPAYA_ORDER=arrival a leader reduces commutative operations in the order of arrival,
// as in the thesis.
//
// Operands that do not travel with the flag lie in slots of the team's region or, where Team::deposits is there and
// they are longer than those, in memory that each rank borrows for the call; then its cell says where.
//
// Two banks of slots alternate. A rank enters call n+2 only after call n+1 has completed, for which every
// rank must have entered n+1, and so have left call n: the bank is free again. Of the cells there are four
// rows, so that in call n nobody looks at the row of call n+1 any more. The numbers are 64 bits wide and do
// not wrap.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>

#include "algorithms/algorithm.hpp"
#include "algorithms/patterns/tree.hpp"
#include "algorithms/transport/deposit_arena.hpp"
#include "base/copy.hpp"
#include "base/prefetch.hpp"

namespace papaya {

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t cell_bytes = 128;    // two lines: the adjacent-line prefetcher fetches them in pairs
constexpr std::size_t inline_offset = 16;  // the strictest alignment of an operand: long double's
constexpr std::size_t inline_bytes = cell_bytes - inline_offset;
constexpr int max_levels = 32;
constexpr int cell_rows = 4;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// A rank's flag and, if it fits, its operand. Writer: that rank. `arrived` is released after the operand's
// bytes, here or in the slot; readers acquire it.
struct alignas(cell_bytes) Cell {
  std::atomic<std::uint64_t> arrived;  // twice the number of the call, from 1, plus one if this rank declines
  std::uint64_t where;                 // of a borrowed slot in the node's window; ordered by `arrived`
  alignas(inline_offset) std::byte data[inline_bytes];
};
static_assert(sizeof(Cell) == cell_bytes);

// The leader role of one bank. `leader_lock` is 2n+1 while some rank leads call n, 2n while call n has no leader just
// now, smaller for earlier calls. Taking it acquires, and giving it back releases, the partial results and
// `level`. `finished` is n once the result of call n stands in slot `result`; released by the leader,
// acquired by the others.
struct alignas(cell_bytes) LeaderRole {
  std::atomic<std::uint64_t> leader_lock;
  std::atomic<std::uint32_t> result;  // relaxed: ordered by `finished`
  alignas(line_bytes) std::atomic<std::uint64_t> finished;
};

// A rank's line, where slots are borrowed. `released`: the call from which on this rank needs slots, those of earlier
// ones no more. Stored with release; acquired by who borrowed one.
struct alignas(cell_bytes) Reader {
  std::atomic<std::uint64_t> released;
};

struct Layout {
  int ranks;
  std::size_t slot_bytes;  // in the region
  bool borrows;            // what is longer

  std::size_t cells(int row) const { return cell_bytes * 4 + static_cast<std::size_t>(row * ranks) * cell_bytes; }
  std::size_t levels(int bank) const {
    return cells(cell_rows) + static_cast<std::size_t>(bank) * round_up(static_cast<std::size_t>(ranks), line_bytes);
  }
  std::size_t readers() const { return round_up(levels(2), cell_bytes); }
  std::size_t slots(int bank) const {
    const std::size_t first =
        borrows ? readers() + static_cast<std::size_t>(ranks) * sizeof(Reader) : round_up(levels(2), 4096);
    return first + static_cast<std::size_t>(bank * ranks) * slot_bytes;
  }
  std::size_t total() const { return slots(2); }
};

std::size_t region_bytes(int ranks, std::size_t capacity, std::span<const std::int64_t>) {
  return Layout{ranks, round_up(capacity, line_bytes), false}.total();
}

Layout borrowing_layout(int ranks, std::size_t own_bytes) {
  return {ranks, own_bytes / 2 / line_bytes * line_bytes, true};
}

class ArrivalLeader final : public Prepared {
 public:
  ArrivalLeader(const Team& team, std::size_t capacity, std::int64_t self_serve_bytes)
      : team_(team),
        layout_(team.deposits != nullptr ? borrowing_layout(team.size, team.own_bytes)
                                         : Layout{team.size, round_up(capacity, line_bytes), false}),
        window_(layout_.borrows ? team.deposits->window() : nullptr),
        loan_(team.deposits, {team.region + layout_.readers(), sizeof(Reader), team.size}, 2),
        height_(patterns::tree_height(team.size)),
        self_serve_bytes_(static_cast<std::size_t>(self_serve_bytes)),
        scratch_stride_(round_up(capacity, line_bytes)) {}

  bool run(const Operands& operands, wait::Site& site) override {
    const bool in_line = operands.bytes <= inline_bytes;
    is_borrowed_ = operands.bytes > layout_.slot_bytes;
    if (in_line || !is_borrowed_) return reduce(operands, in_line, site);
    bool done = false;
    if (operands.declines || loan_.borrow(operands.bytes, *team_.policy, site)) {
      done = reduce(operands, in_line, site);
    } else {
      Operands left_out = operands;
      left_out.declines = true;
      done = reduce(left_out, in_line, site);
    }
    reinterpret_cast<Reader*>(team_.region + layout_.readers())[team_.rank].released.store(calls_ + 1,
                                                                                           std::memory_order_release);
    loan_.give_back(calls_ + 1);
    return done;
  }

  bool is_missing(int rank) const override { return !has_arrived(calls_, rank); }

 private:
  bool reduce(const Operands& operands, bool in_line, wait::Site& site) {
    const std::uint64_t call = ++calls_;
    deposit(operands, call, in_line);
    if (operands.reduction->by_table && operands.bytes * static_cast<std::size_t>(team_.size) <= self_serve_bytes_)
      return serve_oneself(operands, call, in_line, site);
    return follow_or_lead(operands, call, in_line, site);
  }

  static int bank_of(std::uint64_t call) { return static_cast<int>(call % 2); }
  Cell& cell(std::uint64_t call, int rank) const {
    return *reinterpret_cast<Cell*>(team_.region + layout_.cells(static_cast<int>(call % cell_rows)) +
                                    static_cast<std::size_t>(rank) * cell_bytes);
  }
  LeaderRole& role_of(std::uint64_t call) const {
    return *reinterpret_cast<LeaderRole*>(team_.region + static_cast<std::size_t>(1 + bank_of(call)) * cell_bytes);
  }
  wait::Doorbell& bell() const { return *reinterpret_cast<wait::Doorbell*>(team_.region); }
  // Levels of the tree combined so far, plus one, of the subtree that begins at each rank; 0 before its
  // deposit was seen. Only the leader touches them.
  std::uint8_t* levels(std::uint64_t call) const {
    return reinterpret_cast<std::uint8_t*>(team_.region + layout_.levels(bank_of(call)));
  }
  std::byte* slot(std::uint64_t call, int rank) const {
    if (is_borrowed_) return window_ + cell(call, rank).where;
    return team_.region + layout_.slots(bank_of(call)) + static_cast<std::size_t>(rank) * layout_.slot_bytes;
  }
  std::byte* operand(std::uint64_t call, int rank, bool in_line) const {
    return in_line ? cell(call, rank).data : slot(call, rank);
  }
  bool has_arrived(std::uint64_t call, int rank) const {
    // Acquire: partner of the release in deposit; the operand's bytes come with it.
    return cell(call, rank).arrived.load(std::memory_order_acquire) >= 2 * call;
  }
  // Of a rank that has arrived. Relaxed: the look that found it there acquired it.
  bool has_declined(std::uint64_t call, int rank) const {
    return cell(call, rank).arrived.load(std::memory_order_relaxed) & 1;
  }

  void deposit(const Operands& operands, std::uint64_t call, bool in_line) const {
    // A rank that declines has nothing that the others could use.
    std::byte* to = nullptr;
    if (!in_line && is_borrowed_) {
      if (!operands.declines) cell(call, team_.rank).where = loan_.where(call);
      to = window_ + loan_.where(call);
    } else {
      to = operand(call, team_.rank, in_line);
    }
    if (!operands.declines) copy_bytes(to, operands.send, operands.bytes);
    cell(call, team_.rank).arrived.store(2 * call + (operands.declines ? 1 : 0), std::memory_order_release);
    // Nobody looks at the next cell any more. Fetched for writing while this rank waits, it is there when it is needed.
    prefetch_for_write(&cell(call + 1, team_.rank));
    if (in_line && operands.bytes > line_bytes - inline_offset)
      prefetch_for_write(&cell(call + 1, team_.rank).data[line_bytes - inline_offset]);
    if (operands.deposited != nullptr) operands.deposited(operands.context);
  }

  // Every rank reduces all deposits itself, in rank order as far as they have come.
  bool serve_oneself(const Operands& operands, std::uint64_t call, bool in_line, wait::Site& site) {
    const Reduction& reduction = *operands.reduction;
    auto* const receive = static_cast<std::byte*>(operands.receive);
    const std::byte* stack[max_levels];  // finished subtrees, the largest first, as the digits of a binary counter
    int depth = 0;
    bool declined = false;
    for (int next = 0; next < team_.size; ++next) {
      // Acquire: as in has_arrived; the address is worked out once, not with every look.
      const std::atomic<std::uint64_t>& arrived = cell(call, next).arrived;
      const auto is_there = [&arrived, number = 2 * call] { return arrived.load(std::memory_order_acquire) >= number; };
      if (!is_there())
        team_.policy->until(
            site, bell(), static_cast<std::uint32_t>(call), is_there, [] { return false; },
            static_cast<Prepared*>(this));
      declined = declined || has_declined(call, next);
      if (declined) continue;
      // This rank's own operand is nearer in its own buffer (in place as well: that is written by the last
      // combine).
      stack[depth++] = next == team_.rank ? static_cast<const std::byte*>(operands.send) : operand(call, next, in_line);
      // One subtree is complete for every trailing one of `next`; after the last rank all that is left is
      // combined.
      const bool last = next == team_.size - 1;
      for (int merges = last ? depth - 1 : std::countr_one(static_cast<unsigned>(next)); merges > 0; --merges) {
        --depth;
        std::byte* const out = last && depth == 1 ? receive : scratch(depth - 1);
        reduction.combine(reduction, stack[depth - 1], stack[depth], out, operands.count);
        stack[depth - 1] = out;
      }
    }
    // All have arrived, as this rank has seen: whoever sleeps may go on.
    team_.policy->ring(bell(), static_cast<std::uint32_t>(call));
    return !declined;
  }

  bool follow_or_lead(const Operands& operands, std::uint64_t call, bool in_line, wait::Site& site) {
    LeaderRole& role = role_of(call);
    bool leading = try_lead(role, call);
    if (leading) reduce_ready(operands, call, in_line);
    team_.policy->until(
        site, bell(), static_cast<std::uint32_t>(call),
        [&] {
          // Acquire: partner of the release in reduce_ready; the result's bytes come with it.
          if (role.finished.load(std::memory_order_acquire) >= call) return true;
          return leading && reduce_ready(operands, call, in_line);
        },
        [&] { return give_up_role(operands, role, call, in_line, leading); }, static_cast<Prepared*>(this));
    if (leading) role.leader_lock.store(2 * call, std::memory_order_release);
    team_.policy->ring(bell(), static_cast<std::uint32_t>(call));
    const std::uint32_t result = role.result.load(std::memory_order_relaxed);
    if (result == declined_result) return false;
    std::memcpy(operands.receive, operand(call, static_cast<int>(result), in_line), operands.bytes);
    return true;
  }

  // Takes the leader role of `call` if nobody has it. The first to take it starts the bookkeeping.
  bool try_lead(LeaderRole& role, std::uint64_t call) const {
    // A read-modify-write even when the role is taken: it orders this rank's flag before it, so that a leader
    // that gives up the role and then looks at the flags once more cannot miss this arrival while this rank
    // misses that.
    std::uint64_t seen = role.leader_lock.fetch_add(0, std::memory_order_acq_rel);
    while (seen != 2 * call + 1) {
      // Acquire: partner of the release that gave the role back; the partial results come with it.
      if (!role.leader_lock.compare_exchange_weak(seen, 2 * call + 1, std::memory_order_acq_rel)) continue;
      if (seen < 2 * call) {
        std::memset(levels(call), 0, static_cast<std::size_t>(team_.size));
        role.result.store(no_result, std::memory_order_relaxed);
      }
      return true;
    }
    return false;
  }

  // Leader only: combines every subtree that has become ready. True when the result is published.
  bool reduce_ready(const Operands& operands, std::uint64_t call, bool in_line) {
    LeaderRole& role = role_of(call);
    if (role.finished.load(std::memory_order_relaxed) >= call) return true;
    std::uint8_t* const level = levels(call);
    const bool by_arrival = team_.arrival_order && operands.reduction->commutative;
    int combined = 0;
    for (int rank = 0; rank < team_.size; ++rank) {
      if (level[rank] != 0) {
        ++combined;
        continue;
      }
      if (!has_arrived(call, rank)) continue;
      level[rank] = 1;
      ++combined;
      if (has_declined(call, rank)) role.result.store(declined_result, std::memory_order_relaxed);
      if (role.result.load(std::memory_order_relaxed) == declined_result) continue;
      if (by_arrival)
        add_in_order_of_arrival(operands, role, call, rank, in_line);
      else
        climb(operands, level, call, rank, in_line);
    }
    counted_call_ = call;
    counted_ = combined;
    if (combined < team_.size) return false;
    if (role.result.load(std::memory_order_relaxed) == no_result) role.result.store(0, std::memory_order_relaxed);
    role.finished.store(call, std::memory_order_release);
    return true;
  }

  void add_in_order_of_arrival(const Operands& operands, LeaderRole& role, std::uint64_t call, int rank,
                               bool in_line) const {
    const std::uint32_t sum = role.result.load(std::memory_order_relaxed);
    if (sum == no_result) {
      role.result.store(static_cast<std::uint32_t>(rank), std::memory_order_relaxed);
      return;
    }
    std::byte* const total = operand(call, static_cast<int>(sum), in_line);
    operands.reduction->combine(*operands.reduction, total, operand(call, rank, in_line), total, operands.count);
  }

  // Combines the subtree that ends at `rank` with its sibling as long as the sibling is complete; the result
  // stands in the slot of the subtree's first rank.
  void climb(const Operands& operands, std::uint8_t* level, std::uint64_t call, int rank, bool in_line) const {
    int first = rank;
    for (int height = 0; height < height_; ++height) {
      const int sibling = patterns::tree_sibling(first, height);
      const bool is_left = patterns::tree_is_left(first, height);
      if (is_left && sibling >= team_.size) {
        level[first] = static_cast<std::uint8_t>(height + 2);
        continue;
      }
      if (level[sibling] != height + 1) return;
      const int left = is_left ? first : sibling;
      const int right = is_left ? sibling : first;
      std::byte* const out = operand(call, left, in_line);
      operands.reduction->combine(*operands.reduction, out, operand(call, right, in_line), out, operands.count);
      level[left] = static_cast<std::uint8_t>(height + 2);
      first = left;
    }
  }

  // Before this rank gives its core away. True if there is something to look at again.
  bool give_up_role(const Operands& operands, LeaderRole& role, std::uint64_t call, bool in_line, bool& leading) {
    if (leading) {
      // A read-modify-write: partner of the one in try_lead. Whoever found the role taken before this has
      // raised its flag before, and the look below sees it.
      role.leader_lock.exchange(2 * call, std::memory_order_acq_rel);
      leading = false;
    }
    // Somebody may have arrived between the last look and now, seen a leader and gone to wait.
    if (role.finished.load(std::memory_order_acquire) >= call || !new_arrival(call)) return false;
    leading = try_lead(role, call);
    if (leading) reduce_ready(operands, call, in_line);
    return leading;
  }

  // True if more ranks have arrived than when this rank last looked.
  bool new_arrival(std::uint64_t call) {
    int arrived = 0;
    for (int rank = 0; rank < team_.size; ++rank) arrived += has_arrived(call, rank) ? 1 : 0;
    const bool more = call == counted_call_ && arrived > counted_;
    counted_call_ = call;
    counted_ = arrived;
    return more;
  }

  std::byte* scratch(int level) {
    if (scratch_ == nullptr) scratch_.reset(new (std::align_val_t{line_bytes}) std::byte[scratch_stride_ * max_levels]);
    return scratch_.get() + static_cast<std::size_t>(level) * scratch_stride_;
  }

  struct AlignedDelete {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{line_bytes}); }
  };

  // Of LeaderRole::result, beside ranks. In rank order it stays no_result until the end, and the result is rank
  // 0's.
  static constexpr std::uint32_t no_result = ~std::uint32_t{0};
  static constexpr std::uint32_t declined_result = no_result - 1;

  const Team team_;
  const Layout layout_;
  std::byte* const window_;  // the node's, where slots are borrowed
  Loan loan_;
  bool is_borrowed_ = false;  // in the present call
  const int height_;
  const std::size_t self_serve_bytes_;
  const std::size_t scratch_stride_;
  std::unique_ptr<std::byte[], AlignedDelete> scratch_;  // touched as far as used
  std::uint64_t calls_ = team_.first_round - 1;
  std::uint64_t counted_call_ = 0;
  int counted_ = 0;
};

constexpr std::size_t largest_message_bytes = 65536;

constexpr Parameter parameters[] = {
    {"self_serve_bytes", 16384, 0, 1 << 20,
     "where ranks * message bytes is at most this, every rank reduces all deposits itself"},
};

std::unique_ptr<Prepared> prepare(const Team& team, std::size_t capacity, std::span<const std::int64_t> values) {
  static_assert(2 * largest_message_bytes <= DepositArena::least_largest_bytes);
  return std::make_unique<ArrivalLeader>(team, std::min(capacity, largest_message_bytes), values[0]);
}

constexpr Descriptor descriptor = {
    .collective = Collective::allreduce,
    .name = "arrival_leader",
    .summary = "the first to arrive reduces what is ready; after the last arrival log2(p) combines, 2 transfers",
    .source = "Mohammadalizadehbakhtevari 2021, Algorithm 4.1",
    .one_node = true,
    .max_bytes = largest_message_bytes,
    .parameters = parameters,
    .automatic = {.most_ranks = 128},
    .region_bytes = region_bytes,
    .control_bytes = [](int ranks, std::size_t,
                        std::size_t own_bytes) { return borrowing_layout(ranks, own_bytes).total(); },
    .prepare = prepare,
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
