// Calls that are executed for ranks that are not there: the engine behind partial and group allreduces across nodes.
// One rank has it for itself, or for all ranks of its node, whom it shares memory with; here it is a member.
//
// A call has a tree of members. Whoever wants it executed tells its neighbours in the tree, and each member that is
// told tells its own: the activation, which starts anywhere (Li et al., PPoPP'20). A member that has been told takes
// what its ranks have brought by then, once the parts of its children are there, combines all of it and sends it to its
// parent. The root has the result, which goes down the same tree. A part without any contribution is a header alone.
//
// Who moves it: serve(), which does what can be done and waits for nothing. A rank calls it in its own calls; a thread
// of papaya's (service.hpp) or other calls of papaya's do so while it computes. Who finds another thread at it leaves
// it to that one. Without a thread a call waits until every member has come to papaya, as in an allreduce that waits
// for all; it never hangs for that, since a rank leaves a call only after its member has passed on all that others need
// for it.
//
// Numbers. Calls count from 1. What a member says of call n to another is a notification of that one's, 4n + 1: the
// call is to be executed; 4n + 2: its part, or the result, is there. Each has one writer, sender and slot of the call,
// and grows: a member speaks of call n + `in_flight` only after it has finished call n, hence it had sent what it owed
// for call n.
//
// Memory. `in_flight` calls may be under way at a member, in slots by number. Of each there are places for the parts of
// its children and one for the result. A part comes only after the member has opened that call here, if `asks_first`:
// then a child sends no part before it has been told. Where all calls have one tree and one is under way at a time it
// need not ask: it has the result of call n - 1, so its parent has taken the part of that call. A result comes only to
// who has sent its part, hence has copied that of the slot's last call.
//
// The end. A member that has finished its last call gets nothing more: its neighbours told it of that call, if they
// did, before they sent the part or the result that it has.
//
// Memory orders: one thread is in serve() at a time, ordered by `is_served_`; the wire orders the rest.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "algorithms/team.hpp"
#include "algorithms/transport/notified.hpp"
#include "algorithms/weak/combine.hpp"
#include "algorithms/weak/service.hpp"

namespace papaya {

// What a part and a result begin with: how many ranks are in it, the clock of the oldest contribution, and the newest
// of each rank, 0 for none.
class RelayHeader {
 public:
  static std::size_t bytes(int ranks) noexcept {
    return in_lines((2 + static_cast<std::size_t>(ranks)) * sizeof(std::uint64_t));
  }
  explicit RelayHeader(std::byte* at) noexcept : words_(reinterpret_cast<std::uint64_t*>(at)) {}

  void clear(int ranks) const noexcept { std::fill_n(words_, 2 + ranks, 0); }
  std::uint64_t ranks() const noexcept { return words_[0]; }
  std::uint64_t oldest() const noexcept { return words_[1]; }
  std::uint64_t newest(int rank) const noexcept { return words_[2 + rank]; }
  void add(int rank, std::uint64_t oldest, std::uint64_t newest) const noexcept {
    words_[1] = words_[0] == 0 ? oldest : std::min(words_[1], oldest);
    ++words_[0];
    words_[2 + rank] = newest;
  }
  // Of other ranks.
  void add(const RelayHeader& part, int ranks) const noexcept {
    if (part.ranks() == 0) return;
    words_[1] = words_[0] == 0 ? part.oldest() : std::min(words_[1], part.oldest());
    words_[0] += part.ranks();
    for (int rank = 0; rank < ranks; ++rank) words_[2 + rank] |= part.newest(rank);
  }

 private:
  std::uint64_t* words_;
};

struct RelayShape {
  int ranks;  // of the team
  std::size_t bytes;
  int most_children;
  std::uint64_t in_flight;
  bool asks_first;

  std::size_t header_bytes() const noexcept { return RelayHeader::bytes(ranks); }
  std::size_t message_bytes() const noexcept { return header_bytes() + in_lines(bytes); }
  // The result is child 0, child i is 1 + i.
  std::size_t at(std::uint64_t number, int which) const noexcept {
    return (static_cast<std::size_t>(number % in_flight) * (1 + static_cast<std::size_t>(most_children)) +
            static_cast<std::size_t>(which)) *
           message_bytes();
  }
  int id(int sender, std::uint64_t number) const noexcept {
    return sender * static_cast<int>(in_flight) + static_cast<int>(number % in_flight);
  }
  int own_id() const noexcept { return ranks * static_cast<int>(in_flight); }  // one thread of a rank to the other
  SegmentShape segment() const noexcept {
    return {static_cast<std::size_t>(in_flight) * (1 + static_cast<std::size_t>(most_children)) * message_bytes(),
            own_id() + 1, 0, true};
  }
  // Of a tree of so many members.
  static int children_in(int members) noexcept {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(members - 1)));
  }
};

