// Solo and majority allreduce of eager-SGD: Li, Ben-Nun, Di Girolamo, Alistarh, Hoefler, "Taming unbalanced training
// workloads in deep learning with partial collective operations", PPoPP'20. Here: on one node, without a thread of
// their own, and what ranks do alike across nodes (partial_across_nodes.hpp).
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
#include <vector>

#include "algorithms/weak/combine.hpp"
#include "algorithms/weak/node_words.hpp"
#include "algorithms/weak/relay.hpp"
#include "algorithms/weak/weak.hpp"
#include "base/clock.hpp"

namespace papaya {

enum class Starter : std::uint8_t { first, drawn };

inline constexpr Parameter partial_parameters[] = {
    {.name = "lag",
     .fallback = 4,
     .lowest = 0,
     .highest = 1 << 16,
     .help = "calls that a rank may be behind before the others wait"},
    {.name = "thread",
     .fallback = 1,
     .lowest = 0,
     .highest = 1,
     .help = "1: across nodes a thread answers for ranks that are away, under MPI_THREAD_MULTIPLE; 0: their calls do"}};
inline constexpr std::size_t partial_thread = 1;  // the last of them

// What the ranks of a node share: where it lies in the region. By position in the node, `places` of them at most.
struct PartialShape {
  int ranks;  // that there are in all
  int places;
  std::size_t bytes;
  std::uint64_t lag;

  std::uint64_t slots() const noexcept { return lag + 1; }
  std::size_t words() const noexcept { return 2 + 2 * static_cast<std::size_t>(places); }
  std::size_t place_bytes() const noexcept { return NodeWords::line + in_lines(bytes); }
  std::size_t place_at(int place, std::size_t buffer) const noexcept {
    return NodeWords::bytes(words()) + (2 * static_cast<std::size_t>(place) + buffer) * place_bytes();
  }
  std::size_t result_header_bytes() const noexcept { return RelayHeader::bytes(ranks); }
  std::size_t result_at(std::uint64_t number) const noexcept {
    return place_at(places, 0) + static_cast<std::size_t>(number % slots()) * (result_header_bytes() + in_lines(bytes));
  }
  std::size_t region_bytes() const noexcept {
    return place_at(places, 0) + static_cast<std::size_t>(slots()) * (result_header_bytes() + in_lines(bytes));
  }
  static PartialShape of(const WeakRequest& request) noexcept {
    return {request.ranks,
            request.nodes == nullptr ? request.ranks : Layout{request.ranks, request.nodes}.largest_node(),
            request.bytes(), static_cast<std::uint64_t>(request.values[0])};
  }
};

// A rank and its node's region, in which `place` of `places` is this rank's.
// Word: std::atomic<std::uint64_t>, or what a test puts in its place to stop at each access.
template <class Word>
class PartialRankOf : public Weak {
 public:
  // Between calls.
  std::uint64_t withdraw(void* to) noexcept override {
    const std::uint64_t buffer = held(place_).exchange(0, std::memory_order_acquire);
    if (buffer == 0) return 0;
    const std::byte* const place = at(shape_.place_at(place_, buffer - 1));
    if (shape_.bytes != 0) std::memcpy(to, place + NodeWords::line, shape_.bytes);
    const Held clocks = NodeWords::read<Held>(place);
    return clocks.newest - clocks.oldest + 1;
  }

 protected:
  // It waits for news in the region, or on the team's wire.
  enum class Waits : std::uint8_t { in_region, on_wire };
  PartialRankOf(const Team& team, const PartialShape& shape, Starter starter, int place, int places, Waits waits)
      : Weak(waits == Waits::in_region ? NodeWords::over(team, bell_) : team),
        shape_(shape),
        starter_(starter),
        place_(place),
        places_(places),
        bell_(team.region) {}

  // The header of a place's buffer: the clocks of consecutive calls.
  struct Held {
    std::uint64_t oldest;
    std::uint64_t newest;
  };

  void begin_call() noexcept {
    ++calls_;
    status_ = {.clock = clock_of(calls_), .oldest = 0, .own = 0, .ranks = 0, .bytes = shape_.bytes};
  }
  // In a majority.
  int drawn(std::uint64_t number) const noexcept {
    std::uint64_t hash = clock_of(number) * 0x9e3779b97f4a7c15u;  // as SplitMix64
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return static_cast<int>((hash ^ hash >> 31) % static_cast<std::uint64_t>(shape_.ranks));
  }

  bool is_executed(std::uint64_t number) noexcept {
    return executed().load(std::memory_order_acquire) >= number;  // partner in publish()
  }
  void publish(std::uint64_t number) noexcept {
    executed().store(number, std::memory_order_release);  // partner in is_executed()
    bell_.ring(*team_.policy);
  }

  // What lies in a place is this rank's from now on; null: nothing does.
  const std::byte* take(int place) noexcept {
    // Acquire: partner in put(), the contents. Release: partner of the load there.
    const std::uint64_t buffer = held(place).exchange(0, std::memory_order_acq_rel);
    return buffer == 0 ? nullptr : at(shape_.place_at(place, buffer - 1));
  }

