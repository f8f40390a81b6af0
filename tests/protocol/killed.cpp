// A rank is killed at every step that the others can see, with processes as ranks: single-stepped through a call until
// the shared memory has changed once, twice and so on. Every algorithm of the registry, the victim first and last to
// arrive. What must hold afterwards: the others get no wrong result out of what it left half done, do not crash, and go
// on asking MPI for progress while they wait, by which they end as they would natively. Exit status 77 where ptrace is
// not permitted.
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/transport/shared_notified.hpp"
#include "base/clock.hpp"
#include "tests/protocol/call.hpp"

namespace papaya {

namespace {

constexpr int ranks = 3;
constexpr std::size_t slot = 1024;
constexpr int first_calls = 3;  // before the one in which the victim is killed
constexpr long most_steps = 100000;
constexpr int marker = SIGUSR2;  // the victim is about to enter that call, or has left it

// What the processes tell each other. Zero at the beginning of each life.
struct alignas(64) Told {
  std::atomic<int> entered;  // calls
  std::atomic<long> pokes;
  std::atomic<int> wrong;
};
struct Board {
  Told rank[ranks];
  std::atomic<int> dead;
};

struct Case {
  const Descriptor* descriptor;
  int victim;
  bool first;  // the others enter the call once the victim is dead
  bool other;  // reductions with an operation of the user's, exchanges by single copy
  std::size_t count;

  std::string text() const {
    return std::string(name_of(descriptor->collective)) + " " + std::string(descriptor->name) + ", rank " +
           std::to_string(victim) + (first ? " first, " : " last, ") + std::to_string(count * sizeof(Matrix)) +
           (other ? " bytes, other way" : " bytes");
  }
};

template <class T>
T* shared(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::abort();
  return static_cast<T*>(at);
}

// The ranks' shared memory, watched from outside. Only pages that somebody has touched are looked at: a life uses a few
// of hundreds, and looks come once an instruction.
class Watched {
 public:
  explicit Watched(std::size_t bytes)
      : bytes_((bytes + page - 1) / page * page),
        region_(shared<std::byte>(bytes_)),
        before_(bytes_),
        is_resident_(bytes_ / page) {}
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { munmap(region_, bytes_); }

  std::byte* region() { return region_; }
  // All zero, and no page resident.
  void clear() {
    if (madvise(region_, bytes_, MADV_REMOVE) != 0) std::abort();
    std::memset(before_.data(), 0, bytes_);
  }
  // Whether there is another byte anywhere than at the last look.
  bool has_changed() {
    if (mincore(region_, bytes_, is_resident_.data()) != 0) std::abort();
    bool changed = false;
    for (std::size_t i = 0; i < is_resident_.size(); ++i) {
      if ((is_resident_[i] & 1) == 0) continue;
      std::byte* const now = region_ + i * page;
      std::byte* const then = before_.data() + i * page;
      if (std::memcmp(then, now, page) == 0) continue;
      std::memcpy(then, now, page);
      changed = true;
    }
    return changed;
  }