// Neighbours of a member in the tree of a call, as ranks.
struct RelayLinks {
  int parent = -1;       // -1: this is the root
  int number_there = 0;  // as a child of the parent
  std::vector<int> children;

  // Of member `index` of a binomial tree; `rank_of(i)` is member i's rank. Operands in the order of children, the own
  // one first, are those of consecutive members.
  template <class RankOf>
  void set(int index, int members, RankOf rank_of) {
    children.clear();
    parent = index == 0 ? -1 : rank_of(index & (index - 1));
    number_there = index == 0 ? 0 : std::countr_zero(static_cast<unsigned>(index));
    for (int bit = 1; (index & bit) == 0 && index + bit < members; bit *= 2) children.push_back(rank_of(index + bit));
  }
};

class Relay {
 public:
  // Whose calls these are.
  class Host {
   public:
    virtual std::uint64_t room() noexcept = 0;  // the last call whose result has a place to go to
    virtual bool is_wanted(std::uint64_t number) noexcept = 0;
    virtual bool may_take(std::uint64_t number) noexcept = 0;  // what the call must not be executed without is there
    virtual void link(std::uint64_t number, RelayLinks& links) noexcept = 0;
    // Its ranks' contributions, if any; they stay until release().
    virtual void take(std::uint64_t number, const RelayHeader& header,
                      std::vector<const std::byte*>& operands) noexcept = 0;
    virtual void release() noexcept {}
    virtual std::byte* result(std::uint64_t number) noexcept = 0;  // where header and data go
    virtual void publish(std::uint64_t number) noexcept = 0;

   protected:
    ~Host() = default;
  };

  // Over the team's wire. All outlive it.
  Relay(const Team& team, const RelayShape& shape, const Reduction& reduction, Host& host)
      : team_(team),
        shape_(shape),
        reduction_(reduction),
        host_(host),
        calls_(static_cast<std::size_t>(shape.in_flight)),
        parts_(static_cast<std::size_t>(shape.in_flight) * shape.message_bytes()) {}

  // A thread that serves from here on, where the wire permits. A user's operation is called by the program's own
  // threads only.
  static bool may_have_thread(const Team& team, const Reduction& reduction) noexcept {
    return team.wire->serves_two_threads() && reduction.by_table;
  }
  bool has_thread() const noexcept { return service_.has_value(); }
  void start_thread(const char* name) {
    if (!may_have_thread(team_, reduction_)) return;
    service_.emplace(*team_.wire, name, [this] {
      if (!serve()) return false;
      team_.wire->notify(team_.rank, shape_.own_id(), ++served_);  // wakes the rank's own thread
      return true;
    });
    if (!service_->start()) service_.reset();
  }
  void stop_thread() noexcept { service_.reset(); }

  // Any thread. True if it has done something.
  bool serve() noexcept {
    if (is_served_.exchange(true, std::memory_order_acquire)) return false;  // partner below
    bool has_moved = false;
    const std::uint64_t last = host_.room();
    for (std::uint64_t number = finished_ + 1; number <= std::min(last, finished_ + shape_.in_flight); ++number)
      has_moved |= move(number);
    is_served_.store(false, std::memory_order_release);
    return has_moved;
  }
  // Which rank call `number` waits for, as far as this one can tell; -1: none that it knows.
  int awaited(std::uint64_t number) const noexcept {
    return calls_[static_cast<std::size_t>(number % shape_.in_flight)].awaited.load(std::memory_order_relaxed);
  }
  bool are_sources_free() noexcept { return team_.wire->are_sources_free(); }

