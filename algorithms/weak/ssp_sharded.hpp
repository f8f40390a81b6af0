// Stale synchronous parallel (SSP) allreduce over shards: Faustino 2020, 3.3 and 3.4.
//
// The message is divided into shards, and each shard has a rank that keeps it. A rank sends each part of its
// contribution to who keeps that shard. The keeper holds the newest contribution of every rank, combines them in the
// order of ranks, and sends the result, a state of the shard, to all. A call returns the newest states it has, once
// every contribution in them is at most `slack` clocks older than the call. Others' may be newer than the call. A
// state is named by the clock of its oldest contribution, its age.
//
// Four variants. `consistent` 1 (the thesis's sync): all shards of a result hold the same contributions. A rank sends
// when it has the states of all shards that its last contribution went into; a keeper makes a state when it has a new
// contribution of every rank. 0 (async): a rank sends a part when the keeper has told it that the one before has been
// taken; a keeper makes a state whenever that rises in age. `thread` 0: a rank keeps its shard inside its calls; 1: a
// thread of papaya's does all the time (service.hpp), where the wire serves two threads and the reduction is papaya's
// own. Ranks with and without a thread work together. One thread's data are SspShard, the other's SspSharded; between
// them there is only the wire.
//
// The thesis adds contributions up at the shards, so it must lose none. Here a rank's contribution replaces the one
// before, as in ssp_hypercube. Whoever wants sums of all contributions brings running totals: what is not sent, since a
// keeper has not taken the last part yet, is in the next total. portions() says which clock's is in a result.
//
// What keeps this from going wrong, for any number of ranks:
//
//  1. Contributions. Of each rank a keeper has two slots, used in turn. It reads the newest that it has taken. The
//     rank writes the next into the other slot, and only once it has heard that the newest one before has been taken.
//
//  2. States, `consistent` 0. States rise in age. With each part a rank tells the newest state of that shard that it
//     has seen; it never reads an older one again. A keeper overwrites a state only if all ranks have told of a newer
//     one. Let v be the rank that has told of the oldest, and x the clock of its newest part taken. Rank v had left
//     call x-1, so it had seen a state of age x-1-slack at least, and no state is newer than x, for it contains a
//     contribution of v. So those that may be read, and a new one, are at most slack + 2, which is the number of slots.
//
//  3. States, `consistent` 1. All keepers make the same states: the n-th of every rank's n-th contribution. A rank
//     reads the newest state that has come of all shards, n, and has sent n+1 contributions at most. So there is no
//     n+2 yet, and two slots are enough, used in turn; a shard's newest is n or n+1.
//
//  4. Who has left call c has seen states of age c - slack of every shard; each was sent to all ranks in the step in
//     which it was made. So nobody in call c needs anything more of who has left it.
//
//  5. No rank waits for good. Suppose that some state of age c - slack is never made, and all ranks come to call c.
//     By 4 none has left it, so all keep their shards, and all writes arrive. `consistent` 0: the keeper lacks a
//     contribution of a rank w whose part x < c - slack it has taken. It has told so: with a state, or at once unless w
//     must await the next state anyhow. That comes: of who holds up its age, the part is in the last state, so it has
//     been told and sends c. Hence w sends c as well. `consistent` 1: let n be the newest state, of less age. No rank
//     has sent its contribution of call c as its n-th or before: it had left call c-1 with a state n-1 or older, of age
//     c-1-slack, and as clocks rise with every contribution, state n were of age c - slack. So each has one to send as
//     its n+1-th once it has state n, and there is a state n+1.
//
//  6. What is sent from this rank's memory is not changed before the wire says that it has left; by 1 and 2 it has
//     arrived by then. A rank waits for that only where 5 would
//     have it send, hence while no rank has left the call; else it sends later.
//
//  7. Slack 0: before a keeper makes the state of age c, a rank that has sent its part of call c sends no other. So all
//     contributions in it are of call c, on all ranks alike, in every run.
//
// All ranks make the same number of calls. A rank that ends stops keeping its shard (4) and tells each other one what
// it has sent it last; once it has heard the same of all and has got that, nothing is under way to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/weak/service.hpp"
#include "algorithms/weak/weak.hpp"

