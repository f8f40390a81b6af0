#include "algorithms/waiting/wait.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "algorithms/waiting/futex.hpp"

namespace papaya::wait {

namespace {

// How long a rank spins before it gives its core away, in nanoseconds. A context switch out and in again costs 2 to
// 5 us, so spinning that long loses at most a factor of two against knowing the future.
constexpr double spin_short_ns = 3e3;
constexpr double spin_oversubscribed_ns = 1e3;
constexpr double spin_long_ns = 20e3;  // one rank per core: yielding comes later
constexpr double poke_every_ns = 2e3;
constexpr double poke_oversubscribed_every_ns = 10e3;
// A yield that comes back later than this has let somebody compute: ranks that merely arrive take 5 to 100 us, a thread
// that computes keeps the core for its slice of 3 ms. What was seen counts for long, since finding out costs such a
// slice.
constexpr double long_yield_ns = 250e3;
constexpr double long_yield_among_others_ns = 700e3;  // the core has more ranks to pass than this job's
// One that finds nobody else on the core takes 0.3 to 1 us. Other jobs' ranks are seen so, or other containers' on this
// machine.
constexpr double alone_yield_ns = 2e3;
constexpr std::uint32_t yields_remembered = 16;
constexpr double wanted_for_ns = 200e6;
constexpr double long_yields_apart_ns = 20e6;
constexpr double awake_at_most_ns = 20e6;  // then power counts more than the wake-up of an idle core
// Unless the wait is about to end, by what its call site saw before: a rank that is late by as much in each call.
constexpr double awake_around_the_end_ns = 10e6;
constexpr std::uint32_t waits_that_tell = 8;
// Other threads of this process want the core, and yields give it to them. Where they come back at once nevertheless,
// whoever wants a core is kept from another one: a rank that yields counts as load, one that sleeps lets the kernel
// move threads.
constexpr double yielded_in_vain_ns = 100e3;
// Pokes that follow at once, of 0.1 us each with what is around them. Operations of others that need this rank come 0.5
// to 20 us apart.
constexpr int most_pokes_at_once = 400;
constexpr int pokes_when_awoken = 30;  // who waited for this rank to wake up goes on with its next operation
constexpr std::uint64_t first_timeout_after_work_ns = 50'000;
constexpr std::uint64_t first_timeout_ns = 200'000;
constexpr std::uint64_t longest_timeout_ns = 2'000'000;
constexpr std::uint64_t sample_every_ns = 5'000'000;
constexpr std::uint32_t ahead_at_most =
    128;  // events by which a doorbell may be ahead of an awaited one: twice the banks

std::uint64_t cpu_ns(clockid_t clock) noexcept {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// The first thread of a process hands out the work of the others, if it does not do all of it; another one that calls
// MPI was made for that, and the others need not wait for it to compute.
bool is_first_thread() noexcept {
  static thread_local const bool is_first = syscall(SYS_gettid) == getpid();  // gettid() is of glibc 2.30
  return is_first;
}

thread_local long sleeps_in_waits = 0;  // of this thread, in the kernel's queue

bool is_about_to_end(const Site& site, std::uint64_t waited_ticks, std::uint64_t around_ticks) noexcept {
  return site.waits >= waits_that_tell && waited_ticks + around_ticks >= site.expected_ticks &&
         waited_ticks <= site.expected_ticks + around_ticks;
}

}  // namespace

bool does_yield_give_a_slice() noexcept {
  utsname system;
  int major = 0, minor = 0;
  return uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 6));
}

void Policy::configure(Mode mode, const Machine& machine, void (*progress)()) noexcept {
  mode_ = mode;
  machine_ = machine;
  progress_ = progress;
  oversubscribed_.store(machine.ranks > machine.cores, std::memory_order_relaxed);
}

void Policy::set_stall(double seconds, Stalled report) noexcept {
  stalled_ = report;
  stall_ticks_ = seconds > 0 ? to_ticks(seconds * 1e9) : 0;
}