 private:
  static inline const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes_;
  std::byte* const region_;
  std::vector<std::byte> before_;
  std::vector<unsigned char> is_resident_;
};

Board* board;
Told* mine;

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Until `ready`, but not for ever: false.
template <class Ready>
bool wait_for(Ready ready) {
  for (const double end = now() + 10; !ready();) {
    if (now() > end) return false;
    usleep(100);
  }
  return true;
}

// The tracer and the victim take turns, instruction by instruction: on one core that is several times as fast as waking
// another one each time.
cpu_set_t all_cores;
void share_a_core() {
  if (sched_getaffinity(0, sizeof all_cores, &all_cores) != 0) std::abort();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
}

// A rank's process: calls for ever.
[[noreturn]] void live(const Case& c, int rank, std::byte* region) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  mine = &board->rank[rank];
  const bool is_victim = rank == c.victim;
  if (!is_victim) sched_setaffinity(0, sizeof all_cores, &all_cores);
  if (is_victim && ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
  wait::Policy policy;
  policy.configure(wait::Mode::block, {.cores = 1, .ranks = ranks, .board = nullptr, .rank = rank, .ns_per_tick = 1.0},
                   [] { mine->pokes.fetch_add(1); });
  std::vector<std::int64_t> values;
  for (const Parameter& parameter : c.descriptor->parameters)
    values.push_back(c.other && parameter.name == "single_copy_bytes" ? 1 : parameter.fallback);
  const bool arrival_order = c.descriptor->needs_arrival_order;
  Team team{rank, ranks, arrival_order, region, &policy, read_memory};
  const Nodes one_node = nodes_by(std::vector<int>(ranks));
  team.nodes = &one_node;
  std::unique_ptr<SharedNotified> wire;
  if (c.descriptor->segment != nullptr)
    wire = std::make_unique<SharedNotified>(region, team.rank, *team.policy,
                                            c.descriptor->segment(team.layout(), slot, values));
  team.wire = wire.get();
  team.region += shared_bytes(*c.descriptor, team.layout(), slot, values).wire;
  const auto prepared = c.descriptor->prepare(team, slot, values);
  const Reduction reduction = reduction_for(arrival_order || c.descriptor->predefined_only, !c.other);
  wait::Site site;
  for (int number = 0;; ++number) {
    // The root is rank 0 in the call that matters and all others.
    Call call(c.descriptor->collective, reduction, rank, ranks, number * ranks, c.count, false);
    if (c.first && !is_victim && number == first_calls)
      while (board->dead.load() == 0) usleep(50);
    mine->entered.store(number + 1);
    if (is_victim && number == first_calls) raise(marker);
    prepared->run(call.operands(), site);
    if (is_victim && number == first_calls) raise(marker);
    if (!call.is_right()) mine->wrong.fetch_add(1);
  }
}

struct Life {
  bool whole;  // the victim has left the call
  long steps;
  bool fine;
};

// Kills the victim after its change number `last`, from 0 for none.
Life die_at(const Case& c, int last, Watched& watched) {
  std::memset(static_cast<void*>(board), 0, sizeof *board);
  watched.clear();
  std::vector<pid_t> pids(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    pids[static_cast<std::size_t>(rank)] = fork();
    if (pids[static_cast<std::size_t>(rank)] == 0) live(c, rank, watched.region());
  }
  const pid_t victim = pids[static_cast<std::size_t>(c.victim)];
  Life life{.whole = false, .steps = 0, .fine = true};
  const auto fail = [&](const char* what) {
    if (life.fine) std::printf("FAILED: %s, killed after change %d: %s\n", c.text().c_str(), last, what);
    life.fine = false;
  };
  const auto all_others = [&](auto&& holds) {
    for (int rank = 0; rank < ranks; ++rank)
      if (rank != c.victim && !holds(board->rank[rank], rank)) return false;
    return true;
  };
  long pokes[ranks];
  const auto has_poked = [&](const Told& told, int rank) { return told.pokes.load() > pokes[rank] + 1; };
  const auto note_pokes = [&] {
    for (int rank = 0; rank < ranks; ++rank) pokes[rank] = board->rank[rank].pokes.load();
  };

  int status = 0;
  waitpid(victim, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) std::exit(77);
  if (!WIFSTOPPED(status) || WSTOPSIG(status) != marker) fail("the victim never came");
  if (!c.first) {
    // All others wait inside the call, or as many calls ahead as they may be.
    if (!wait_for([&] { return all_others([](const Told& told, int) { return told.entered.load() > first_calls; }); }))
      fail("another never came");
    note_pokes();
    if (!wait_for([&] { return all_others(has_poked); })) fail("another does not wait");
  }
  watched.has_changed();
  for (int changes = 0; changes < last && life.fine;) {
    ptrace(PTRACE_SINGLESTEP, victim, nullptr, nullptr);
    waitpid(victim, &status, 0);
    if (!WIFSTOPPED(status) || (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != marker)) fail("the victim crashed");
    life.whole = WSTOPSIG(status) == marker;
    if (life.whole) break;
    if (++life.steps > most_steps) fail("the victim does not come to an end");
    changes += watched.has_changed();
  }
  kill(victim, SIGKILL);
  waitpid(victim, &status, 0);
  note_pokes();
  board->dead.store(1);
  if (!wait_for([&] { return all_others(has_poked); })) fail("another does not ask MPI for progress");
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = pids[static_cast<std::size_t>(rank)];
    if (pid == victim) continue;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) fail("another crashed");
    if (board->rank[rank].wrong.load() != 0) fail("a wrong result");
  }
  return life;
}

bool walk(const Case& c) {
  std::vector<std::int64_t> values;
  for (const Parameter& parameter : c.descriptor->parameters) values.push_back(parameter.fallback);
  const Nodes one_node = nodes_by(std::vector<int>(ranks));
  const std::size_t bytes = shared_bytes(*c.descriptor, {ranks, &one_node}, slot, values).total();
  Watched watched(bytes);
  Life life{};
  int lives = 0;
  bool fine = true;
  // Every change at first; in the midst of large copies some are left out. A victim that waits goes to sleep and wakes
  // up for ever.
  for (int last = 0; !life.whole && fine && (!c.first || last < 9); last += 1 + (last > 8 ? last / 2 : 0), ++lives) {
    life = die_at(c, last, watched);
    fine = life.fine;
  }
  std::printf("%s: killed at %d points, the last after %ld instructions\n", c.text().c_str(), lives, life.steps);
  std::fflush(stdout);
  return fine;
}

}  // namespace

}  // namespace papaya

int main() {
  using namespace papaya;
#if defined(__aarch64__)
  // Single-stepped, a pair of load-exclusive and store-exclusive never succeeds.
  if (!(getauxval(AT_HWCAP) & (1u << 8))) return 77;  // HWCAP_ATOMICS
#endif
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  // clock_gettime starts anew whenever the kernel has moved its time meanwhile: single-stepped, it may never end.
  clock::choose(true);
  board = shared<Board>(sizeof(Board));
  share_a_core();
  bool fine = true;
  for (const Descriptor* descriptor : registry()) {
    // Hierarchical ones share memory by algorithms that have their own turn.
    if (descriptor->segment != nullptr && descriptor->region_bytes != nullptr) continue;
    const Collective collective = descriptor->collective;
    const bool is_rooted = collective == Collective::bcast || collective == Collective::reduce;
    const bool has_other_way =
        collective != Collective::bcast && collective != Collective::barrier && !descriptor->needs_arrival_order;
    for (int victim = is_rooted ? 0 : 1; victim < 2; ++victim)
      for (const bool first : {false, true}) {
        fine = walk({descriptor, victim, first, false, 3}) && fine;
        if (has_other_way) fine = walk({descriptor, victim, first, true, 3}) && fine;
        // Without data, and early with much of it, there is nothing new to see.
        if (!first && collective != Collective::barrier) fine = walk({descriptor, victim, first, false, 60}) && fine;
      }
  }
  return fine ? 0 : 1;
}
