#include "profiler/node_arrivals.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "profiler/waits.hpp"

namespace papaya {

namespace {

struct Seen {
  std::uint64_t ticks, what, root;
};

// What a rank has published of a call; nothing if it has not, or something else since.
std::optional<Seen> read(NodeArrivals::Board board, std::uint64_t communicator, std::uint64_t call) noexcept {
  const trace::NodeArrival& slot = board[trace::arrival_slot(communicator, call)];
  const auto get = [](const std::uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); };
  const Seen seen{get(slot.ticks), get(slot.what), get(slot.root)};
  if ((get(slot.check) ^ seen.ticks ^ seen.what ^ seen.root) != trace::arrival_key(communicator, call)) return std::nullopt;
  return seen;
}

constexpr std::size_t most_probes = 32;

}  // namespace

void NodeArrivals::open(std::span<trace::NodeArrival> board, std::span<trace::NodeCalls> table, std::uint64_t& given_up,
                        std::uint64_t tie_ticks, bool concurrent, FindBoard find_board) {
  board_ = board.data();
  table_ = table;
  given_up_ = &given_up;
  tie_ticks_ = tie_ticks;
  concurrent_ = concurrent;
  find_board_ = std::move(find_board);
}

void NodeArrivals::give_up(std::uint64_t calls) noexcept {
  std::atomic_ref(*given_up_).fetch_add(calls, std::memory_order_relaxed);
}

bool NodeArrivals::find_boards(Group& group) {
  if (!group.boards.empty()) return true;
  std::vector<Board> boards;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      boards.push_back(i == group.mine ? board_ : find_board_(group.ranks[i]));
      if (boards.back() != nullptr) continue;
      if (++group.searches == most_searches) group.ranks.clear();
      return false;
    }
  }
  for (auto* words : {&group.ticks, &group.caused}) words->resize(boards.size());
  group.sites.resize(boards.size());
  group.boards = std::move(boards);
  return true;
}

void NodeArrivals::look(Group& group, std::uint64_t call, bool is_mine) noexcept try {
  if (is_mine) {
    Group::Block mine{call - (block - 1), 0};
    // Those this rank has not published are not compared: nonblocking ones, and those the program did not want recorded.
    for (std::uint64_t i = 0; i < block; ++i)
      if (read(board_, group.communicator, mine.first + i)) mine.unseen |= std::uint64_t{1} << i;
    group.open.push_back(mine);
  }
  if (find_boards(group)) {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (concurrent_) lock.lock();
    for (Group::Block& one : group.open)
      for (std::uint64_t rest = one.unseen; rest != 0; rest &= rest - 1) {
        const auto i = static_cast<std::uint64_t>(std::countr_zero(rest));
        if (compare(group, one.first + i)) one.unseen &= ~(std::uint64_t{1} << i);
      }
  }
  std::erase_if(group.open, [&](const Group::Block& one) {
    const bool is_late = call - one.first >= patience;
    if (is_late) give_up(static_cast<std::uint64_t>(std::popcount(one.unseen)));
    return is_late || one.unseen == 0;
  });
} catch (...) {  // out of memory: not compared
}

// False: somebody has not arrived.
bool NodeArrivals::compare(Group& group, std::uint64_t call) noexcept {
  const std::size_t size = group.ranks.size();
  const std::optional<Seen> own = read(board_, group.communicator, call);
  if (!own) {  // overtaken by a later call
    give_up(1);
    return true;
  }
  const std::uint64_t kind = own->what >> 32 & 0xff;
  if (kind >= collective_count) return true;
  for (std::size_t i = 0; i < size; ++i) {
    const std::optional<Seen> seen = read(group.boards[i], group.communicator, call);
    if (!seen) return false;
    if ((seen->what >> 32 & 0xff) != kind) {  // the ranks disagree; the report says so
      give_up(1);
      return true;
    }
    group.ticks[i] = seen->ticks;
    group.sites[i] = static_cast<std::uint32_t>(seen->what);
    group.caused[i] = 0;
  }
  std::size_t last = 0;
  std::uint64_t first_ticks = group.ticks[0];
  std::uint64_t second_ticks = 0;
  for (std::size_t i = 1; i < size; ++i) {
    first_ticks = std::min(first_ticks, group.ticks[i]);
    second_ticks = std::max(second_ticks, std::min(group.ticks[i], group.ticks[last]));
    if (group.ticks[i] > group.ticks[last]) last = i;
  }
  report::Roles roles{static_cast<Collective>(kind), size};
  for (std::size_t i = 0; i < size; ++i)
    if (group.places[i] == static_cast<std::int32_t>(own->root)) roles.root = i;
  report::for_each_wait(
      roles, size, [&](std::size_t i) { return group.ticks[i]; },
      [&](std::size_t i, std::size_t until) { group.caused[until] += group.ticks[until] - group.ticks[i]; });

  const auto size_class = static_cast<std::uint8_t>(own->what >> 40 & 0xff);
  // One writer; readers take each word as it is.
  const auto add = [](std::uint64_t& word, std::uint64_t value) { __atomic_store_n(&word, word + value, __ATOMIC_RELAXED); };
  for (std::size_t i = 0; i < size; ++i) {
    if (i != last && group.caused[i] == 0) continue;
    trace::NodeCalls* const row = row_of(group.communicator, roles.collective, size_class, group.ranks[i], group.sites[i]);
    if (row == nullptr) {
      if (i == last) give_up(1);
      continue;
    }
    add(row->caused_ticks, group.caused[i]);
    if (i != last) continue;
    const std::uint64_t imbalance = group.ticks[last] - first_ticks;
    add(row->calls, 1);
    if (group.ticks[last] - second_ticks > tie_ticks_) add(row->times_last, 1);
    add(row->imbalance_ticks, imbalance);
    if (imbalance > row->most_ticks) add(row->most_ticks, imbalance - row->most_ticks);
  }
  return true;
}

trace::NodeCalls* NodeArrivals::row_of(std::uint64_t communicator, Collective collective, std::uint8_t size_class,
                                       std::int32_t rank, std::uint32_t call_site) noexcept {
  const std::uint64_t hash = trace::arrival_key(communicator, std::uint64_t{call_site} << 32 | static_cast<std::uint32_t>(rank)) ^
                             (index_of(collective) << 8 | size_class) * 0x9e3779b97f4a7c15u;
  for (std::size_t probe = 0; probe < most_probes; ++probe) {
    trace::NodeCalls& row = table_[((hash >> 40) + probe) % table_.size()];
    if (row.used == 0) {
      row.communicator = communicator;
      row.rank = rank;
      row.call_site = call_site;
      row.collective = static_cast<std::uint8_t>(collective);
      row.size_class = size_class;
      // Release: who finds the row finds whose it is.
      __atomic_store_n(&row.used, std::uint8_t{1}, __ATOMIC_RELEASE);
      return &row;
    }
    if (row.communicator == communicator && row.rank == rank && row.call_site == call_site &&
        row.collective == static_cast<std::uint8_t>(collective) && row.size_class == size_class)
      return &row;
  }
  return nullptr;
}

}  // namespace papaya