void Policy::wake(Doorbell& bell, std::uint32_t event) const noexcept {
  // One wake-up an event: the first to move the word calls the kernel, the others find it moved.
  std::uint32_t seen = bell.completed.load(std::memory_order_relaxed);
  while (static_cast<std::int32_t>(event - seen) > 0)
    if (bell.completed.compare_exchange_weak(seen, event, std::memory_order_release, std::memory_order_relaxed)) {
      futex_wake_all(bell.completed);
      return;
    }
}

void Policy::stir(Doorbell& bell) noexcept {
  futex_wake_all(bell.completed);
}

void Policy::give_way() noexcept {
  sched_yield();
}

// Measures how much of a core the other threads of this process took since the last sample on this thread, publishes
// it for the node and counts whether all that wants to run fits.
void Policy::sample_load(std::uint64_t now) noexcept {
  // More ranks than cores: oversubscribed whatever else runs, and what else runs is seen by how long yields take.
  if (machine_.ranks > machine_.cores) return;
  static thread_local std::uint64_t last_wall = 0;
  static thread_local std::uint64_t last_others = 0;
  const std::uint64_t wall = static_cast<std::uint64_t>(static_cast<double>(now) * machine_.ns_per_tick);
  if (wall - last_wall < sample_every_ns) return;
  const std::uint64_t process = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t thread = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t others = process > thread ? process - thread : 0;
  const bool first = last_wall == 0;
  const double share =
      first ? 0 : static_cast<double>(others - std::min(others, last_others)) / static_cast<double>(wall - last_wall);
  last_wall = wall;
  last_others = others;
  if (first) return;
  if (!is_first_thread()) sample_pauses(now);
  if (share > 0.25) {
    wanted_until_ticks_.store(now + to_ticks(wanted_for_ns), std::memory_order_relaxed);
    own_wanted_until_ticks_.store(now + to_ticks(wanted_for_ns), std::memory_order_relaxed);
  }
  if (machine_.board == nullptr) {
    oversubscribed_.store(machine_.ranks > machine_.cores || machine_.ranks + share > machine_.cores + 0.25,
                          std::memory_order_relaxed);
    return;
  }
  machine_.board[machine_.rank].busy_percent.store(static_cast<std::uint32_t>(share * 100), std::memory_order_relaxed);
  std::uint64_t total = 0;
  for (int rank = 0; rank < machine_.ranks; ++rank)
    total += 100 + machine_.board[rank].busy_percent.load(std::memory_order_relaxed);
  oversubscribed_.store(total > static_cast<std::uint64_t>(machine_.cores) * 100 + 25, std::memory_order_relaxed);
}

// Does this thread sleep between its calls, as one that collects work for them does? Then it is in no hurry.
void Policy::sample_pauses(std::uint64_t now) noexcept {
  static thread_local long last_pauses = 0;
  rusage usage;
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return;
  const long pauses = usage.ru_nvcsw - sleeps_in_waits;
  if (pauses > last_pauses) paced_until_ticks_.store(now + to_ticks(wanted_for_ns), std::memory_order_relaxed);
  last_pauses = pauses;
}

Policy::Wait::Wait(Policy& policy, Site& site, Doorbell& bell, std::uint32_t event, void* stall_context) noexcept
    : policy_(policy),
      site_(site),
      bell_(bell),
      event_(event),
      stall_context_(stall_context),
      begin_(clock::ticks()),
      awake_from_(begin_),
      timeout_ns_(first_timeout_ns) {
  double spin_ns = spin_long_ns;
  switch (policy.mode_) {
    case Mode::spin:
      spin_ns = 1e18;
      break;
    case Mode::yield:
    case Mode::block:
      spin_ns = spin_oversubscribed_ns;
      break;
    case Mode::automatic:
      if (policy.machine_.ranks > policy.machine_.cores || policy.shares_core()) {
        // Whoever is awaited may be next on this very core.
        spin_ns = 0;
      } else if (policy.oversubscribed()) {
        // A wait that is usually over soon is worth a little of the core; a long one is not.
        const double expected_ns = static_cast<double>(site.expected_ticks) * policy.machine_.ns_per_tick;
        spin_ns = site.waits > 0 && expected_ns < spin_short_ns ? spin_short_ns : spin_oversubscribed_ns;
      }
      break;
  }
  spin_until_ = begin_ + policy.to_ticks(spin_ns);
  next_poke_ = begin_ + policy.to_ticks(poke_every_ns);
}