  // For tests of all schedules: what it goes on by.
  template <class Put>
  void put_state(Put put) const {
    put(finished_);
    for (const Call& call : calls_) put(call.number << 2 | static_cast<std::uint64_t>(call.phase));
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parts_.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, parts_.data() + at, sizeof word);
      put(word);
    }
  }

 private:
  enum class Phase : std::uint8_t { idle, open, sent, finished };
  struct Call {
    std::uint64_t number = 0;
    Phase phase = Phase::finished;
    RelayLinks links;
    std::atomic<int> awaited{-1};
  };
  enum class Word : std::uint8_t { open = 1, data = 2 };
  static std::uint64_t value(std::uint64_t number, Word word) noexcept {
    return 4 * number + static_cast<std::uint64_t>(word);
  }
  bool has_said(int rank, std::uint64_t number, Word word) noexcept {
    return team_.wire->look(shape_.id(rank, number)) >= value(number, word);
  }
  void say(int rank, std::uint64_t number, Word word) noexcept {
    team_.wire->notify(rank, shape_.id(team_.rank, number), value(number, word));
  }
  std::byte* received(std::uint64_t number, int which) noexcept {
    return team_.wire->segment() + shape_.at(number, which);
  }
  std::byte* part(std::uint64_t number) noexcept {
    return parts_.data() + static_cast<std::size_t>(number % shape_.in_flight) * shape_.message_bytes();
  }
  std::size_t bytes_of(std::byte* message) const noexcept {
    return shape_.header_bytes() + (RelayHeader(message).ranks() != 0 ? shape_.bytes : 0);
  }

  // As far as it gets.
  bool move(std::uint64_t number) noexcept {
    Call& call = calls_[static_cast<std::size_t>(number % shape_.in_flight)];
    if (call.number != number) {
      call.number = number;
      call.phase = Phase::idle;
      host_.link(number, call.links);
    }
    bool has_moved = false;
    int awaited = -1;
    if (call.phase == Phase::idle && (host_.is_wanted(number) || is_told(call))) {
      open(call);
      has_moved = true;
    }
    if (call.phase == Phase::open && may_combine(call, awaited)) {
      combine(call);
      has_moved = true;
    }
    if (call.phase == Phase::sent && may_finish(call, awaited)) {
      finish(call);
      has_moved = true;
    }
    call.awaited.store(awaited, std::memory_order_relaxed);
    return has_moved;
  }

  bool is_told(const Call& call) noexcept {
    if (call.links.parent >= 0 && has_said(call.links.parent, call.number, Word::open)) return true;
    return std::any_of(call.links.children.begin(), call.links.children.end(),
                       [&](int child) { return has_said(child, call.number, Word::open); });
  }
  // A leaf's part tells as much.
  void open(Call& call) noexcept {
    for (const int child : call.links.children)
      if (shape_.asks_first || !has_said(child, call.number, Word::open)) say(child, call.number, Word::open);
    const int parent = call.links.parent;
    if (parent >= 0 && (shape_.asks_first || !call.links.children.empty()) &&
        !has_said(parent, call.number, Word::open))
      say(parent, call.number, Word::open);
    call.phase = Phase::open;
  }

  bool may_combine(const Call& call, int& awaited) noexcept {
    if (shape_.asks_first && call.links.parent >= 0 && !has_said(call.links.parent, call.number, Word::open)) {
      awaited = call.links.parent;
      return false;
    }
    for (const int child : call.links.children)
      if (!has_said(child, call.number, Word::data)) {
        awaited = child;
        return false;
      }
    return host_.may_take(call.number) && team_.wire->are_sources_free();
  }
  void combine(Call& call) noexcept {
    const bool is_root = call.links.parent < 0;
    std::byte* const out = is_root ? host_.result(call.number) : part(call.number);
    const RelayHeader header(out);
    header.clear(shape_.ranks);
    operands_.clear();
    host_.take(call.number, header, operands_);
    for (std::size_t i = 0; i < call.links.children.size(); ++i) {
      std::byte* const of_child = received(call.number, 1 + static_cast<int>(i));
      header.add(RelayHeader(of_child), shape_.ranks);
      if (RelayHeader(of_child).ranks() != 0) operands_.push_back(of_child + shape_.header_bytes());
    }
    if (!operands_.empty()) combine_all(reduction_, operands_, out + shape_.header_bytes(), shape_.bytes);
    host_.release();
    if (!is_root)
      team_.wire->write_notify(call.links.parent, shape_.at(call.number, 1 + call.links.number_there), out,
                               bytes_of(out), shape_.id(team_.rank, call.number), value(call.number, Word::data));
    call.phase = Phase::sent;
  }

  bool may_finish(const Call& call, int& awaited) noexcept {
    if (call.links.parent < 0 || has_said(call.links.parent, call.number, Word::data)) return true;
    awaited = call.links.parent;
    return false;
  }
  void finish(Call& call) noexcept {
    std::byte* const result = host_.result(call.number);
    const std::size_t bytes = shape_.header_bytes() + shape_.bytes;
    if (call.links.parent >= 0) std::memcpy(result, received(call.number, 0), bytes);
    // The one with the most members behind it first.
    for (std::size_t i = call.links.children.size(); i-- > 0;)
      team_.wire->write_notify(call.links.children[i], shape_.at(call.number, 0), result, bytes,
                               shape_.id(team_.rank, call.number), value(call.number, Word::data));
    call.phase = Phase::finished;
    while (next_is_finished()) ++finished_;
    host_.publish(call.number);
  }
  bool next_is_finished() const noexcept {
    const Call& call = calls_[static_cast<std::size_t>((finished_ + 1) % shape_.in_flight)];
    return call.number == finished_ + 1 && call.phase == Phase::finished;
  }

  const Team team_;
  const RelayShape shape_;
  const Reduction& reduction_;
  Host& host_;
  std::vector<Call> calls_;
  std::vector<std::byte> parts_;  // by slot: what goes to the parent
  std::vector<const std::byte*> operands_;
  std::uint64_t finished_ = 0;  // all calls up to this one are
  std::atomic<bool> is_served_{false};
  std::uint64_t served_ = 0;  // by the thread
  std::optional<Service> service_;
};

}  // namespace papaya