namespace papaya {

// How a message is divided, and what lies where in each rank's segment. The same on all ranks.
class SspShards {
 public:
  struct Choice {
    std::uint64_t slack;
    bool is_consistent;
    std::size_t least_bytes;  // of a shard, as far as there are more
  };
  SspShards(int ranks, std::size_t count, std::size_t element_bytes, const Choice& choice) noexcept;

  int ranks() const noexcept { return ranks_; }
  std::uint64_t slack() const noexcept { return choice_.slack; }
  bool is_consistent() const noexcept { return choice_.is_consistent; }
  std::uint64_t slots() const noexcept { return choice_.is_consistent ? 2 : choice_.slack + 2; }

  // Shard i is kept by rank i. None for a message without elements.
  int size() const noexcept { return shards_; }
  std::size_t first(int shard) const noexcept;  // element
  std::size_t elements(int shard) const noexcept { return first(shard + 1) - first(shard); }
  std::size_t first_byte(int shard) const noexcept { return first(shard) * element_bytes_; }
  std::size_t bytes(int shard) const noexcept { return elements(shard) * element_bytes_; }

  // Notifications. Those of contributions are for who keeps the shard.
  int state_id(int shard) const noexcept { return shard; }
  int taken_id(int shard) const noexcept { return shards_ + shard; }
  int closing_id(int rank) const noexcept { return 2 * shards_ + rank; }
  int part_id(int rank) const noexcept { return 2 * shards_ + ranks_ + rank; }

  SegmentShape segment() const noexcept;
  static std::size_t closing_at(int rank) noexcept { return static_cast<std::size_t>(rank) * 64; }
  // A state: of each rank by how much its contribution is newer than the oldest, then the data.
  std::size_t state_at(int shard, std::uint64_t slot) const noexcept;
  std::size_t header_bytes() const noexcept { return (static_cast<std::size_t>(ranks_) * 4 + 15) / 16 * 16; }
  std::size_t part_at(int rank, std::uint64_t turn) const noexcept;

 private:
  std::size_t part_bytes() const noexcept { return in_lines(bytes(0)); }  // the first shard is a longest one
  std::size_t state_bytes() const noexcept { return in_lines(header_bytes() + bytes(0)); }

  const int ranks_;
  const std::size_t count_;
  const std::size_t element_bytes_;
  const Choice choice_;
  const int shards_;
};

// What a notification says: a clock, and up to 22 bits besides. A part: of its contribution's clock, how much older
// the newest state was that its rank had seen (0: none), and whose turn of two slots it is. A state: its age, its slot.
struct SspPart {
  std::uint64_t clock;
  std::uint64_t seen;  // the age of the state; 0: none
  std::uint64_t turn;

  std::uint64_t value() const noexcept { return clock << 22 | (seen == 0 ? 0 : clock - seen) << 1 | turn; }
  static SspPart of(std::uint64_t value) noexcept {
    const std::uint64_t clock = value >> 22;
    const std::uint64_t behind = value >> 1 & ((1u << 21) - 1);
    return {clock, behind == 0 ? 0 : clock - behind, value & 1};
  }
};
struct SspState {
  std::uint64_t age;  // 0: none
  std::uint64_t slot;

  std::uint64_t value() const noexcept { return age << 22 | slot; }
  static SspState of(std::uint64_t value) noexcept { return {value >> 22, value & ((1u << 22) - 1)}; }
};

// The shard that this rank keeps.
class SspShard {
 public:
  SspShard(const Team& team, const SspShards& shards, const Reduction& reduction);

  // Takes the parts that have come, and sends what is to be sent; waits for nothing. True if it has done something.
  bool serve() noexcept;

  // The last that has been told.
  std::uint64_t state() const noexcept { return state_.value(); }
  std::uint64_t taken(int rank) const noexcept { return from_[static_cast<std::size_t>(rank)].acknowledged; }

  // For tests of all schedules: what it goes on by, besides the wire.
  template <class Put>
  void put_state(Put put) const {
    put(state_.value());
    for (const From& from : from_) put(from.part.value()), put(from.told), put(from.acknowledged);
    for (const Slot& slot : slots_) put(slot.age << 1 | std::uint64_t{slot.is_under_way});
  }

 private:
  struct From {
    SspPart part;                // the newest that has been taken
    std::uint64_t told;          // its rank knows of the part of this clock
    std::uint64_t acknowledged;  // the last of them without a state
  };
  struct Slot {
    std::uint64_t age = 0;  // of the state that is there
    bool is_under_way = false;
  };

