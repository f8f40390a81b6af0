// Wait-avoiding group allreduce: Li, Ben-Nun, Dryden, Di Girolamo, Hoefler, "Breaking (global) barriers in parallel
// stochastic optimization with wait-avoiding group averaging", TPDS 2021. Here: on one node, without a thread of their
// own; group_across_nodes.hpp has the rest.
//
// A rank's calls are its clock: 1, 2, 3 and so on. In each call the ranks are in groups, others than in the call
// before; a group's allreduce is executed as soon as its first member is there, with the newest contribution of every
// member. Contributions are replaced, not added up: they are models to be averaged, not updates. A member that arrives
// later gets the group's result too, with an earlier contribution of its own in it (WeakStatus::own), which the paper
// corrects in the average. The calls 1, 1 + `period`, 1 + 2 `period` and so on are of all ranks at once and wait for
// all: so a contribution is never older than the last of these.
//
// Groups. Positions are the first 2^d ranks, groups have 2^k of them. The groups of a call differ in k bits of the
// position; from call to call these are the next k, as in a butterfly, so that after d / k calls each rank has got
// something of every other. Where there are more than 2^d ranks, rank 2^d + i is in the group of rank i.
//
// A slow rank may be `lag` calls behind others of its groups. A group has a number and lag + 1 slots, one a call; a
// slot is written again once the ranks of the group that used it have left that call.
//
// A rank's contribution lies in one of three buffers. One word tells which, and how many read each of them: who reads
// counts itself in, by an exchange of the word that includes which buffer it is, and out again. The owner writes to one
// that is not the newest and that nobody reads, then makes it the newest. Should two executors, both there and at work,
// still read the two older ones, it waits for one of them.
//
// Who moves `claimed` of the slot to call n executes the call for the group, once. It finds of each member what that
// brought to call n or an earlier one, for no member leaves call n before it is executed.
//
// Nobody waits for ever: in call n for its execution by a rank that is there, which waits for ranks that have not left
// call n-lag-1 and, in a call of all ranks, for those that have not come to call n. Who has left call n is waited for
// by nobody in call n. All ranks make the same number of calls.
//
// Memory orders. The buffers' word: the owner's release is partner of the acquire by which a reader counts itself in,
// the contents; its release when it counts itself out, of the acquire by which the owner looks for a buffer.
// `executed`: release of the result, acquire of all who fetch it. `left`: release once it has been fetched, acquire of
// who writes the slot again. `come`: release of the contribution, acquire of who waits for all. `claimed` orders
// nothing: its slot is written after `left` has told that it may be.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "algorithms/weak/node_words.hpp"
#include "algorithms/weak/weak.hpp"
#include "base/clock.hpp"

namespace papaya {

inline constexpr std::size_t group_thread = 3;  // the parameter, the last of its descriptor's

struct GroupShape {
  int ranks;
  std::size_t bytes;
  int group;  // a power of two
  std::uint64_t period;
  std::uint64_t lag;

  int positions() const noexcept { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); }
  int dimensions() const noexcept { return std::countr_zero(static_cast<unsigned>(positions())); }
  int group_dimensions() const noexcept {
    return std::min(static_cast<int>(std::bit_width(static_cast<unsigned>(group))) - 1, dimensions());
  }
  int groups() const noexcept { return positions() >> group_dimensions(); }
  bool is_of_all(std::uint64_t number) const noexcept { return (number - 1) % period == 0; }
  // The number of the group that a rank is in.
  int group_of(int rank, std::uint64_t number) const noexcept {
    if (is_of_all(number) || dimensions() == 0) return 0;
    const auto dims = static_cast<unsigned>(dimensions());
    const auto bits = static_cast<unsigned>(group_dimensions());
    const auto position = static_cast<unsigned>(rank % positions());
    const auto shift = static_cast<unsigned>(number * bits % dims);
    const unsigned rotated = (position >> shift | position << (dims - shift)) & ((1u << dims) - 1);
    return static_cast<int>(rotated >> bits);
  }

