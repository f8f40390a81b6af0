// Shared memory of a team in numbered rounds: what the algorithms deposit in and take from.
//
// A call is one round, or several if its message is larger than a slot. All ranks count rounds alike, from 1, by sizes
// that MPI makes equal. The rounds take turns on `banks` banks; a bank has `slots` slots, one for each rank that
// deposits. A slot is a cell of two cache lines, which holds the flag and messages up to 112 bytes (48 of them on the
// flag's own line), and memory for larger ones. That lies in the team's region, or, if each rank has a slot, is
// borrowed from the depositor's arena for the call (transport/deposit_arena.hpp); then the cell says where it is,
// beside the flag.
//
// Flag: round * 65536 + progress, written by the slot's depositor alone, released after the bytes it announces and
// acquired by readers. It only grows, and 48 bits of rounds do not wrap.
// Released: each rank says in a line of its own before which round it needs nothing any more, which returns the credit
// for the banks of those rounds. Whoever deposits waits until all readers have released the bank's last round, so that
// fast ranks may run ahead, by up to `banks` rounds.
// Fallback: a rank that must not wait for a bank, or for memory, does not deposit but falls back to MPI's messages, and
// says so (falls_back).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

#include "algorithms/team.hpp"
#include "algorithms/transport/deposit_arena.hpp"
#include "algorithms/transport/messages.hpp"
#include "algorithms/waiting/wait.hpp"
#include "base/prefetch.hpp"

namespace papaya {

class Rounds {
 public:
  static constexpr std::size_t line_bytes = 64;
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t cell_bytes = 128;    // two lines: the adjacent-line prefetcher fetches them in pairs
  static constexpr std::size_t inline_offset = 16;  // the strictest alignment of an operand: long double's
  static constexpr std::size_t inline_bytes = cell_bytes - inline_offset;

  static constexpr std::size_t prefetched_bytes = 512;

  // Progress of a round: chunks deposited so far, at most `most_chunks`; then one of these.
  static constexpr std::uint64_t most_chunks = 0xfffd;
  static constexpr std::uint64_t complete = 0xfffe;
  static constexpr std::uint64_t declined = 0xffff;  // complete, and the depositor declines

  struct Shape {
    int ranks;
    int banks;                    // a power of two
    int slots;                    // per bank
    std::size_t slot_bytes;       // beside the cell; a multiple of line_bytes
    std::size_t extra_bytes = 0;  // per bank, for the algorithm's own bookkeeping
    bool borrows = false;  // the slots' memory is not in the region; a slot for each rank, or one for whoever deposits
    Lifetime lifetime = Lifetime::call;  // of what is deposited in borrowed memory
    std::size_t own_bytes =
        0;  // borrowing: of a slot that is there all the same, for short messages; a multiple of line_bytes

    std::size_t extras() const { return round_up(extra_bytes, cell_bytes); }
    std::size_t head() const { return (2 + static_cast<std::size_t>(ranks)) * cell_bytes; }
    std::size_t cells() const { return head() + static_cast<std::size_t>(banks * slots) * cell_bytes; }
    std::size_t control() const { return cells() + static_cast<std::size_t>(banks) * extras(); }
    std::size_t in_region() const { return borrows ? own_bytes : slot_bytes; }  // of a slot
    std::size_t memory() const { return borrows ? control() : round_up(control(), page_bytes); }
    std::size_t total() const { return memory() + static_cast<std::size_t>(banks * slots) * in_region(); }
  };

  // How much a team borrows at most whose deposits may stay. Little, so that many find some; more for messages of many
  // rounds, whose ranks would wait for each other at each bank.
  static constexpr std::size_t borrowed_for(std::size_t capacity) {
    return std::size_t{capacity > 65536 ? 1024u : 256u} << 10;
  }

  static int banks_for(std::size_t wanted, std::size_t least, std::size_t most) {
    return static_cast<int>(std::bit_floor(std::clamp(wanted, least, most)));
  }

  // What each of a rank's slots gets of so many bytes.
  static constexpr std::size_t own_slot(std::size_t own_bytes, int banks) {
    return own_bytes / static_cast<std::size_t>(banks) / line_bytes * line_bytes;
  }
  static constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }
  // Into how many pieces of at most `piece` bytes; and the bytes of as many whole elements as fit in `bytes`. A
  // division costs as much as the other arithmetic of a short call.
  static constexpr std::size_t pieces(std::size_t bytes, std::size_t piece) {
    return bytes <= piece ? bytes != 0 : (bytes + piece - 1) / piece;
  }
  static constexpr std::size_t whole_elements(std::size_t bytes, std::size_t element) {
    return std::has_single_bit(element) ? bytes & ~(element - 1) : bytes / element * element;
  }