  bool is_due(std::uint64_t age) const noexcept;
  std::optional<std::uint64_t> free_slot() noexcept;
  void make_state(const SspState& state) noexcept;
  void combine(std::byte* out) noexcept;
  void acknowledge() noexcept;

  const Team team_;
  const SspShards& shards_;
  const Reduction& reduction_;
  const std::size_t bytes_;
  SspState state_{};  // the last that was made
  std::vector<From> from_;
  std::vector<const std::byte*> parts_;  // the newest of each rank
  std::vector<Slot> slots_;
};

class SspSharded final : public Weak {
 public:
  enum class Keeper : std::uint8_t {
    calls,   // the shard is served inside the calls
    thread,  // by a thread, if it can be: has_thread()
    caller,  // by whoever calls serve()
  };

  // Every call has so many elements. The reduction, the same on all ranks, outlives this.
  SspSharded(const Team& team, const SspShards& shards, const Reduction& reduction, Keeper keeper);
  ~SspSharded() override;
  SspSharded(const SspSharded&) = delete;
  SspSharded& operator=(const SspSharded&) = delete;

  const SspShards& shards() const noexcept { return shards_; }
  // By shard, but for `consistent`.
  std::span<const WeakPortion> portions() const noexcept override { return portions_; }
  // The clock of this rank's contribution in a shard of the last result. With `consistent` that is status().own.
  std::uint64_t own_of(int shard) const noexcept { return sides_[static_cast<std::size_t>(shard)].own; }
  bool has_thread() const noexcept { return service_.has_value(); }
  // Of a rank without a shard: whether it would have a thread.
  std::int64_t in_force(std::size_t parameter, std::int64_t asked) const noexcept override;
  void stop_thread() noexcept override { service_.reset(); }

  // Of ranks that keep no shard: nothing to do.
  bool serve() noexcept { return shard_ && shard_->serve(); }

  bool is_missing(int rank) const override;
  // Asked after the last call, and until it is true: no other call follows.
  bool may_end() noexcept override;

  // As SspShard's.
  template <class Put>
  void put_state(Put put) const {
    put(clock_ << 1 | std::uint64_t{is_closed_});
    put(oldest_);
    for (const Side& side : sides_) {
      put(side.state.value()), put(side.sent.value()), put(side.taken << 1 | std::uint64_t{side.is_under_way});
    }
    if (shard_) shard_->put_state(put);
  }

 private:
  // Of this rank towards a shard.
  struct Side {
    SspState state{};         // the newest that has come
    SspPart sent{};           // the newest
    std::uint64_t taken = 0;  // the newest of which it has heard so
    std::uint64_t own = 0;    // in the last result
    bool is_under_way = false;
  };
  // What a rank has sent another one last.
  struct Closing {
    std::uint64_t part;
    std::uint64_t state;
    std::uint64_t taken;
  };

  Steps steps(Operands operands) override;
  bool has_come(const Operands& operands) noexcept;
  // Of the present call. 0 is the clock of none.
  bool is_fresh(std::uint64_t clock) const noexcept { return clock != 0 && clock + shards_.slack() >= clock_; }
  void look_at_states() noexcept;
  const std::byte* usable_state(int shard) const noexcept;
  std::uint64_t own_in(int shard) const noexcept;
  void send_parts(const Operands& operands) noexcept;
  bool may_send(int shard) noexcept;
  void send_part(int shard, const std::byte* operand) noexcept;
  void take_result(std::byte* receive) noexcept;

  bool deals_with(int rank) const noexcept;
  void close() noexcept;
  bool has_heard_all() noexcept;
  bool has_heard(int rank) noexcept;

  const SspShards shards_;
  const Keeper keeper_;
  const bool may_have_thread_;
  std::uint64_t clock_;
  std::uint64_t oldest_ = 0;        // the least age of the shards' newest states
  std::vector<Side> sides_;         // by shard
  std::vector<std::byte> sources_;  // the parts, where the wire reads them later
  bool has_sources_ = false;        // some of them are under way
  std::optional<SspShard> shard_;
  std::optional<Service> service_;
  std::vector<Closing> closings_;
  std::vector<WeakPortion> portions_;
  bool is_closed_ = false;
};

}  // namespace papaya
