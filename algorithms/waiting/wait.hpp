// How a rank waits: the one place for all algorithms (design section 5). A wait spins a little, then pokes MPI's
// progress (another rank may sit in MPI_Send to this one), then keeps its core by yielding or gives it away by
// sleeping. Two questions decide. Does anybody else want the core? More ranks than cores, the process's own busy
// threads, and a yield that took long say so. How long will this wait be, by what its call site saw before?
//
// As long as pokes find work, a waiting rank stays awake and pokes again at once, as MPI itself would: others do
// operations that need it.
//
// While nobody computes, waiting ranks pass the cores between them by yielding: a core that falls idle takes 50 to 100
// us to come back on a virtual machine, a sleeper 5 to 10. As soon as somebody does compute, waiting ranks sleep until
// the event, and whoever completes it wakes them all at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/clock.hpp"

namespace papaya::wait {

// Looks, with a pause of some 20 ns after each, before a wait counts as one.
inline constexpr int eager_looks = 16;

inline void cpu_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // what other spin loops use there: `yield` takes no time on most processors
#endif
}

enum class Mode : std::uint8_t { automatic, spin, yield, block };
// As PAPAYA_WAIT names it.
constexpr Mode mode_of(std::string_view name) noexcept {
  return name == "spin" ? Mode::spin : name == "yield" ? Mode::yield : name == "block" ? Mode::block : Mode::automatic;
}

// Where ranks sleep until an event of a team. `completed` counts events; it is also the word the kernel looks at.
// Owner: whoever completes the event. `sleepers`: each sleeper adds and removes itself.
struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> completed;
  std::atomic<std::uint32_t> sleepers;
};

// What a call site has taught: the expected length of its waits.
struct Site {
  std::uint64_t expected_ticks = 0;
  std::uint32_t waits = 0;

  void learn(std::uint64_t ticks) noexcept {
    expected_ticks = waits == 0 ? ticks : expected_ticks - expected_ticks / 8 + ticks / 8;
    ++waits;
  }
  void learn_nothing() noexcept { expected_ticks -= expected_ticks / 8; }  // there was no wait worth a clock reading
};

// One rank's line on the node's board: how many threads of its process want a core besides the one that waits.
struct alignas(64) Load {
  std::atomic<std::uint32_t> busy_percent;
};

// Tells the pokes that found work from those that did not, by how long they take: MPI has no function that says so.
// What a poke takes that finds nothing is the longest of eight (an MPI may look at some things in every eighth only),
// the least of such groups lately.
class PokeCost {
 public:
  // Of a poke with warm caches. Any thread may call it; one that comes between two others' spoils a group, no more.
  void learn(double ns) noexcept {
    const float took = static_cast<float>(ns);
    const float longest = std::max(longest_.load(std::memory_order_relaxed), took);
    const std::uint32_t pokes = pokes_.load(std::memory_order_relaxed) + 1;
    pokes_.store(pokes, std::memory_order_relaxed);
    longest_.store(pokes % group == 0 ? 0 : longest, std::memory_order_relaxed);
    if (pokes % group != 0) return;
    const float before = usual_.load(std::memory_order_relaxed);
    usual_.store(std::min({longest, before * rise + 1, highest_usual_ns}), std::memory_order_relaxed);
  }
  // How many pokes should follow at once: none after one that found nothing. Chance makes up to one in a hundred look
  // as if it had found a little, so each such one is worth fewer than that. Before a first group has been learned
  // nothing is told.
  int pokes_to_follow(double ns) const noexcept {
    const double usual = usual_.load(std::memory_order_relaxed);
    if (pokes_.load(std::memory_order_relaxed) < group || ns < 1.5 * usual + 20 || ns > lost_core_ns) return 0;
    return ns < 4 * usual + 50 ? some_work : much_work;
  }
  static constexpr int some_work = 50;
  static constexpr int much_work = 150;

 private:
  static constexpr std::uint32_t group = 8;
  static constexpr float rise = 1 + 1 / 64.f;  // a group: finds work everywhere for a while, or MPI has more to look at
  static constexpr float highest_usual_ns =
      400;  // whatever finds work in every poke, moving large data say, stays above
  static constexpr double lost_core_ns = 200e3;  // the thread was not running all the time
  std::atomic<float> usual_{highest_usual_ns};
  std::atomic<float> longest_{0};
  std::atomic<std::uint32_t> pokes_{0};
};