  // This rank's contribution goes to what it has not used yet.
  void put(std::uint64_t number, const Operands& operands) noexcept {
    Word& own = held(place_);
    // Acquire: partner in take(), whose call comes after the one that read the other buffer.
    const std::uint64_t buffer = own.exchange(0, std::memory_order_acquire);
    if (buffer == 0) last_ = 3 - last_;
    std::byte* const place = at(shape_.place_at(place_, last_ - 1));
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
    std::byte* const result = at(shape_.result_at(number));
    const RelayHeader header(result);
    status_.ranks = static_cast<int>(header.ranks());
    status_.oldest = header.oldest();
    status_.own = header.newest(team_.rank);
    used_ = std::max(used_, status_.own);
    status_.unused = status_.clock - used_;
    if (shape_.bytes != 0) std::memcpy(operands.receive, result + shape_.result_header_bytes(), shape_.bytes);
    left(place_).store(number, std::memory_order_release);  // partner in has_room()
    bell_.ring(*team_.policy);
  }

  std::uint64_t clock_of(std::uint64_t number) const noexcept { return team_.first_round - 1 + number; }
  std::byte* at(std::size_t offset) const noexcept { return team_.region + offset; }
  Word& word(std::size_t which) const noexcept { return NodeWords::word<Word>(team_.region, which); }
  Word& claimed() const noexcept { return word(0); }   // the last call that a rank executes or wants executed
  Word& executed() const noexcept { return word(1); }  // the last call; who executes it sets it
  Word& held(int place) const noexcept { return word(2 + 2 * static_cast<std::size_t>(place)); }
  Word& left(int place) const noexcept { return word(3 + 2 * static_cast<std::size_t>(place)); }  // the last call

  const PartialShape shape_;
  const Starter starter_;
  const int place_;
  const int places_;
  NodeWords::Bell bell_;
  std::uint64_t calls_ = 0;
  std::uint64_t last_ = 2;  // the buffer that was written last, from 1
  std::uint64_t used_ = 0;  // the newest clock of an own contribution in a result
};

// All on one node: a rank's place is its number.
template <class Word>
class PartialAllreduceOf : public PartialRankOf<Word> {
  using Base = PartialRankOf<Word>;

 public:
  PartialAllreduceOf(const Team& team, const PartialShape& shape, Starter starter)
      : Base(team, shape, starter, team.rank, team.size, Base::Waits::in_region) {}

  std::int64_t in_force(std::size_t parameter, std::int64_t asked) const noexcept override {
    return parameter == partial_thread ? 0 : asked;
  }

 private:
  Steps steps(Operands operands) override {
    this->begin_call();
    const std::uint64_t number = this->calls_;
    if (begins(number)) {
      if (!has_room(number)) {
        const std::uint64_t begin = clock::ticks();
        co_await until([&] { return has_room(number); }, slowest_);
        this->count_wait(begin);
      }
      execute(number, operands);
      this->tell_deposited(operands);
    } else {
      this->put(number, operands);
      this->tell_deposited(operands);
      if (!this->is_executed(number)) {
        const std::uint64_t begin = clock::ticks();
        co_await until([&] { return this->is_executed(number); },
                       this->starter_ == Starter::drawn ? this->drawn(number) : -1);
        this->count_wait(begin);
      }
    }
    this->fetch(number, operands);
  }

  // Whether all have left the call whose slot this one takes.
  bool has_room(std::uint64_t number) noexcept {
    if (number <= this->shape_.slots() + all_left_) return true;
    std::uint64_t least = number - 1;  // this rank has left that one
    for (int rank = 0; rank < this->shape_.ranks; ++rank) {
      if (rank == this->team_.rank) continue;
      const std::uint64_t last = this->left(rank).load(std::memory_order_acquire);  // partner in fetch()
      if (last < least) slowest_ = rank;
      least = std::min(least, last);
    }
    all_left_ = least;
    return number <= this->shape_.slots() + all_left_;
  }

  // Whether this rank is to execute the call.
  bool begins(std::uint64_t number) noexcept {
    if (this->starter_ == Starter::drawn) return this->drawn(number) == this->team_.rank;
    std::uint64_t before = number - 1;
    return this->claimed().load(std::memory_order_relaxed) == before &&
           this->claimed().compare_exchange_strong(before, number, std::memory_order_relaxed,
                                                   std::memory_order_relaxed);
  }

  void execute(std::uint64_t number, const Operands& operands) noexcept {
    std::byte* const result = this->at(this->shape_.result_at(number));
    const RelayHeader header(result);
    header.clear(this->shape_.ranks);
    operands_.clear();
    for (int rank = 0; rank < this->shape_.ranks; ++rank) {
      std::uint64_t oldest = 0;
      std::uint64_t newest = 0;
      if (const std::byte* const place = this->take(rank); place != nullptr) {
        const auto clocks = NodeWords::read<typename Base::Held>(place);
        oldest = clocks.oldest;
        newest = clocks.newest;
        operands_.push_back(place + NodeWords::line);
      }
      if (rank == this->team_.rank) {
        if (newest == 0) oldest = this->clock_of(number);
        newest = this->clock_of(number);
        operands_.push_back(static_cast<const std::byte*>(operands.send));
      }
      if (newest != 0) header.add(rank, oldest, newest);
    }
    combine_all(*operands.reduction, operands_, result + this->shape_.result_header_bytes(), this->shape_.bytes);
    this->publish(number);
  }

  std::vector<const std::byte*> operands_;
  int slowest_ = -1;

 protected:                     // for tests
  std::uint64_t all_left_ = 0;  // the last call that all ranks are known to have left
};

}  // namespace papaya