bool Policy::Wait::step() noexcept {
  cpu_pause();
  const std::uint64_t now = clock::ticks();
  // A counter may jump back (a virtual machine that was moved): the poke that it puts off for ever is due.
  if (now >= next_poke_ || next_poke_ - now > policy_.to_ticks(2 * poke_oversubscribed_every_ns)) {
    poke();
    check_stall(now);
    // What is waited for may have come meanwhile: an MPI that knows itself oversubscribed yields inside its progress.
    if (policy_.mode_ != Mode::block) return false;
  }
  if (now < spin_until_) return false;
  if (policy_.mode_ == Mode::spin) return false;
  if (pokes_left_ > 0) return false;
  if (policy_.mode_ == Mode::block) return true;
  if (policy_.mode_ == Mode::automatic && !may_stay_awake(now)) return true;
  sched_yield();
  const std::uint64_t end = clock::ticks();
  policy_.note_yield(now, end);
  yielded_in_vain_ = end - now > policy_.to_ticks(long_yield_ns) ? 0 : yielded_in_vain_ + (end - now);
  return false;
}

// One long yield may have been the machine's own doing; if another follows soon, somebody computes.
void Policy::note_yield(std::uint64_t begin, std::uint64_t end) noexcept {
  const std::uint32_t shared = shared_yields_.load(std::memory_order_relaxed);
  const std::uint32_t here = end - begin > to_ticks(alone_yield_ns) ? 256 : 0;
  shared_yields_.store(shared - shared / yields_remembered + here / yields_remembered, std::memory_order_relaxed);
  if (end - begin <= to_ticks(machine_.ranks > machine_.cores ? long_yield_ns : long_yield_among_others_ns)) return;
  const std::uint64_t last = last_long_yield_ticks_.load(std::memory_order_relaxed);
  if (last != 0 && begin - last < to_ticks(long_yields_apart_ns))
    wanted_until_ticks_.store(end + to_ticks(wanted_for_ns), std::memory_order_relaxed);
  last_long_yield_ticks_.store(end, std::memory_order_relaxed);
}

// Staying awake must take nothing from anybody.
bool Policy::Wait::may_stay_awake(std::uint64_t now) const noexcept {
  if (now - awake_from_ >= policy_.to_ticks(awake_at_most_ns) &&
      !is_about_to_end(site_, now - begin_, policy_.to_ticks(awake_around_the_end_ns)))
    return false;
  if (now >= policy_.wanted_until_ticks_.load(std::memory_order_relaxed)) return true;
  // What computes are this process's own threads, and this one collects work of theirs: yielding gives them their whole
  // slices, where each wake-up of a sleeper would interrupt them. One that makes call after call waits for each.
  return policy_.machine_.yield_gives_a_slice && policy_.machine_.ranks <= policy_.machine_.cores &&
         !is_first_thread() && now < policy_.own_wanted_until_ticks_.load(std::memory_order_relaxed) &&
         now < policy_.paced_until_ticks_.load(std::memory_order_relaxed) &&
         yielded_in_vain_ < policy_.to_ticks(yielded_in_vain_ns);
}

