// Solo and majority allreduce of eager-SGD: Li, Ben-Nun, Di Girolamo, Alistarh, Hoefler, "Taming unbalanced training
// workloads in deep learning with partial collective operations", PPoPP'20. On one node, without a thread of their own.
//
// A rank's calls are its clock: 1, 2, 3 and so on. Call n is executed as soon as one rank is there: the first that
// arrives (solo), or one that all ranks draw alike for call n (majority: on average half of the others have come by
// then). Each rank has a place for contributions that are not in a result yet. Whoever executes the call takes what
// lies there, reduces it and publishes the result; no other rank has to do anything for it. Ranks that have nothing
// there are left out, so no identity of the operation is needed. A rank that arrives later gets the result of call n as
// all others do; its contribution stays in its place, those of its next calls are added to it, and the next execution
// takes them. All ranks have the same sequence of results, bit for bit.
//
// A slow rank may be `lag` calls behind. Results lie in lag + 1 slots, call n's in slot n mod (lag + 1): call n is
// executed once all ranks have left call n - lag - 1. So a rank that is too far ahead waits, and none misses a result.
//
// Nothing is lost and nothing counts twice. A place is one word, `held`: 0, or the number of the buffer in which
// contributions lie. Only its owner sets it to a buffer, when what is in there is complete. Whoever exchanges it for 0
// has what is in the buffer, and nobody else: the executor of a call, who combines it into that call's result once, or
// the owner, who combines its next contribution into it and sets the word again. A call is executed once: in solo by
// who moved `claimed` from n-1 to n, in majority by the rank drawn. What the executor brings itself it need not put
// down.
//
// Buffers. Each place has two. A rank adds to what it has withdrawn in the same buffer. If it finds 0, it takes the
// buffer other than the last, which an executor may be reading: the other one was taken by the executor of an earlier
// call. An executor takes each place once, and calls are executed one after the other, since a rank is in call n only
// with the result of call n-1. So nobody reads that buffer any more.
//
// Nobody waits for ever. A rank in call n waits for the execution of call n, and its executor for ranks that have not
// left call n-lag-1 yet. In majority, those who come early wait for the rank drawn to come to call n. All ranks make
// the same number of calls, and who has left call n is waited for by nobody in call n.
//
// At the end, what has been used in no result lies in its owner's place: WeakStatus::unused says of how many calls it
// is, and withdraw() returns it.
//
// Memory orders. `held`: the owner's release is partner of the acquire in take(): the buffer's contents; the exchange
// there is partner, as a release, of the acquire in put(): by the execution before, nobody reads the other buffer.
// `executed`: release of the result, acquire of all who read it. `left`: release once it has been read, acquire of who
// writes that slot again. `claimed` orders nothing: who claims call n has seen call n-1 executed.
//
// Whoever executes a call combines all of it. Others that are there do not help: for messages that are large enough,
// an allreduce of all ranks divides that work among them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "algorithms/weak/node_words.hpp"
#include "algorithms/weak/weak.hpp"
#include "base/clock.hpp"

namespace papaya {

enum class Starter : std::uint8_t { first, drawn };

inline constexpr Parameter partial_parameters[] = {{.name = "lag",
                                                    .fallback = 4,
                                                    .lowest = 0,
                                                    .highest = 1 << 16,
                                                    .help = "calls that a rank may be behind before the others wait"}};

// What all ranks share: where it lies in the region.
struct PartialShape {
  int ranks;
  std::size_t bytes;
  std::uint64_t lag;

  std::uint64_t slots() const noexcept { return lag + 1; }
  std::size_t words() const noexcept { return 2 + 2 * static_cast<std::size_t>(ranks); }
  std::size_t place_bytes() const noexcept { return NodeWords::line + in_lines(bytes); }
  std::size_t place_at(int rank, std::size_t buffer) const noexcept {
    return NodeWords::bytes(words()) + (2 * static_cast<std::size_t>(rank) + buffer) * place_bytes();
  }
  // Its header: the ranks in it, the oldest clock, then the newest clock of each rank or 0.
  std::size_t result_header_bytes() const noexcept {
    return in_lines((2 + static_cast<std::size_t>(ranks)) * sizeof(std::uint64_t));
  }
  std::size_t result_at(std::uint64_t number) const noexcept {
    return place_at(ranks, 0) + static_cast<std::size_t>(number % slots()) * (result_header_bytes() + in_lines(bytes));
  }
  std::size_t region_bytes() const noexcept {
    return place_at(ranks, 0) + static_cast<std::size_t>(slots()) * (result_header_bytes() + in_lines(bytes));
  }
  static PartialShape of(const WeakRequest& request) noexcept {
    return {request.ranks, request.bytes(), static_cast<std::uint64_t>(request.values[0])};
  }
};

// Word: std::atomic<std::uint64_t>, or what a test puts in its place to stop at each access.
template <class Word>
class PartialAllreduceOf : public Weak {
 public:
  PartialAllreduceOf(const Team& team, const PartialShape& shape, Starter starter)
      : Weak(NodeWords::over(team, bell_)), shape_(shape), starter_(starter), bell_(team.region) {}

