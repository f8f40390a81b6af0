// Who is late within a node, found out while the job runs: it stays known when the ring of events has wrapped. Each rank publishes
// its arrivals where the other ranks of its node read them; for each block of calls one rank of the communicator, in turn, compares
// them once it has left the block, and adds the result to the table of its record. No message, no barrier, no atomic
// read-modify-write; a rank that has not arrived yet is looked for again later.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "base/collective.hpp"
#include "profiler/format.hpp"

namespace papaya {

class NodeArrivals {
 public:
  // Calls that one rank looks at together: their stamps share cache lines.
  static constexpr std::uint64_t block = 8;
  // Calls after which what is missing still is given up: its slots will be used again.
  static constexpr std::uint64_t patience = trace::arrival_slots / 2;
  // Searches after which a group whose ranks have no boards is left alone.
  static constexpr int most_searches = 32;

  using Board = const trace::NodeArrival*;  // of trace::arrival_slots
  // The board of a rank of MPI_COMM_WORLD that is on this node; null if it is not there yet.
  using FindBoard = std::function<Board(int rank)>;

  // The ranks of a communicator on this node. Used by one thread at a time, as the communicator is.
  struct Group {
    std::uint64_t communicator = 0;
    std::vector<std::int32_t> ranks;   // in MPI_COMM_WORLD, by rank in the communicator; fewer than two: nothing is compared
    std::vector<std::int32_t> places;  // their ranks in the communicator
    std::size_t mine = 0;              // this rank's place among them

    std::vector<Board> boards;   // by place, once all are there
    int searches = 0;            // for them, in vain
    // Calls that this rank looks at, and somebody has not arrived at.
    struct Block {
      std::uint64_t first;
      std::uint64_t unseen;  // bit by bit
    };
    std::vector<Block> open;  // the oldest first
    std::vector<std::uint64_t> ticks, caused;  // by place, of the call looked at
    std::vector<std::uint32_t> sites;
  };

  // What is written: this rank's board, its table and the number of calls given up. Without them, nothing is published.
  void open(std::span<trace::NodeArrival> board, std::span<trace::NodeCalls> table, std::uint64_t& given_up,
            std::uint64_t tie_ticks, bool concurrent, FindBoard find_board);
  void close() noexcept { board_ = nullptr; }

  // This rank has arrived at a call.
  void publish(std::uint64_t communicator, std::uint64_t call, std::uint64_t ticks, std::uint64_t call_site, Collective collective,
               std::uint64_t bytes, int root) noexcept {
    if (board_ == nullptr) return;
    const std::uint64_t what = (call_site & 0xffffffff) | std::uint64_t{index_of(collective)} << 32 |
                               std::uint64_t{static_cast<std::uint8_t>(size_class_of(bytes))} << 40;
    const auto root_word = static_cast<std::uint64_t>(root);
    trace::NodeArrival& slot = board_[trace::arrival_slot(communicator, call)];
    // Relaxed: the check tells whether a reader has all four words of one call.
    const auto put = [](std::uint64_t& word, std::uint64_t value) { std::atomic_ref(word).store(value, std::memory_order_relaxed); };
    put(slot.ticks, ticks);
    put(slot.what, what);
    put(slot.root, root_word);
    put(slot.check, trace::arrival_key(communicator, call) ^ ticks ^ what ^ root_word);
  }

  // It has left the call.
  void left(Group& group, std::uint64_t call) noexcept {
    if (call % block != block - 1 || board_ == nullptr || group.ranks.size() < 2) return;
    const bool is_mine = call / block % group.ranks.size() == group.mine;
    if (is_mine || !group.open.empty()) [[unlikely]] look(group, call, is_mine);
  }

 private:
  void look(Group& group, std::uint64_t call, bool is_mine) noexcept;
  bool find_boards(Group& group);
  bool compare(Group& group, std::uint64_t call) noexcept;
  trace::NodeCalls* row_of(std::uint64_t communicator, Collective collective, std::uint8_t size_class, std::int32_t rank,
                           std::uint32_t call_site) noexcept;
  void give_up(std::uint64_t calls) noexcept;

  trace::NodeArrival* board_ = nullptr;
  std::span<trace::NodeCalls> table_;
  std::uint64_t* given_up_ = nullptr;
  std::uint64_t tie_ticks_ = 0;
  bool concurrent_ = true;
  FindBoard find_board_;
  std::mutex mutex_;  // guards the table where threads are concurrent, and `find_board_`
};

}  // namespace papaya