// `cold`: the first after a sleep. Where others compute meanwhile it finds its caches empty, and takes long for that.
void Policy::Wait::poke(bool cold) noexcept {
  const std::uint64_t before = clock::ticks();
  policy_.poke();
  const std::uint64_t after = clock::ticks();
  const bool shared = policy_.oversubscribed() || policy_.shares_core();
  // A poke that took long has probably moved data, and more will come: look again soon. (Not at once: an MPI that knows
  // itself oversubscribed yields inside its progress, which takes long as well.)
  const double took_ns = static_cast<double>(after - before) * policy_.machine_.ns_per_tick;
  if (took_ns > 1e3) timeout_ns_ = std::min(timeout_ns_, first_timeout_ns);
  if (pokes_left_ > 0) --pokes_left_;
  // Where ranks share cores, pokes take long for other reasons, and whoever sends may need this very core.
  if (policy_.may_share_core()) {
    pokes_left_ = 0;
  } else {
    if (!cold) policy_.poke_cost_.learn(took_ns);
    const int more = cold && shared ? 0 : policy_.poke_cost_.pokes_to_follow(took_ns);
    pokes_left_ = std::min(pokes_left_ + more, most_pokes_at_once);
    if (more > 0 && pokes_left_ >= PokeCost::much_work) {
      awake_from_ = after;
      timeout_ns_ = first_timeout_after_work_ns;
    }
  }
  next_poke_ =
      pokes_left_ > 0 ? after : after + policy_.to_ticks(shared ? poke_oversubscribed_every_ns : poke_every_ns);
}

void Policy::Wait::look_again() noexcept {
  spin_until_ = clock::ticks() + policy_.to_ticks(spin_oversubscribed_ns);
}

std::uint32_t Policy::Wait::announce() noexcept {
  policy_.sample_load(clock::ticks());
  bell_.sleepers.fetch_add(1, std::memory_order_relaxed);
  publish_before_look(bell_);
  std::uint32_t seen = bell_.completed.load(std::memory_order_acquire);
  // The word moves only when somebody sleeps. After a billion events without a sleeper it is brought near again, so
  // that the signed distance below keeps its meaning when the numbers wrap around. It may be ahead of
  // this event, but by fewer rounds than an algorithm has banks.
  const std::uint32_t distance = event_ - seen;
  if (distance > 0x40000000u && distance < std::uint32_t{0} - ahead_at_most &&
      bell_.completed.compare_exchange_strong(seen, event_ - 1, std::memory_order_acq_rel))
    seen = event_ - 1;
  return seen;
}

bool Policy::Wait::may_sleep(std::uint32_t seen) const noexcept {
  return static_cast<std::int32_t>(event_ - seen) > 0;
}

void Policy::Wait::block(std::uint32_t seen) noexcept {
  policy_.sleeps_.fetch_add(1, std::memory_order_relaxed);
  const Sleep sleep = futex_wait(bell_.completed, seen, timeout_ns_);
  if (sleep != Sleep::none) ++sleeps_in_waits;
  if (sleep == Sleep::until_woken) policy_.wakes_.fetch_add(1, std::memory_order_relaxed);
  timeout_ns_ = std::min(timeout_ns_ * 2, longest_timeout_ns);
}

void Policy::Wait::leave() noexcept {
  bell_.sleepers.fetch_sub(1, std::memory_order_relaxed);
  poke(true);
  const std::uint64_t now = clock::ticks();
  if (!policy_.may_share_core()) {
    pokes_left_ = std::max(pokes_left_, pokes_when_awoken);
    next_poke_ = now;
  }
  check_stall(now);
}

void Policy::Wait::finish() noexcept {
  const std::uint64_t now = clock::ticks();
  site_.learn(now - begin_);
  policy_.sample_load(now);
}

void Policy::Wait::check_stall(std::uint64_t now) noexcept {
  if (stall_reported_ || policy_.stall_ticks_ == 0 || now < begin_ || now - begin_ < policy_.stall_ticks_) return;
  stall_reported_ =
      policy_.stalled_ == nullptr ||
      policy_.stalled_(stall_context_, static_cast<double>(now - begin_) * policy_.machine_.ns_per_tick * 1e-9);
}

}  // namespace papaya::wait
