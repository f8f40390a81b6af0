// Who is late within a node, found out while the job runs: it stays known when the ring of events has wrapped. Each
// rank publishes its arrivals where the other ranks of its node read them; for each block of calls one rank of the
// communicator, in turn, compares them once it has left the block, and adds the result to the table of its record. No
// message, no barrier, no atomic read-modify-write; a rank that has not arrived yet is looked for again later.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/collective.hpp"
#include "base/prefetch.hpp"
#include "profiler/record/format.hpp"

namespace papaya {

class NodeArrivals {
 public:
  // Calls that one rank looks at together: their stamps share cache lines.
  static constexpr std::uint64_t block = 8;
  // Calls after which what is missing still is given up: its slots will be used again.
  static constexpr std::uint64_t patience = trace::arrival_slots / 2;

  // The ranks of a communicator on this node. Used by one thread at a time, as the communicator is.
  struct Group {
    struct Member {
      std::int32_t rank;  // in MPI_COMM_WORLD
      std::int32_t communicator_rank;
      const trace::NodeBoard* board;
      std::uint64_t set = 0;                // where it was found last on that board
      std::uint64_t ticks = 0, caused = 0;  // of the call looked at
      std::uint32_t call_site = 0;
    };
    // Calls that this rank looks at, and somebody has not arrived at.
    struct Block {
      std::uint64_t first;
      std::uint64_t unseen;  // bit by bit
    };

    std::uint64_t communicator = 0;
    std::vector<Member> members;  // by rank in the communicator; fewer than two: nothing is compared
    std::size_t mine = 0;         // this rank's index among them
    int set = -1;                 // its own; -1: none yet
    std::uint64_t published = 0;  // of the present block, bit by bit
    std::vector<Block> open;      // the oldest first
  };

  // What is written: this rank's board, its table (of a power of two rows) and the number of calls given up.
  void open(trace::NodeBoard& board, std::span<trace::NodeCalls> table, std::uint64_t& given_up,
            std::uint64_t tie_ticks, bool concurrent) noexcept;
  void close() noexcept { board_ = nullptr; }

  // This rank has arrived at a call.
  void publish(Group& group, std::uint64_t call, std::uint64_t ticks, std::uint64_t call_site, Collective collective,
               std::uint64_t bytes, int root) noexcept {
    if (group.members.size() < 2 || board_ == nullptr) return;
    group.published |= std::uint64_t{1} << call % block;
    if (group.set < 0) [[unlikely]]
      claim_set(group);
    if (group.set < 0) [[unlikely]]
      return;
    const std::uint64_t what = (call_site & 0xffffffff) | std::uint64_t{index_of(collective)} << 32 |
                               std::uint64_t{static_cast<std::uint8_t>(size_class_of(bytes))} << 40;
    const auto root_word = static_cast<std::uint64_t>(root);
    trace::NodeArrival& slot = slot_of(group, call);
    // Relaxed: the check tells whether a reader has all four words of one call.
    const auto put = [](std::uint64_t& word, std::uint64_t value) {
      std::atomic_ref(word).store(value, std::memory_order_relaxed);
    };
    put(slot.ticks, ticks);
    put(slot.what, what);
    put(slot.root, root_word);
    put(slot.check, trace::arrival_key(group.communicator, call) ^ ticks ^ what ^ root_word);
    // Whoever looked at that line has it; without this the stores of a later call, and the algorithm's behind them,
    // would wait.
    prefetch_for_write(&slot_of(group, call + block));
  }

  // The call returned an error: its number belongs to the next one.
  void take_back(Group& group, std::uint64_t call) noexcept;

  // This rank has left the call, published or not.
  void left(Group& group, std::uint64_t call) noexcept {
    if (call % block != block - 1 || group.members.size() < 2 || board_ == nullptr) return;
    const bool is_mine = (group.communicator + call / block) % group.members.size() == group.mine;
    if (is_mine || !group.open.empty()) [[unlikely]]
      look(group, call, is_mine);
    group.published = 0;
  }

  // No call follows the `calls` there were: compares what is left of them as far as it can be.
  void end(Group& group, std::uint64_t calls) noexcept;

 private:
  trace::NodeArrival& slot_of(const Group& group, std::uint64_t call) noexcept {
    return board_->slots[group.set][call % trace::arrival_slots];
  }
  void claim_set(Group& group) noexcept;
  void look(Group& group, std::uint64_t call, bool is_mine) noexcept;
  void compare_open(Group& group) noexcept;
  bool compare(Group& group, std::uint64_t call) noexcept;
  trace::NodeCalls* row_of(std::uint64_t communicator, Collective collective, std::uint8_t size_class,
                           std::int32_t rank, std::uint32_t call_site) noexcept;
  void give_up(std::uint64_t calls) noexcept;

  trace::NodeBoard* board_ = nullptr;
  std::span<trace::NodeCalls> table_;
  std::size_t rows_ = 0;  // in use
  std::uint64_t* given_up_ = nullptr;
  std::uint64_t tie_ticks_ = 0;
  bool concurrent_ = true;
  std::mutex mutex_;         // guards the table where threads are concurrent, and the sets
  std::uint64_t taken_ = 0;  // sets, bit by bit
};

}  // namespace papaya