  Rounds(const Team& team, const Shape& shape)
      : team_(team),
        shape_(shape),
        memory_(team.region + shape.memory()),
        window_(shape.borrows ? team.deposits->window() : nullptr),
        unborrowed_bytes_(shape.borrows ? std::max(inline_bytes, shape.own_bytes) : ~std::size_t{0}),
        cells_(team.region + shape.head()),
        loan_(shape.borrows ? team.deposits : nullptr, {team.region + 2 * cell_bytes, cell_bytes, team.size},
              shape.banks, shape.lifetime) {
    assert(std::has_single_bit(static_cast<unsigned>(shape.banks)));
    assert(!shape.borrows || shape.slots == team.size || (shape.slots == 1 && shape.own_bytes == 0));
    // Who finds no memory and must not wait has messages to fall back to.
    assert(shape.lifetime == Lifetime::call || team.messages != nullptr);
  }

  const Team& team() const noexcept { return team_; }
  const Shape& shape() const noexcept { return shape_; }

  // Before a call that deposits up to `bytes` in a round; give_back() ends it. False: there is no memory just now, and
  // this rank declines.
  bool borrow(std::size_t bytes, wait::Site& site) noexcept {
    return bytes <= unborrowed_bytes_ || loan_.borrow(bytes, *team_.policy, site);
  }
  // The rounds of the call were those before `next`.
  void give_back(std::uint64_t next) noexcept {
    if (shape_.borrows) loan_.give_back(next);
  }

  // Where this rank deposits a message of `bytes` in its slot, or in another, once that is free.
  std::byte* own_data(std::uint64_t round, std::size_t bytes) const noexcept {
    return own_data(round, team_.rank, bytes);
  }
  std::byte* own_data(std::uint64_t round, int slot, std::size_t bytes) const noexcept {
    if (bytes > unborrowed_bytes_) {
      // Ordered by the flag; the last who read it has released that round.
      std::uint64_t& offset = offset_of(round, slot);
      if (offset != loan_.where(round)) offset = loan_.where(round);
      return window_ + loan_.where(round);
    }
    return data(round, slot, bytes);
  }
  // Where a message of `bytes` lies, to be asked once its slot's flag has announced some of it.
  std::byte* data(std::uint64_t round, int slot, std::size_t bytes) const noexcept {
    if (bytes <= inline_bytes) return cell(round, slot) + inline_offset;
    if (bytes > unborrowed_bytes_) return window_ + offset_of(round, slot);
    // All banks of a slot side by side: with a slot for each rank its pages are those that the rank has touched first.
    return memory_ + (static_cast<std::size_t>(slot) * static_cast<std::size_t>(shape_.banks) + bank_of(round)) *
                         shape_.in_region();
  }
  std::byte* extra(std::uint64_t round) const noexcept {
    return team_.region + shape_.cells() + bank_of(round) * shape_.extras();
  }

