#include "profiler/record/node_arrivals.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "profiler/record/waits.hpp"

namespace papaya {

namespace {

struct Seen {
  std::uint64_t ticks, what, root;
};

std::uint64_t word(const std::uint64_t& field) noexcept {
  return __atomic_load_n(&field, __ATOMIC_RELAXED);
}

// Looks for the communicator's set on the board of a rank; false while there is none.
bool find_set(NodeArrivals::Group::Member& member, std::uint64_t communicator) noexcept {
  for (std::uint64_t tried = 0; word(member.board->communicators[member.set]) != communicator; ++tried) {
    if (tried == trace::arrival_sets) return false;
    member.set = (member.set + 1) % trace::arrival_sets;
  }
  return true;
}

// What a rank has published of the call with that key; nothing if it has not, or something else since.
std::optional<Seen> read(const NodeArrivals::Group::Member& member, std::uint64_t call, std::uint64_t key) noexcept {
  const trace::NodeArrival& slot = member.board->slots[member.set][call % trace::arrival_slots];
  const Seen seen{word(slot.ticks), word(slot.what), word(slot.root)};
  if ((word(slot.check) ^ seen.ticks ^ seen.what ^ seen.root) != key) return std::nullopt;
  return seen;
}

std::uint64_t bits(std::uint64_t mask) noexcept {
  return static_cast<std::uint64_t>(std::popcount(mask));
}

constexpr std::uint64_t any_communicator = 0;
constexpr std::size_t most_probes = 32;

}  // namespace

static_assert(trace::arrival_sets == 64, "as many as `taken_` has bits");

void NodeArrivals::open(trace::NodeBoard& board, std::span<trace::NodeCalls> table, std::uint64_t& given_up,
                        std::uint64_t tie_ticks, bool concurrent) noexcept {
  board_ = &board;
  table_ = table;
  given_up_ = &given_up;
  tie_ticks_ = tie_ticks;
  concurrent_ = concurrent;
}

void NodeArrivals::give_up(std::uint64_t calls) noexcept {
  if (calls != 0) std::atomic_ref(*given_up_).fetch_add(calls, std::memory_order_relaxed);
}

// The first set that nobody has. Who still reads its last owner's calls notices by the slots' checks.
void NodeArrivals::claim_set(Group& group) noexcept {
  const std::lock_guard lock(mutex_);
  if (taken_ == ~std::uint64_t{0}) return;
  group.set = std::countr_one(taken_);
  taken_ |= std::uint64_t{1} << group.set;
  std::atomic_ref(board_->communicators[group.set]).store(group.communicator, std::memory_order_relaxed);
}

void NodeArrivals::take_back(Group& group, std::uint64_t call) noexcept {
  if (group.set < 0 || board_ == nullptr) return;
  group.published &= ~(std::uint64_t{1} << call % block);
  std::atomic_ref(slot_of(group, call).check).store(0, std::memory_order_relaxed);
}

void NodeArrivals::look(Group& group, std::uint64_t call, bool is_mine) noexcept try {
  if (is_mine && group.published != 0) group.open.push_back({call - call % block, group.published});
  compare_open(group);
  std::erase_if(group.open, [&](const Group::Block& one) {
    const bool is_late = call - one.first >= patience;
    if (is_late) give_up(bits(one.unseen));
    return is_late || one.unseen == 0;
  });
} catch (...) {  // out of memory
  give_up(bits(group.published));
}

void NodeArrivals::end(Group& group, std::uint64_t calls) noexcept {
  if (board_ == nullptr || group.members.size() < 2) return;
  const bool is_mine = calls % block != 0 && (group.communicator + calls / block) % group.members.size() == group.mine;
  try {
    if (is_mine && group.published != 0) group.open.push_back({calls - calls % block, group.published});
  } catch (...) {
    give_up(bits(group.published));
  }
  compare_open(group);
  for (const Group::Block& one : group.open) give_up(bits(one.unseen));
  group.open.clear();
  group.published = 0;
  if (group.set < 0) return;
  // The directory keeps it until another takes it: the others may not have come to their end.
  const std::lock_guard lock(mutex_);
  taken_ &= ~(std::uint64_t{1} << group.set);
  group.set = -1;
}

void NodeArrivals::compare_open(Group& group) noexcept {
  if (group.open.empty()) return;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (concurrent_) lock.lock();
  // All that is to be read at once: each line comes from another core.
  for (Group::Member& member : group.members) {
    if (!find_set(member, group.communicator)) return;
    for (const Group::Block& one : group.open) {
      const auto* const first =
          reinterpret_cast<const std::byte*>(&member.board->slots[member.set][one.first % trace::arrival_slots]);
      for (std::size_t at = 0; at < block * sizeof(trace::NodeArrival); at += 64) __builtin_prefetch(first + at);
    }
  }
  for (Group::Block& one : group.open)
    for (std::uint64_t rest = one.unseen; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::uint64_t>(std::countr_zero(rest));
      if (compare(group, one.first + i)) one.unseen &= ~(std::uint64_t{1} << i);
    }
}

// False: somebody has not arrived.
bool NodeArrivals::compare(Group& group, std::uint64_t call) noexcept {
  std::vector<Group::Member>& members = group.members;
  const std::size_t size = members.size();
  const std::uint64_t key = trace::arrival_key(group.communicator, call);
  const std::optional<Seen> own = read(members[group.mine], call, key);
  if (!own) {  // a later call has the slot
    give_up(1);
    return true;
  }
  const std::uint64_t kind = own->what >> 32 & 0xff;
  if (kind >= collective_count) return true;
  for (Group::Member& member : members) {
    const std::optional<Seen> seen = read(member, call, key);
    if (!seen) return false;
    if ((seen->what >> 32 & 0xff) != kind) {  // the ranks disagree; the report says so
      give_up(1);
      return true;
    }
    member.ticks = seen->ticks;
    member.call_site = static_cast<std::uint32_t>(seen->what);
    member.caused = 0;
  }
  std::size_t last = 0;
  std::uint64_t second_ticks = 0;
  for (std::size_t i = 1; i < size; ++i) {
    second_ticks = std::max(second_ticks, std::min(members[i].ticks, members[last].ticks));
    if (members[i].ticks > members[last].ticks) last = i;
  }
  report::Roles roles{static_cast<Collective>(kind), size};
  for (std::size_t i = 0; i < size; ++i)
    if (members[i].communicator_rank == static_cast<std::int32_t>(own->root)) roles.root = i;
  std::uint64_t imbalance = 0;
  report::for_each_wait(
      roles, size, [&](std::size_t i) { return members[i].ticks; },
      [&](std::size_t i, std::size_t until) {
        const std::uint64_t wait = members[until].ticks - members[i].ticks;
        members[until].caused += wait;
        imbalance = std::max(imbalance, wait);
      });

  const auto size_class = static_cast<std::uint8_t>(own->what >> 40 & 0xff);
  // One writer; readers take each word as it is.
  const auto add = [](std::uint64_t& sum, std::uint64_t value) {
    __atomic_store_n(&sum, sum + value, __ATOMIC_RELAXED);
  };
  for (std::size_t i = 0; i < size; ++i) {
    const Group::Member& member = members[i];
    if (i != last && member.caused == 0) continue;
    trace::NodeCalls* const row =
        row_of(group.communicator, roles.collective, size_class, member.rank, member.call_site);
    if (row == nullptr) {
      if (i == last) give_up(1);
      continue;
    }
    add(row->caused_ticks, member.caused);
    if (i != last) continue;
    if (imbalance > row->most_ticks) add(row->most_ticks, imbalance - row->most_ticks);
    add(row->calls, 1);
    if (member.ticks - second_ticks > tie_ticks_) add(row->times_last, 1);
    add(row->imbalance_ticks, imbalance);
  }
  return true;
}

trace::NodeCalls* NodeArrivals::row_of(std::uint64_t communicator, Collective collective, std::uint8_t size_class,
                                       std::int32_t rank, std::uint32_t call_site) noexcept {
  // The last part is for what does not get a row of its own.
  const bool is_crowded = rows_ >= table_.size() / 4 * 3;
  const std::uint64_t where = std::uint64_t{call_site} << 32 | static_cast<std::uint32_t>(rank);
  const std::uint64_t hash =
      trace::arrival_key(communicator, where) ^ (index_of(collective) << 8 | size_class) * 0x9e3779b97f4a7c15u;
  for (std::size_t probe = 0; probe < most_probes; ++probe) {
    trace::NodeCalls& row = table_[((hash >> 40) + probe) & (table_.size() - 1)];
    if (row.used == 0) {
      if (is_crowded && communicator != any_communicator) break;
      row.communicator = communicator;
      row.rank = rank;
      row.call_site = call_site;
      row.collective = static_cast<std::uint8_t>(collective);
      row.size_class = size_class;
      // Release: who finds the row finds whose it is.
      __atomic_store_n(&row.used, std::uint8_t{1}, __ATOMIC_RELEASE);
      ++rows_;
      return &row;
    }
    if (row.communicator == communicator && row.rank == rank && row.call_site == call_site &&
        row.collective == static_cast<std::uint8_t>(collective) && row.size_class == size_class)
      return &row;
  }
  return communicator == any_communicator ? nullptr : row_of(any_communicator, collective, size_class, rank, call_site);
}

}  // namespace papaya