  // Between calls.
  std::uint64_t withdraw(void* to) noexcept override {
    const std::uint64_t buffer = held(team_.rank).exchange(0, std::memory_order_acquire);
    if (buffer == 0) return 0;
    const std::byte* const place = at(shape_.place_at(team_.rank, buffer - 1));
    if (shape_.bytes != 0) std::memcpy(to, place + NodeWords::line, shape_.bytes);
    const Held clocks = NodeWords::read<Held>(place);
    return clocks.newest - clocks.oldest + 1;
  }

 protected:                     // for tests
  std::uint64_t last_ = 2;      // the buffer that was written last, from 1
  std::uint64_t used_ = 0;      // the newest clock of an own contribution in a result
  std::uint64_t all_left_ = 0;  // the last call that all ranks are known to have left

 private:
  // The header of a place's buffer: the clocks of consecutive calls.
  struct Held {
    std::uint64_t oldest;
    std::uint64_t newest;
  };

  Steps steps(Operands operands) override {
    const std::uint64_t number = ++calls_;
    status_ = {.clock = clock_of(number), .oldest = 0, .own = 0, .ranks = 0, .bytes = shape_.bytes};
    if (begins(number)) {
      if (!has_room(number)) {
        const std::uint64_t begin = clock::ticks();
        co_await until([&] { return has_room(number); }, slowest_);
        count_wait(begin);
      }
      execute(number, operands);
      tell_deposited(operands);
    } else {
      put(number, operands);
      tell_deposited(operands);
      if (!is_executed(number)) {
        const std::uint64_t begin = clock::ticks();
        co_await until([&] { return is_executed(number); }, starter_ == Starter::drawn ? drawn(number) : -1);
        count_wait(begin);
      }
    }
    fetch(number, operands);
  }

  // Whether this rank is to execute the call.
  bool begins(std::uint64_t number) noexcept {
    if (starter_ == Starter::drawn) return drawn(number) == team_.rank;
    std::uint64_t before = number - 1;
    return claimed().load(std::memory_order_relaxed) == before &&
           claimed().compare_exchange_strong(before, number, std::memory_order_relaxed, std::memory_order_relaxed);
  }
  int drawn(std::uint64_t number) const noexcept {
    std::uint64_t hash = clock_of(number) * 0x9e3779b97f4a7c15u;  // as SplitMix64
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return static_cast<int>((hash ^ hash >> 31) % static_cast<std::uint64_t>(team_.size));
  }

  // Whether all have left the call whose slot this one takes.
  bool has_room(std::uint64_t number) noexcept {
    if (number <= shape_.slots() + all_left_) return true;
    std::uint64_t least = number - 1;  // this rank has left that one
    for (int rank = 0; rank < team_.size; ++rank) {
      if (rank == team_.rank) continue;
      const std::uint64_t last = left(rank).load(std::memory_order_acquire);  // partner in fetch()
      if (last < least) slowest_ = rank;
      least = std::min(least, last);
    }
    all_left_ = least;
    return number <= shape_.slots() + all_left_;
  }

  void execute(std::uint64_t number, const Operands& operands) noexcept {
    std::byte* const result = at(shape_.result_at(number));
    std::byte* const sum = result + shape_.result_header_bytes();
    auto* const header = reinterpret_cast<std::uint64_t*>(result);
    std::uint64_t ranks = 0;
    std::uint64_t oldest = clock_of(number);
    const void* only = nullptr;  // until there is a second
    bool is_sum = false;
    const auto add = [&](const void* operand) {
      if (only == nullptr) {
        only = operand;
      } else {
        if (operands.count != 0)
          operands.reduction->combine(*operands.reduction, is_sum ? sum : only, operand, sum, operands.count);
        is_sum = true;
      }
    };
    for (int rank = 0; rank < team_.size; ++rank) {
      std::uint64_t& newest = header[2 + static_cast<std::size_t>(rank)];
      newest = 0;
      if (const std::byte* const place = take(rank); place != nullptr) {
        const Held clocks = NodeWords::read<Held>(place);
        oldest = std::min(oldest, clocks.oldest);
        newest = clocks.newest;
        add(place + NodeWords::line);
      }
      if (rank == team_.rank) {
        newest = clock_of(number);
        add(operands.send);
      }
      ranks += newest != 0 ? 1 : 0;
    }
    if (!is_sum && shape_.bytes != 0) std::memcpy(sum, only, shape_.bytes);
    header[0] = ranks;
    header[1] = oldest;
    executed().store(number, std::memory_order_release);  // partner in is_executed()
    bell_.ring(*team_.policy);
  }
  bool is_executed(std::uint64_t number) noexcept {
    return executed().load(std::memory_order_acquire) >= number;  // partner in execute()
  }