  std::uint64_t slots() const noexcept { return lag + 1; }
  // Three words a rank, two a slot of a group.
  std::size_t group_words_at() const noexcept { return 3 * static_cast<std::size_t>(ranks); }
  std::size_t slot_index(int group_number, std::uint64_t number) const noexcept {
    return static_cast<std::size_t>(group_number) * static_cast<std::size_t>(slots()) +
           static_cast<std::size_t>(number % slots());
  }
  std::size_t words() const noexcept {
    return group_words_at() + 2 * static_cast<std::size_t>(groups()) * static_cast<std::size_t>(slots());
  }
  static constexpr std::size_t buffers = 3;  // NewestOf
  std::size_t buffer_bytes() const noexcept { return NodeWords::line + in_lines(bytes); }
  std::size_t buffer_at(int rank, std::size_t buffer) const noexcept {
    return NodeWords::bytes(words()) + (buffers * static_cast<std::size_t>(rank) + buffer) * buffer_bytes();
  }
  // Its header: the clock of each rank's contribution, or 0.
  std::size_t result_header_bytes() const noexcept {
    return in_lines(static_cast<std::size_t>(ranks) * sizeof(std::uint64_t));
  }
  std::size_t result_at(std::size_t index) const noexcept {
    return buffer_at(ranks, 0) + index * (result_header_bytes() + in_lines(bytes));
  }
  std::size_t region_bytes() const noexcept {
    return result_at(static_cast<std::size_t>(groups()) * static_cast<std::size_t>(slots()));
  }
  static GroupShape of(const WeakRequest& request) noexcept {
    return {request.ranks, request.bytes(), static_cast<int>(request.values[0]),
            static_cast<std::uint64_t>(request.values[1]), static_cast<std::uint64_t>(request.values[2])};
  }
};

