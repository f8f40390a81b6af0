// Where a rank deposits what does not travel with its flags: a fixed part of the node's window, the rank's own, lent to
// its calls. Memory thus follows the ranks of a node, of which each is in one blocking collective per thread, and not
// their communicators, of which there may be any number.
//
// A team keeps its extent from call to call, so that a program in a loop deposits in the same warm pages. When another
// team needs the memory, an extent is taken from a team that is in no call, once all its members have said that they
// need nothing of it any more. Where every rank waits for every other, they will say so soon and without this rank: it
// could leave the call only after all had come to it, and each borrows before the others can see it come. So it may
// wait for them.
//
// What ranks deposit that leave before others come (Lifetime::unbounded) may stay unread for ever long. Nobody waits
// for such an extent, and who deposits there waits for no other. They lie at the end of the arena alone, beyond what is
// promised, so that the rest is always there for those who may wait, or soon.
//
// Extents are powers of two and aligned to their size; the largest is a half of the arena (a quarter with
// MPI_THREAD_MULTIPLE) or less. So as many calls as there are such extents find memory at once, however the smaller
// extents lie. The system's memory for the first half is promised (node_window.hpp), which is enough for one call, or
// two; that for the second is there unless regions have taken it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "algorithms/waiting/wait.hpp"

namespace papaya {

// The members of a team, as those who read what is deposited. Each says in a line of its own before which round, or
// call, it needs nothing any more.
struct Readers {
  const std::byte* first = nullptr;  // of lines that begin with an atomic number of 64 bits
  std::size_t line_bytes = 0;
  int count = 0;

  bool have_released(std::uint64_t round) const noexcept {
    for (int member = 0; member < count; ++member) {
      const auto& released =
          *reinterpret_cast<const std::atomic<std::uint64_t>*>(first + static_cast<std::size_t>(member) * line_bytes);
      // Acquire: partner of the release with which a member says so; its reads come first.
      if (released.load(std::memory_order_acquire) < round) return false;
    }
    return true;
  }
};

class Loan;

// How long a team's deposits may stay after its rank has left the call.
enum class Lifetime : std::uint8_t { call, unbounded };

class DepositArena {
 public:
  static constexpr std::size_t granule_bytes = 8192;
  static constexpr std::size_t least_largest_bytes =
      128 << 10;  // two slots of the largest message that goes in one fragment
  static constexpr std::size_t most_largest_bytes = 2 << 20;
  static constexpr std::size_t most_bytes = 16 << 20;
  static constexpr std::size_t least_window_bytes =
      8 << 20;  // half of less is too little for algorithms with memory of their own

  // An arena's size in a window of so many bytes for so many ranks. 0: the window is too small to be shared out.
  static std::size_t bytes_for(std::size_t window_bytes, int ranks) noexcept;
  // Of that, how much is promised.
  static constexpr std::size_t promised_of(std::size_t bytes) noexcept {
    return bytes / 2 / granule_bytes * granule_bytes;
  }
  // The largest extent. `concurrent`: several threads may be in calls at once.
  static std::size_t largest_for(std::size_t bytes, bool concurrent) noexcept;

  // Where deposits begin whose lifetime is unbounded: there are as many of the largest extents before it as calls at
  // once should find, or all but one.
  static constexpr std::size_t unbounded_from(std::size_t bytes, std::size_t largest, bool concurrent) noexcept {
    return std::max(promised_of(bytes), std::min((concurrent ? 4 : 2) * largest, bytes - largest));
  }

  struct Area {
    std::byte* window = nullptr;  // the node's, as this process sees it
    std::size_t offset = 0;       // of this rank's arena
    std::size_t bytes = 0;
    bool concurrent = false;
    // Makes pages present; false if there is no memory for them. Null: they are.
    bool (*populate)(std::byte* begin, std::size_t bytes, bool promised) noexcept = nullptr;
    // Gives back a region that was kept, see keep().
    void (*release)(std::int64_t offset, std::size_t bytes) noexcept = nullptr;
  };
  DepositArena() = default;
  ~DepositArena() { close(); }
  DepositArena(const DepositArena&) = delete;
  DepositArena& operator=(const DepositArena&) = delete;

  bool open(const Area& area) noexcept;  // false: no memory for its list
  void close() noexcept;                 // all loans have ended
  bool exists() const noexcept { return area_.window != nullptr; }
  bool is_concurrent() const noexcept { return area_.concurrent; }
  std::byte* window() const noexcept { return area_.window; }
  std::size_t largest_bytes() const noexcept { return largest_bytes_; }

  // A team is gone whose members' lines are in [begin, begin + bytes). If one of them may still read what this rank
  // deposited for it the region is kept, and released later; true then.
  bool keep(const std::byte* begin, std::int64_t offset, std::size_t bytes) noexcept;

 private:
  friend class Loan;

  struct Extent {
    std::size_t first;  // granule
    std::size_t count;
    Loan* owner;        // null: retired, until its readers have released
    Readers readers{};  // of a retired extent
    std::uint64_t needed = 0;
    Lifetime lifetime = Lifetime::call;
    Extent* next = nullptr;  // retired
  };
  struct Kept {
    const std::byte* begin;
    std::int64_t offset;
    std::size_t bytes;
  };
  enum class Answer : std::uint8_t { lent, soon, none };
  enum class State : std::uint8_t { returned, awaited, in_use };