  // What lies in a rank's place is this rank's from now on; null: nothing does.
  const std::byte* take(int rank) noexcept {
    // Acquire: partner in put(), the contents. Release: partner of the load there.
    const std::uint64_t buffer = held(rank).exchange(0, std::memory_order_acq_rel);
    return buffer == 0 ? nullptr : at(shape_.place_at(rank, buffer - 1));
  }

  // This rank's contribution goes to what it has not used yet.
  void put(std::uint64_t number, const Operands& operands) noexcept {
    Word& own = held(team_.rank);
    // Acquire: partner in take(), whose call comes after the one that read the other buffer.
    const std::uint64_t buffer = own.exchange(0, std::memory_order_acquire);
    if (buffer == 0) last_ = 3 - last_;
    std::byte* const place = at(shape_.place_at(team_.rank, last_ - 1));
    std::byte* const data = place + NodeWords::line;
    if (buffer == 0) {
      NodeWords::write(place, Held{clock_of(number), clock_of(number)});
      if (shape_.bytes != 0) std::memcpy(data, operands.send, shape_.bytes);
    } else {
      NodeWords::write(place, Held{NodeWords::read<Held>(place).oldest, clock_of(number)});
      if (operands.count != 0)
        operands.reduction->combine(*operands.reduction, data, operands.send, data, operands.count);
    }
    own.store(last_, std::memory_order_release);  // partner in take()
  }

  void fetch(std::uint64_t number, const Operands& operands) noexcept {
    const std::byte* const result = at(shape_.result_at(number));
    const auto* const header = reinterpret_cast<const std::uint64_t*>(result);
    status_.ranks = static_cast<int>(header[0]);
    status_.oldest = header[1];
    status_.own = header[2 + static_cast<std::size_t>(team_.rank)];
    used_ = std::max(used_, status_.own);
    status_.unused = status_.clock - used_;
    if (shape_.bytes != 0) std::memcpy(operands.receive, result + shape_.result_header_bytes(), shape_.bytes);
    left(team_.rank).store(number, std::memory_order_release);  // partner in has_room()
    bell_.ring(*team_.policy);
  }

  std::uint64_t clock_of(std::uint64_t number) const noexcept { return team_.first_round - 1 + number; }
  std::byte* at(std::size_t offset) const noexcept { return team_.region + offset; }
  Word& word(std::size_t which) const noexcept { return NodeWords::word<Word>(team_.region, which); }
  Word& claimed() const noexcept { return word(0); }   // solo: the last call that a rank executes or has executed
  Word& executed() const noexcept { return word(1); }  // the last call; its executor sets it
  Word& held(int rank) const noexcept { return word(2 + 2 * static_cast<std::size_t>(rank)); }
  Word& left(int rank) const noexcept { return word(3 + 2 * static_cast<std::size_t>(rank)); }  // the last call
  const PartialShape shape_;
  const Starter starter_;
  NodeWords::Bell bell_;
  std::uint64_t calls_ = 0;
  int slowest_ = -1;
};

template <Starter starter>
constexpr WeakDescriptor partial_descriptor(std::string_view name, std::string_view summary) {
  return {
      .collective = WeakCollective::partial_allreduce,
      .name = name,
      .summary = summary,
      .source = "Li et al., PPoPP 2020 (eager-SGD)",
      .commutative_only = true,
      .automatic_from_bytes = starter == Starter::first ? 0 : WeakDescriptor::never_automatic,
      .parameters = partial_parameters,
      .region_bytes = [](const WeakRequest& request) { return PartialShape::of(request).region_bytes(); },
      .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
        return std::make_unique<PartialAllreduceOf<std::atomic<std::uint64_t>>>(team, PartialShape::of(request),
                                                                                starter);
      },
  };
}

}  // namespace papaya