// Which of a rank's three buffers, from 1, has its newest contribution, and how many read each of them.
template <class Word>
class NewestOf {
 public:
  // By the owner: one for the next contribution; 0: there is none yet.
  static std::size_t unused(Word& word) noexcept {
    const std::uint64_t seen = word.load(std::memory_order_acquire);  // acquire: partner in count_out()
    for (std::size_t buffer = 1; buffer <= GroupShape::buffers; ++buffer)
      if (buffer != newest_in(seen) && (seen & 0xffff * reader_of(buffer)) == 0) return buffer;
    return 0;
  }
  static void set(Word& word, std::size_t newest) noexcept {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    // Release: partner in count_in().
    while (!word.compare_exchange_strong(seen, (seen & ~std::uint64_t{0xff}) | newest, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
  }
  // The newest, which stays until the same is counted out.
  static std::size_t count_in(Word& word) noexcept {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    // Acquire: partner in set(), the contents.
    while (!word.compare_exchange_strong(seen, seen + reader_of(newest_in(seen)), std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
    }
    return newest_in(seen);
  }
  static void count_out(Word& word, std::size_t buffer) noexcept {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    // Release: partner in unused().
    while (!word.compare_exchange_strong(seen, seen - reader_of(buffer), std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
  }

 private:
  static std::size_t newest_in(std::uint64_t word) noexcept { return static_cast<std::size_t>(word & 0xff); }
  static std::uint64_t reader_of(std::size_t buffer) noexcept { return std::uint64_t{1} << (8 + 16 * (buffer - 1)); }
};

// Word: std::atomic<std::uint64_t>, or what a test puts in its place to stop at each access.
template <class Word>
class WaitAvoidingGroupOf : public Weak {
  using Newest = NewestOf<Word>;

 public:
  WaitAvoidingGroupOf(const Team& team, const GroupShape& shape)
      : Weak(NodeWords::over(team, bell_)), shape_(shape), bell_(team.region) {}

  std::int64_t in_force(std::size_t parameter, std::int64_t asked) const noexcept override {
    return parameter == group_thread ? 0 : asked;
  }

 private:
  Steps steps(Operands operands) override {
    const std::uint64_t number = ++calls_;
    status_ = {.clock = clock_of(number), .oldest = clock_of(number), .own = 0, .ranks = 0, .bytes = shape_.bytes};
    if (!has_buffer()) {
      const std::uint64_t begin = clock::ticks();
      co_await until([&] { return has_buffer(); });
      count_wait(begin);
    }
    put(number, operands);
    tell_deposited(operands);

    const int group = shape_.group_of(team_.rank, number);
    const std::size_t slot = shape_.slot_index(group, number);
    if (!has_room(group, number)) {
      const std::uint64_t begin = clock::ticks();
      co_await until([&] { return has_room(group, number); }, missing_);
      count_wait(begin);
    }
    if (claims(slot, number)) {
      if (!are_there(number)) {
        const std::uint64_t begin = clock::ticks();
        co_await until([&] { return are_there(number); }, missing_);
        count_wait(begin);
      }
      execute(group, number, operands);
    } else if (!is_executed(slot, number)) {
      const std::uint64_t begin = clock::ticks();
      co_await until([&] { return is_executed(slot, number); });
      count_wait(begin);
    }
    fetch(slot, number, operands);
  }

  // Finds one for the next contribution.
  bool has_buffer() noexcept {
    next_ = Newest::unused(places(team_.rank));
    return next_ != 0;
  }
  void put(std::uint64_t number, const Operands& operands) noexcept {
    std::byte* const buffer = at(shape_.buffer_at(team_.rank, next_ - 1));
    NodeWords::write(buffer, clock_of(number));
    if (shape_.bytes != 0) std::memcpy(buffer + NodeWords::line, operands.send, shape_.bytes);
    Newest::set(places(team_.rank), next_);
    if (!shape_.is_of_all(number)) return;
    come(team_.rank).store(number, std::memory_order_release);  // partner in are_there()
    bell_.ring(*team_.policy);
  }
  bool claims(std::size_t slot, std::uint64_t number) noexcept {
    Word& word = claimed(slot);
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (seen < number)
      if (word.compare_exchange_strong(seen, number, std::memory_order_relaxed, std::memory_order_relaxed)) return true;
    return false;
  }
  // Whether those who used the slot before have left; until then the call is not claimed, since theirs may not be yet.
  bool has_room(int group, std::uint64_t number) noexcept {
    if (number <= shape_.slots()) return true;
    const std::uint64_t before = number - shape_.slots();
    for (int rank = 0; rank < team_.size; ++rank)
      if (rank != team_.rank && shape_.group_of(rank, before) == group &&
          left(rank).load(std::memory_order_acquire) < before) {  // acquire: partner in fetch()
        missing_ = rank;
        return false;
      }
    return true;
  }
  // Whether those are who have to be: in a call of all ranks, all.
  bool are_there(std::uint64_t number) noexcept {
    if (!shape_.is_of_all(number)) return true;
    for (int rank = 0; rank < team_.size; ++rank)
      if (rank != team_.rank && come(rank).load(std::memory_order_acquire) < number) {  // acquire: partner in put()
        missing_ = rank;
        return false;
      }
    return true;
  }
  void execute(int group, std::uint64_t number, const Operands& operands) noexcept {
    const std::size_t slot = shape_.slot_index(group, number);
    std::byte* const clocks = at(shape_.result_at(slot));
    std::byte* const sum = clocks + shape_.result_header_bytes();
    bool is_first = true;
    for (int rank = 0; rank < team_.size; ++rank) {
      std::uint64_t clock = 0;
      if (shape_.group_of(rank, number) == group) {
        const std::size_t buffer = Newest::count_in(places(rank));
        const std::byte* const contribution = at(shape_.buffer_at(rank, buffer - 1));
        clock = NodeWords::read<std::uint64_t>(contribution);
        const std::byte* const data = contribution + NodeWords::line;
        if (is_first && shape_.bytes != 0) std::memcpy(sum, data, shape_.bytes);
        if (!is_first && operands.count != 0)
          operands.reduction->combine(*operands.reduction, sum, data, sum, operands.count);
        is_first = false;
        Newest::count_out(places(rank), buffer);
      }
      NodeWords::write(clocks + static_cast<std::size_t>(rank) * sizeof clock, clock);
    }
    executed(slot).store(number, std::memory_order_release);  // partner in is_executed()
    bell_.ring(*team_.policy);
  }
  bool is_executed(std::size_t slot, std::uint64_t number) noexcept {
    return executed(slot).load(std::memory_order_acquire) >= number;  // partner in execute()
  }
  void fetch(std::size_t slot, std::uint64_t number, const Operands& operands) noexcept {
    const std::byte* const clocks = at(shape_.result_at(slot));
    for (int rank = 0; rank < team_.size; ++rank) {
      const auto clock =
          NodeWords::read<std::uint64_t>(clocks + static_cast<std::size_t>(rank) * sizeof(std::uint64_t));
      if (rank == team_.rank) status_.own = clock;
      if (clock == 0) continue;
      ++status_.ranks;
      status_.oldest = std::min(status_.oldest, clock);
    }
    if (shape_.bytes != 0) std::memcpy(operands.receive, clocks + shape_.result_header_bytes(), shape_.bytes);
    left(team_.rank).store(number, std::memory_order_release);  // partner in has_room()
    bell_.ring(*team_.policy);
  }

  std::uint64_t clock_of(std::uint64_t number) const noexcept { return team_.first_round - 1 + number; }
  std::byte* at(std::size_t offset) const noexcept { return team_.region + offset; }
  Word& word(std::size_t which) const noexcept { return NodeWords::word<Word>(team_.region, which); }
  Word& places(int rank) const noexcept { return word(3 * static_cast<std::size_t>(rank)); }
  Word& left(int rank) const noexcept { return word(3 * static_cast<std::size_t>(rank) + 1); }  // the last call
  Word& come(int rank) const noexcept { return word(3 * static_cast<std::size_t>(rank) + 2); }  // the last of all ranks
  Word& claimed(std::size_t slot) const noexcept { return word(shape_.group_words_at() + 2 * slot); }
  Word& executed(std::size_t slot) const noexcept { return word(shape_.group_words_at() + 2 * slot + 1); }

  const GroupShape shape_;
  NodeWords::Bell bell_;
  std::uint64_t calls_ = 0;
  std::size_t next_ = 1;  // the buffer for this call's contribution
  int missing_ = -1;
};

}  // namespace papaya