// True where a thread that yields lets the others of its core run for a time slice each, however little it has run
// itself. So Linux does since 6.6 (EEVDF); before (CFS) one that has run little comes back at once, again and again.
bool does_yield_give_a_slice() noexcept;

// The stall reporter, called after a long wait; false: there is nothing to say yet.
using Stalled = bool (*)(void* context, double seconds);

class Policy {
 public:
  struct Machine {
    int cores = 1;          // on this node, for the ranks of this job
    int ranks = 1;          // of this job on this node
    Load* board = nullptr;  // one line per rank of the node, in shared memory; may be null
    int rank = 0;           // this process's line
    double ns_per_tick = 1.0;
    bool yield_gives_a_slice = does_yield_give_a_slice();
  };

  void configure(Mode mode, const Machine& machine, void (*progress)()) noexcept;
  void set_stall(double seconds, Stalled report) noexcept;

  // True if the node has more runnable threads than cores, as far as this process knows.
  bool oversubscribed() const noexcept { return oversubscribed_.load(std::memory_order_relaxed); }
  // True if others than this job's ranks run on this process's core, by how long its yields take.
  bool shares_core() const noexcept { return shared_yields_.load(std::memory_order_relaxed) > 128; }
  std::uint64_t to_ticks(double ns) const noexcept { return static_cast<std::uint64_t>(ns / machine_.ns_per_tick); }
  double to_ns(std::uint64_t ticks) const noexcept { return static_cast<double>(ticks) * machine_.ns_per_tick; }
  // A poke is one call of MPI's progress engine, which moves messages and operations on that need this rank.
  void poke() const noexcept {
    if (progress_ != nullptr) progress_();
  }

  // Waits until `ready()` is true. `before_sleep()` runs before the rank gives its core away and returns true if it
  // changed something that makes another look worthwhile. `event` is the doorbell's value when what is waited for has
  // happened: the rank sleeps only while the bell has not reached it. `stall_context` goes to the stall reporter.
  template <class Ready, class BeforeSleep>
  void until(Site& site, Doorbell& bell, std::uint32_t event, Ready&& ready, BeforeSleep&& before_sleep,
             void* stall_context) noexcept {
    // When all ranks are there, the wait is one or two cache-line transfers. Between looks a pause: each look that
    // comes too early takes the line from under the rank that is about to write it. Where more ranks than cores want to
    // run, whoever is awaited may need this very core.
    for (int looks = oversubscribed() ? 1 : eager_looks; looks > 0; --looks) {
      if (ready()) return site.learn_nothing();
      cpu_pause();
    }
    Wait wait(*this, site, bell, event, stall_context);
    while (!ready())
      if (wait.step()) before_sleep() ? wait.look_again() : wait.sleep(ready);
    wait.finish();
  }

  // For a rank that must not wait: true if `ready()` becomes true within a moment, some microseconds and about twice
  // what copying `bytes` takes, which is what the others may be busy with. On a shared core some turns at least; no
  // more once that time is over, since a turn may be another program's slice.
  template <class Ready>
  bool is_soon(Ready&& ready, std::size_t bytes = 0) const noexcept {
    const bool is_shared = oversubscribed() || shares_core();
    const std::uint64_t end = clock::ticks() + to_ticks(static_cast<double>(bytes) / 2);
    for (std::size_t looks = 1; looks <= (is_shared ? 4 + bytes / 1024 : 64 + bytes / 256); ++looks) {
      if (looks > 4 && is_shared && clock::ticks() > end) return false;
      is_shared ? give_way() : cpu_pause();
      if (ready()) return true;
    }
    return false;
  }

  // Wakes every rank sleeping on the bell: to be called after the event is visible (a release store).
  void ring(Doorbell& bell, std::uint32_t event) const noexcept {
    if (is_anybody_asleep(bell)) wake(bell, event);
  }