  void publish(std::uint64_t round, int slot, std::uint64_t progress) const noexcept {
    // Release: partner of the acquire in progress_of; the deposited bytes come first.
    flag(round, slot).store(round << 16 | progress, std::memory_order_release);
  }
  // Takes the first lines of this rank's slot back from who has read them, ahead of a deposit of `bytes`. Only when
  // nobody reads them any more, and in a call that has borrowed as much.
  void prefetch(std::uint64_t round, int slot, std::size_t bytes) const noexcept {
    prefetch_for_write(cell(round, slot));
    if (bytes <= line_bytes - inline_offset) return;
    if (bytes <= inline_bytes) return prefetch_for_write(cell(round, slot) + line_bytes);
    const std::byte* const at = bytes > unborrowed_bytes_ ? window_ + loan_.where(round) : data(round, slot, bytes);
    for (std::size_t line = 0; line < std::min(bytes, prefetched_bytes); line += line_bytes)
      prefetch_for_write(at + line);
  }
  // What the slot's depositor has done of `round`: 0 before it came.
  std::uint64_t progress_of(std::uint64_t round, int slot) const noexcept {
    // Acquire: partner of the release in publish.
    const std::uint64_t value = flag(round, slot).load(std::memory_order_acquire);
    return value >> 16 < round ? 0 : value >> 16 > round ? complete : value & 0xffff;
  }
  bool is_complete(std::uint64_t round, int slot) const noexcept {
    return flag(round, slot).load(std::memory_order_acquire) >= (round << 16 | complete);  // acquire: as above
  }
  std::atomic<std::uint64_t>& flag(std::uint64_t round, int slot) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(cell(round, slot));
  }

  // The call that begins with `round` has been entered by this rank: for is_missing.
  void enter(std::uint64_t round) noexcept {
    awaited_ = round;
    mine().entered.store(round, std::memory_order_relaxed);
  }
  // Is it not this rank that the others wait for? While a bank is awaited those are missing that still need
  // it.
  bool has_entered(int rank) const noexcept {
    const Member& m = member(rank);
    return (bank_awaited_ ? m.released : m.entered).load(std::memory_order_relaxed) >= awaited_;
  }

  // This rank needs nothing of rounds before `round` any more.
  void return_credit(std::uint64_t round) noexcept {
    // Release: partner of the acquire in least_released; this rank's reads come first.
    mine().released.store(round, std::memory_order_release);
    // A sleeper that just missed this finds out by its timeout.
    if (freed().sleepers.load(std::memory_order_relaxed) != 0)
      team_.policy->ring(freed(), static_cast<std::uint32_t>(least_released()));
  }
  // Every rank has said that it needs nothing before `round`: what it read elsewhere may be changed.
  void wait_until_released(std::uint64_t round, wait::Site& site, void* stalled) noexcept {
    const auto ready = [&] { return least_released() >= round; };
    if (!ready())
      team_.policy->until(
          site, freed(), static_cast<std::uint32_t>(round), ready, [] { return false; }, stalled);
    all_have_released(round);
  }

  // This rank could not take what others offered in `round`: to be said before return_credit().
  void refuse(std::uint64_t round) noexcept { mine().refused.store(round, std::memory_order_relaxed); }
  // After wait_until_released, on all ranks alike.
  bool anybody_refused(std::uint64_t round) const noexcept {
    for (int rank = 0; rank < team_.size; ++rank)
      if (member(rank).refused.load(std::memory_order_relaxed) == round) return true;
    return false;
  }

  // Every rank is known to need nothing before `round`.
  void all_have_released(std::uint64_t round) noexcept { known_released_ = std::max(known_released_, round); }

  // May the bank of `round` be written?
  bool is_free(std::uint64_t round) noexcept {
    if (round < known_released_ + static_cast<std::uint64_t>(shape_.banks)) return true;
    known_released_ = std::max(known_released_, least_released());
    return round < known_released_ + static_cast<std::uint64_t>(shape_.banks);
  }
  void wait_until_free(std::uint64_t round, wait::Site& site, void* stalled) noexcept {
    const auto ready = [&] { return is_free(round) && known_released_ >= fallback_end_; };
    if (ready()) return;
    // The rounds in which this rank fell back come to their end first: no deposit lies among them.
    const auto banks = static_cast<std::uint64_t>(shape_.banks);
    const std::uint64_t needed = std::max(round < banks ? 0 : round - banks + 1, fallback_end_);
    const std::uint64_t awaited = awaited_;
    awaited_ = needed;
    bank_awaited_ = true;
    team_.policy->until(
        site, freed(), static_cast<std::uint32_t>(needed),
        [&] {
          if (known_released_ < fallback_end_) known_released_ = std::max(known_released_, least_released());
          return ready();
        },
        [] { return false; }, stalled);
    awaited_ = awaited;
    bank_awaited_ = false;
  }

  // For a rank that may leave before others come, and a call of one round. True: the bank is still in use, or there is
  // no memory to borrow for `bytes`, so that it does not deposit, and those who want its data get them from MPI. It
  // falls back until everybody has come past all the rounds that it did so in, so that one interval tells of them all.
  bool falls_back(std::uint64_t round, std::size_t bytes) noexcept { return falls_back(round, round + 1, bytes); }
  // The same of a call of several rounds, up to `end`, once the bank of the first is free; `bytes` go in a round.
  bool falls_back(std::uint64_t round, std::uint64_t end, std::size_t bytes) noexcept {
    const auto may_deposit = [&] {
      if (known_released_ < fallback_end_) known_released_ = std::max(known_released_, least_released());
      return known_released_ >= fallback_end_ && is_free(round);
    };
    const auto has_memory = [&] { return bytes <= unborrowed_bytes_ || loan_.borrow_now(bytes); };
    const bool is_free_now = may_deposit();
    if (is_free_now && has_memory()) return false;
    // In a tight loop the others are but a moment behind, which is less than a message would take. How far they are
    // is seen now and then.
    const std::uint64_t times = fallback_end_ - mine().fallback_begin.load(std::memory_order_relaxed);
    if (!is_free_now && (known_released_ >= fallback_end_ || std::has_single_bit(times) || times % 64 == 0) &&
        team_.policy->is_soon(may_deposit, bytes) && has_memory())
      return false;
    Member& m = mine();
    // Nobody looks at the last interval any more.
    if (known_released_ >= fallback_end_) m.fallback_begin.store(round, std::memory_order_relaxed);
    fallback_end_ = end;
    // Release: partner of the acquire in fell_back.
    m.fallback_end.store(fallback_end_, std::memory_order_release);
    // Release: partner of the acquire in times_fallen_back.
    fallbacks().fetch_add(1, std::memory_order_release);
    return true;
  }
  // Has `rank` not deposited in `round` but fallen back?
  bool fell_back(std::uint64_t round, int rank) const noexcept {
    const Member& m = member(rank);
    return m.fallback_end.load(std::memory_order_acquire) > round &&
           m.fallback_begin.load(std::memory_order_relaxed) <= round;
  }
  // What such a rank sends instead, to a root that may be asleep in this call. It is woken once the message is on its
  // way, so that it finds it, and before MPI has let it go, since for that the root may have to receive it.
  void send_as_message(std::uint64_t round, int root, const void* data, std::size_t bytes,
                       wait::Site& site) const noexcept {
    Messages& messages = *team_.messages;
    if (!has_entered(root) || !is_anybody_asleep()) return messages.send(root, data, bytes);
    messages.begin_send(root, data, bytes);
    wait::Policy::stir(bell());
    // The root receives it soon, maybe on this core, and rings no bell: this rank gives its core away, but does not
    // sleep.
    const auto give_way = [] {
      std::this_thread::yield();
      return true;
    };
    team_.policy->until(
        site, bell(), static_cast<std::uint32_t>(round), [&] { return messages.are_sent(); }, give_way, nullptr);
  }
  // How often any rank has: as long as it stays the same there is nothing new to see.
  std::uint64_t times_fallen_back() const noexcept { return fallbacks().load(std::memory_order_acquire); }

  // Rung with the number of a round once all of it is there.
  wait::Doorbell& bell() const noexcept { return *reinterpret_cast<wait::Doorbell*>(team_.region); }
  // Asked after publish() by every depositor. If it is true for several who deposit last, one at least sees all the
  // flags.
  bool is_anybody_asleep() const noexcept {
    if (!team_.policy->is_anybody_asleep(bell())) return false;
    wait::Policy::publish_before_look(bell());
    return true;
  }
  void ring(std::uint64_t round) const noexcept { team_.policy->ring(bell(), static_cast<std::uint32_t>(round)); }

 private:
  struct alignas(cell_bytes) Member {
    std::atomic<std::uint64_t> released;
    // Relaxed: a hint. Stall reports name by it who is missing, and tree_bcast chooses by it from whom to copy, which
    // is right either way.
    std::atomic<std::uint64_t> entered;
    std::atomic<std::uint64_t> refused;  // relaxed: ordered by `released`
    // Rounds in which this rank has fallen back. On a line that is hardly ever written, since those who wait for its
    // deposit look here as well.
    alignas(line_bytes) std::atomic<std::uint64_t> fallback_begin;  // relaxed: ordered by `fallback_end`
    std::atomic<std::uint64_t> fallback_end;
  };
  static_assert(sizeof(Member) == cell_bytes);

  std::size_t bank_of(std::uint64_t round) const noexcept {
    return round & static_cast<std::uint64_t>(shape_.banks - 1);
  }
  std::size_t number_of(std::uint64_t round, int slot) const noexcept {
    return bank_of(round) * static_cast<std::size_t>(shape_.slots) + static_cast<std::size_t>(slot);
  }
  std::byte* cell(std::uint64_t round, int slot) const noexcept { return cells_ + number_of(round, slot) * cell_bytes; }
  // Where in the node's window the slot's borrowed memory is. Written by the slot's depositor.
  std::uint64_t& offset_of(std::uint64_t round, int slot) const noexcept {
    return *reinterpret_cast<std::uint64_t*>(cell(round, slot) + sizeof(std::uint64_t));
  }
  wait::Doorbell& freed() const noexcept { return *reinterpret_cast<wait::Doorbell*>(team_.region + cell_bytes); }
  std::atomic<std::uint64_t>& fallbacks() const noexcept {  // on the line beside the doorbell's
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(team_.region + cell_bytes + line_bytes);
  }
  Member& member(int rank) const noexcept {
    return *reinterpret_cast<Member*>(team_.region + (2 + static_cast<std::size_t>(rank)) * cell_bytes);
  }
  Member& mine() const noexcept { return member(team_.rank); }
  std::uint64_t least_released() const noexcept {
    std::uint64_t least = ~std::uint64_t{0};
    for (int rank = 0; rank < team_.size; ++rank)
      least = std::min(least, member(rank).released.load(std::memory_order_acquire));  // partner: return_credit
    return least;
  }

  const Team team_;
  const Shape shape_;
  std::byte* const memory_;  // of the slots in the region
  std::byte* const window_;  // the node's, where slots are borrowed
  const std::size_t unborrowed_bytes_;
  std::byte* const cells_;
  Loan loan_;
  std::uint64_t known_released_ = team_.first_round;
  std::uint64_t awaited_ = 0;
  bool bank_awaited_ = false;       // `awaited_` is what all must have released, not entered
  std::uint64_t fallback_end_ = 0;  // of the last interval in which this rank fell back
};

}  // namespace papaya