  Answer lend(Loan& loan, std::size_t slot_bytes, std::size_t bytes) noexcept;
  void end(Loan& loan) noexcept;
  void retire(Loan& loan) noexcept;
  void reap() noexcept;
  void free(Extent* extent) noexcept;
  bool is_free(std::size_t first, std::size_t count) const noexcept;
  State make_free(std::size_t first, std::size_t count) noexcept;
  bool is_present(std::size_t first, std::size_t count) const noexcept;
  bool make_present(std::size_t first, std::size_t count) noexcept;
  std::uint64_t uses() const noexcept;
  Answer find(std::size_t count, Lifetime lifetime, std::size_t& first) noexcept;
  Answer search(std::size_t count, Lifetime lifetime, std::size_t& first) noexcept;

  Area area_{};
  std::size_t largest_bytes_ = 0;
  std::mutex mutex_;                // guards what follows
  std::vector<Extent*> extents_;    // by granule
  std::vector<bool> present_;       // granules whose pages there are
  std::uint64_t lends_ = 0;         // how often a loan has been asked for
  std::uint64_t next_try_[2] = {};  // when to ask for pages again: for those beyond what is promised, and for those
  std::uint64_t next_search_ = 0;   // when to look again for an extent of this size for deposits that may stay
  std::size_t searched_count_ = 0;
  std::vector<Kept> kept_;
  Extent* retired_ = nullptr;
  std::size_t cursor_ = 0;  // granule behind the latest loan: from there on are the oldest
  wait::Doorbell never_rung_{};
};

// A team's memory in the arena of this rank: `slots` of them, which its rounds take in turn. Used by the team's own
// thread.
class Loan {
 public:
  Loan(DepositArena* arena, const Readers& readers, int slots, Lifetime lifetime = Lifetime::call) noexcept
      : arena_(arena), readers_(readers), slots_(static_cast<std::size_t>(slots)), lifetime_(lifetime) {}
  ~Loan() {
    if (arena_ != nullptr) arena_->end(*this);
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  // Slots of at least `bytes`, until give_back(). False: calls of other threads have what there is, or the system has
  // no memory.
  bool borrow(std::size_t bytes, wait::Policy& policy, wait::Site& site) noexcept {
    return (reclaim() && bytes <= usable_bytes_) || borrow_anew(bytes, policy, site);
  }
  // The same without waiting.
  bool borrow_now(std::size_t bytes) noexcept {
    return (reclaim() && bytes <= usable_bytes_) || ask(bytes) == DepositArena::Answer::lent;
  }
  // Nobody needs them once all members have released `round`.
  void give_back(std::uint64_t round) noexcept {
    if (state_.load(std::memory_order_relaxed) != State::in_use) return;
    needed_ = round;
    state_.store(State::idle, std::memory_order_release);  // partner: the compare-exchange in claim
  }
  // Where the slot of a round is in the node's window; while it is borrowed.
  std::uint64_t where(std::uint64_t round) const noexcept {
    return offset_ + (static_cast<std::size_t>(round) & (slots_ - 1)) * slot_bytes_;
  }

 private:
  friend class DepositArena;
  // Who moves it: idle -> in_use and back: the team's thread. idle -> claimed -> none or idle: whoever has the arena's
  // mutex. none -> in_use: the team's thread with the mutex.
  enum class State : std::uint8_t { none, idle, claimed, in_use };

  bool reclaim() noexcept {
    if (!arena_->is_concurrent()) {
      if (state_.load(std::memory_order_relaxed) != State::idle) return false;
      state_.store(State::in_use, std::memory_order_relaxed);
      return true;
    }
    // Before the state, which hands it to who looks for memory: see DepositArena::uses(). Only the team's thread
    // writes.
    uses_.store(uses_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    State expected = State::idle;
    return state_.compare_exchange_strong(expected, State::in_use, std::memory_order_acq_rel,
                                          std::memory_order_relaxed);
  }
  bool claim() noexcept {
    State expected = State::idle;
    // Acquire: partner of the release in give_back, for `needed_`, and of that in reclaim, for `uses_`.
    return state_.compare_exchange_strong(expected, State::claimed, std::memory_order_acquire,
                                          std::memory_order_acquire);
  }
  bool borrow_anew(std::size_t bytes, wait::Policy& policy, wait::Site& site) noexcept;
  DepositArena::Answer ask(std::size_t bytes) noexcept;
  // Beside the beginning of a page, where there is room: buffers of the program begin there.
  void settle(std::uint64_t extent, std::size_t bytes) noexcept {
    const std::size_t aside = slot_bytes_ - bytes >= 128 ? 128 : 0;
    offset_ = extent + aside;
    usable_bytes_ = slot_bytes_ - aside;
  }

  DepositArena* const arena_;
  const Readers readers_;
  const std::size_t slots_;  // a power of two
  const Lifetime lifetime_;
  std::atomic<State> state_{State::none};
  std::atomic<std::uint64_t> uses_{0};      // how often it was reclaimed, or tried to be, where threads are concurrent
  DepositArena::Extent* extent_ = nullptr;  // guarded by the arena's mutex
  std::uint64_t needed_ = 0;
  std::uint64_t offset_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t usable_bytes_ = 0;  // of a slot, from where() on
};

}  // namespace papaya