  // Makes the sleepers look again, though their event has not come: something else that they take has. One that is just
  // about to sleep may miss it, and finds out by its timeout.
  static void stir(Doorbell& bell) noexcept;

  // Partner of itself: of two ranks that both write, pass here and read, one at least sees what the other wrote. A
  // fence, not a read-modify-write: the bell's line stays with all who read it.
  static void publish_before_look([[maybe_unused]] Doorbell& bell) noexcept {
#if defined(__SANITIZE_THREAD__)
    bell.sleepers.fetch_add(0, std::memory_order_seq_cst);  // the sanitizer knows no fences
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }

  // After publishing. The sleeper adds itself, then looks once more, then sleeps. Where sleeping is likely a fence
  // orders this rank's publishing before its reading; elsewhere a sleeper that just missed it finds out by its timeout.
  bool is_anybody_asleep(Doorbell& bell) const noexcept {
    if (oversubscribed()) publish_before_look(bell);
    return bell.sleepers.load(std::memory_order_relaxed) != 0;
  }

  // Counted for the tests and the debug log.
  std::uint64_t sleeps() const noexcept {
    return sleeps_.load(std::memory_order_relaxed);
  }
  // Of them, those that another rank has ended.
  std::uint64_t wakes() const noexcept {
    return wakes_.load(std::memory_order_relaxed);
  }

 private:
  // The part of a wait that is longer than a few cache-line transfers.
  class Wait {
   public:
    Wait(Policy& policy, Site& site, Doorbell& bell, std::uint32_t event, void* stall_context) noexcept;
    bool step() noexcept;  // one pause, poke or yield; true when it is time to sleep
    void look_again() noexcept;
    template <class Ready>
    void sleep(Ready&& ready) noexcept {
      const std::uint32_t seen = announce();
      if (!ready() && may_sleep(seen)) block(seen);
      leave();
    }
    void finish() noexcept;

   private:
    std::uint32_t announce() noexcept;
    bool may_sleep(std::uint32_t seen) const noexcept;
    void block(std::uint32_t seen) noexcept;
    void leave() noexcept;
    void poke(bool cold = false) noexcept;
    bool may_stay_awake(std::uint64_t now) const noexcept;
    void check_stall(std::uint64_t now) noexcept;

    Policy& policy_;
    Site& site_;
    Doorbell& bell_;
    const std::uint32_t event_;
    void* const stall_context_;
    const std::uint64_t begin_;
    std::uint64_t spin_until_;  // ticks
    std::uint64_t next_poke_;
    std::uint64_t awake_from_;           // the begin, or when work kept coming
    int pokes_left_ = 0;                 // to do at once: work was found a moment ago, or may be
    std::uint64_t yielded_in_vain_ = 0;  // ticks, since the last yield that let another compute
    std::uint64_t timeout_ns_;
    bool stall_reported_ = false;
  };

  void wake(Doorbell& bell, std::uint32_t event) const noexcept;
  static void give_way() noexcept;
  void sample_load(std::uint64_t now) noexcept;
  void sample_pauses(std::uint64_t now) noexcept;
  void note_yield(std::uint64_t begin, std::uint64_t end) noexcept;
  bool may_share_core() const noexcept {
    return machine_.ranks > machine_.cores || shares_core();
  }
  Mode mode_ = Mode::automatic;
  Machine machine_;
  void (*progress_)() = nullptr;
  Stalled stalled_ = nullptr;
  std::uint64_t stall_ticks_ = 0;  // 0: never
  std::atomic<bool> oversubscribed_{false};
  std::atomic<std::uint64_t> wanted_until_ticks_{0};      // others computed on this process's core a moment ago
  std::atomic<std::uint64_t> own_wanted_until_ticks_{0};  // and they were this process's own threads
  std::atomic<std::uint64_t> paced_until_ticks_{0};       // a thread made for MPI slept between its calls
  std::atomic<std::uint64_t> last_long_yield_ticks_{0};
  std::atomic<std::uint32_t> shared_yields_{0};  // of 256, lately: those in which another ran on this core
  std::atomic<std::uint64_t> sleeps_{0};
  std::atomic<std::uint64_t> wakes_{0};
  PokeCost poke_cost_;
};

}  // namespace papaya::wait
