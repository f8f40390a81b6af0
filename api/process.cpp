#include "api/process.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/topology.hpp"
#include "interpose/mpi_types.hpp"

namespace papaya::weak {

namespace {

struct Process {
  std::mutex mutex;  // guards what follows
  bool has_started = false;
  std::vector<Member*> members;
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm packing = MPI_COMM_NULL;
  wait::Policy policy;
};
Process& process() noexcept {
  static auto& one = *new Process;  // never destroyed: threads may wait while the process ends
  return one;
}

// Whoever finds another at it leaves it to that one, and whoever is at it already, in a wait of its own, to itself.
template <class Do>
void with_each(Do&& act) noexcept {
  static thread_local bool is_at_it = false;
  if (is_at_it) return;
  Process& self = process();
  const std::unique_lock lock(self.mutex, std::try_to_lock);
  if (!lock) return;
  is_at_it = true;
  for (Member* const member : self.members) act(*member);
  is_at_it = false;
}

// MPICH does not progress its network for a probe on a copy of MPI_COMM_SELF: so on those of the collectives.
void poke() {
  with_each([](Member& member) {
    int found = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, member.comm(), &found, MPI_STATUS_IGNORE);
    member.progress();
  });
}

// Called as MPI_Finalize begins, while MPI still works: what the program has not freed.
int end_with_mpi(MPI_Comm, int, void*, void*) {
  Process& self = process();
  std::vector<Member*> left;
  {
    const std::lock_guard lock(self.mutex);
    left = self.members;
  }
  std::sort(left.begin(), left.end(), [](Member* a, Member* b) { return a->birth() < b->birth(); });
  if (!left.empty())
    log::info(fmt::format("{} of papaya's collectives and segments {} not freed before MPI_Finalize; freed now.",
                          left.size(), left.size() == 1 ? "was" : "were"));
  end_threads();
  for (Member* const member : left) member->end();
  if (self.packing != MPI_COMM_NULL) PMPI_Comm_free(&self.packing);
  return MPI_SUCCESS;
}

double ns_per_tick() {
  clock::choose(clock::counter_is_trusted());
  const clock::Pair first = clock::read_pair();
  const timespec long_enough{0, 5'000'000};
  nanosleep(&long_enough, nullptr);
  return clock::ns_per_tick(first, clock::read_pair());
}

// Ranks of this job on the node, as its launcher says; 0: it does not.
int launched_here() {
  for (const char* const name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"})
    if (const char* const value = std::getenv(name)) return std::atoi(value);
  return 0;
}

thread_local constinit const Member* waits_in = nullptr;

bool report_stall(void*, double seconds) {
  if (waits_in == nullptr) return false;
  log::warn(waits_in->stalled(seconds));
  return true;
}

}  // namespace

Waiting::Waiting(const Member& member) noexcept {
  waits_in = &member;
}
Waiting::~Waiting() {
  waits_in = nullptr;
}

void end_threads() noexcept {
  Process& self = process();
  const std::lock_guard lock(self.mutex);
  for (Member* const member : self.members) member->stop_thread();
}

wait::Policy& policy() noexcept {
  return process().policy;
}

Birth Birth::now() noexcept {
  static std::atomic<std::uint64_t> created{0};
  return {clock::monotonic_ns(), static_cast<std::uint64_t>(getpid()), created.fetch_add(1, std::memory_order_relaxed)};
}

std::string Birth::name() const {
  return fmt::format("/papaya-weak-{}-{}-{}", process, number, ns);
}

void prepare_process() {
  Process& self = process();
  const std::lock_guard lock(self.mutex);
  if (self.packing != MPI_COMM_NULL) return;
  PMPI_Comm_dup(MPI_COMM_SELF, &self.packing);
  PMPI_Comm_set_errhandler(self.packing, MPI_ERRORS_RETURN);
  pack_on(self.packing);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_with_mpi, &self.keyval, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, self.keyval, nullptr);
}

bool has_started() noexcept {
  Process& self = process();
  const std::lock_guard lock(self.mutex);
  return self.has_started;
}

void start(MPI_Comm node, const Settings& settings) {
  Process& self = process();
  topology::Share mine = topology::allowed();
  topology::CoreSet all{};
  PMPI_Allreduce(mine.cores.words, all.words, topology::CoreSet::capacity / 64, MPI_UINT64_T, MPI_BOR, node);
  int ranks = 1;
  int rank = 0;
  PMPI_Comm_size(node, &ranks);
  PMPI_Comm_rank(node, &rank);
  // Ranks that are not bound share the cores with all others, not only those of this communicator.
  if (topology::count(mine.cores) == topology::count(all)) ranks = std::max(ranks, launched_here());

  const std::lock_guard lock(self.mutex);
  if (self.has_started) return;
  self.has_started = true;
  log::set_level(log::level_of(settings.text(Variable::log)));
  self.policy.configure(wait::mode_of(settings.text(Variable::wait)),
                        {.cores = topology::count(all), .ranks = ranks, .rank = rank, .ns_per_tick = ns_per_tick()},
                        poke);
  self.policy.set_stall(static_cast<double>(settings.number(Variable::stall_seconds)), report_stall);
}

Settings settings_of_process(int rank) {
  std::vector<std::string> warnings;
  Settings settings = Settings::from_environment(environ, warnings);
  static std::atomic<bool> has_warned{false};
  if (rank == 0 && !has_warned.exchange(true))
    for (const std::string& warning : warnings) log::warn(warning);
  return settings;
}

void enter(Member& member) {
  const std::lock_guard lock(process().mutex);
  process().members.push_back(&member);
}

void move_all_on() noexcept {
  with_each([](Member& member) { member.progress(); });
}

void leave(Member& member) noexcept {
  const std::lock_guard lock(process().mutex);
  auto& members = process().members;
  members.erase(std::remove(members.begin(), members.end(), &member), members.end());
}

}  // namespace papaya::weak
