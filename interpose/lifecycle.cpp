#include "interpose/lifecycle.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "interpose/approx.hpp"
#include "interpose/census.hpp"
#include "interpose/communicator.hpp"
#include "interpose/lone_rank.hpp"
#include "interpose/mpi_types.hpp"
#include "interpose/next.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/oddities.hpp"
#include "interpose/runtime.hpp"
#include "interpose/stall.hpp"
#include "interpose/timed_calls.hpp"
#include "interpose/verdicts.hpp"
#include "interpose/why_native.hpp"
#include "interpose/world.hpp"

extern "C" {
__attribute__((visibility("default"))) extern const char* const papaya_flavour_version;
__attribute__((visibility("default"))) void papaya_flavour_start(const papaya::Preload* preload);
}
const char* const papaya_flavour_version = PAPAYA_VERSION;

namespace papaya {

namespace {

void after_fork_in_child() {
  Runtime& process = runtime();
  process.active.store(false, std::memory_order_release);
  if (process.preload != nullptr) process.preload->pass_through();
  Watch::give_signal_back();
}

void poke_progress() {
  // On a communicator that spans the job: MPICH does not progress its network for a probe on a copy of MPI_COMM_SELF.
  Runtime& process = runtime();
  int found = 0;
  const bool is_copied = process.job.world_comm != MPI_COMM_NULL;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, is_copied ? process.job.world_comm : world::comm(), &found,
              MPI_STATUS_IGNORE);
  if (nonblocking::needs_attention()) nonblocking::progress();
  // What carries data between nodes moves on here, too: a rank that is about to leave may wait for this one to take
  // its.
  process.between_nodes.progress();
}

void configure_waiting(Runtime& process) {
  const Job& job = process.job;
  wait::Policy::Machine machine;
  machine.cores = job.cores;
  machine.board = process.memory.window.board();
  machine.ns_per_tick = job.ns_per_tick;
  machine.ranks = job.ranks_on_node;
  machine.rank = job.rank_on_node;
  process.policy.configure(wait::mode_of(job.settings.text(Variable::wait)), machine, poke_progress);
}

void before_end(const Job& job, Communicator& state) noexcept {
  nonblocking::remove_queue(state);
  why_native::report_what_was_not_set_up(job, state);
  verdicts::keep(state);
}

// Whether this process is to go on natively: it was spawned, another rank has no papaya, or the user wants it.
// Collective but for the first.
bool stands_aside(Runtime& process, double& asked_us) {
  const Preload& preload = *process.preload;
  // Spawned processes are a part of their parent's job, whose records they would mix with theirs: they run natively.
  // With sessions MPI does not tell.
  MPI_Comm parent = MPI_COMM_NULL;
  if (!world::is_of_sessions()) PMPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    preload.remove_name(*preload.node);
    preload.close(*preload.node);
    return true;
  }
  Job& job = process.job;
  PMPI_Comm_rank(world::comm(), &job.rank);
  PMPI_Comm_size(world::comm(), &job.ranks);
  const std::uint64_t asked_ns = clock::monotonic_ns();
  const bool all_take_part = census::all_take_part(*preload.node, preload.remove_name, job.rank, job.ranks);
  asked_us = static_cast<double>(clock::monotonic_ns() - asked_ns) * 1e-3;
  if (all_take_part) {
    job::open_out_of_band(job, *preload.node, poke_progress);
    job::agree_on_settings(job);
    if (job.settings.number(Variable::disable) == 0) return false;
    job::free_communicators(job);
    job.oob.reset();
  }
  preload.close(*preload.node);
  return true;
}

bool has_begun = false;  // a process has one record

void say_that_it_has_ended() {
  static bool is_said = false;
  const Runtime& process = runtime();
  if (is_said || process.job.rank != 0 || process.active.load(std::memory_order_relaxed)) return;
  is_said = true;
  log::warn("MPI is started a second time in this process; papaya has served and recorded the first time alone.");
}

}  // namespace

void announce() noexcept {
  if (const Preload* const preload = runtime().preload; preload != nullptr)
    preload->announce(*preload->node, presence::Part::takes_part);
}

void start() noexcept {
  Runtime& process = runtime();
  Job& job = process.job;
  if (process.preload == nullptr) return;
  if (has_begun) return say_that_it_has_ended();
  has_begun = true;
  double asked_us = 0;
  if (stands_aside(process, asked_us)) {
    process.preload->pass_through();
    return;
  }
  job::find_nodes(job);
  if (job.ranks == 1)
    if (const std::string sentence = lone_rank::sentence([](const char* name) { return std::getenv(name); });
        !sentence.empty())
      log::warn(sentence);
  pack_on(job.world_comm);
  process.memory.open(job, {.descriptor = job.is_one_node && job.nodes == 1 ? process.preload->node->file : -1,
                            .begin = process.preload->node->bytes});
  process.between_nodes.start(job, process.preload->folder);
  process.channels.open(job, process.between_nodes);
  const NodeWindow& window = process.memory.window;
  job::lower_limit(job, window.exists() ? window.limit() : job.shm_limit);
  configure_waiting(process);
  Records& records = process.records;
  approx::start(job, *process.preload);
  records.open(job, *process.preload, timed_calls::functions());
  approx::open(job, records);
  process.policy.set_stall(static_cast<double>(job.settings.number(Variable::stall_seconds)),
                           records.recorder.is_open() ? report_nonblocking_stall : report_stall);
  if (!communicators::start({.job = job,
                             .records = records,
                             .resources = []() noexcept { return resources(runtime()); },
                             .between_nodes = process.between_nodes,
                             .policy = process.policy,
                             .read_memory = process.memory.may_read_neighbours ? read_memory : nullptr},
                            before_end))
    return;
  if (records.recorder.is_open() && records.recorder.header().timed_count != 0)
    process.preload->time_calls(timed_calls::wrappers());
  nonblocking::start(job, process.policy, process.preload->intercept_waiting);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  records.start_watching(job);
  records.usage.start();
  if (records.recorder.is_open()) records.recorder.header().init_ticks = clock::ticks();
  const Transport* const transport = process.between_nodes.transport();
  if (job.rank == 0)
    log::info(
        fmt::format("version {}, {} ranks, all with papaya (asked in {:.1f} us), on {} node{}, {} cores here{}{}{}",
                    PAPAYA_VERSION, job.ranks, asked_us, job.nodes, job.nodes == 1 ? "" : "s", job.cores,
                    transport == nullptr ? "" : fmt::format(", {} between nodes", transport->name()),
                    records.folder.name().empty() ? "" : "; records go to ", records.folder.name()));
  process.active.store(true, std::memory_order_release);
}

void stop() noexcept {
  Runtime& process = runtime();
  if (!process.active.load(std::memory_order_acquire)) return;
  nonblocking::stop();
  if (!process.active.exchange(false, std::memory_order_acq_rel)) return;
  Records& records = process.records;
  records.stop_watching();
  if (records.recorder.is_open()) {
    records.mpi_times.stop();
    records.recorder.header().end_ticks = clock::ticks();
    records.recorder.end_phases(records.recorder.header().end_ticks);
    records.recorder.header().usage = records.usage.so_far();
  }
  communicators::stop();
  approx::stop(process.job, records);
  verdicts::tell_kept(process.job, records);
  oddities::report(process.job);
  records.close(process.job);
  process.between_nodes.close();
  process.memory.close();
  job::free_communicators(process.job);
  process.job.oob_of_node.reset();
  process.job.oob.reset();
  process.preload->close(*process.preload->node);
}

#if PAPAYA_HAS_MPI_4

namespace {
std::atomic<int> open_sessions{0};
std::mutex taking;  // threads may make communicators at once
}  // namespace

void note_session() noexcept {
  open_sessions.fetch_add(1, std::memory_order_relaxed);
}

void start_in_session(MPI_Comm comm) noexcept {
  int is_initialized = 0;
  const world::Offer offer(comm);
  const std::lock_guard lock(taking);
  if (runtime().preload == nullptr) return;
  if (has_begun) return say_that_it_has_ended();
  if (PMPI_Initialized(&is_initialized) != MPI_SUCCESS || is_initialized != 0 || !world::take(comm)) return;
  start();
  if (!runtime().active.load(std::memory_order_relaxed)) world::leave();
}

void stop_in_session() noexcept {
  if (open_sessions.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  if (world::is_of_sessions()) stop();
  world::leave();
  if (const Preload* const preload = runtime().preload; preload != nullptr && !has_begun && preload->node->rank <= 0)
    log::warn(
        "the program's sessions have made no communicator of all ranks in their order, so what they did is not "
        "recorded.");
}

#endif

void note_abort(int code) noexcept {
  Runtime& process = runtime();
  if (!process.active.load(std::memory_order_acquire) || !process.records.recorder.is_open()) return;
  trace::Header& header = process.records.recorder.header();
  header.end_ticks = clock::ticks();
  process.records.recorder.end_phases(header.end_ticks);
  header.usage = process.records.usage.so_far();
  header.abort_code = code;
  header.ending = static_cast<std::uint32_t>(trace::Ending::aborted);
  log::warn(fmt::format("rank {} calls MPI_Abort; `papaya report {}` shows what was recorded.", process.job.rank,
                        process.records.folder.name()));
}

}  // namespace papaya

void papaya_flavour_start(const papaya::Preload* preload) {
  using namespace papaya;
  runtime().preload = preload;
  next::functions = preload->next;
  Watch::note_signal();
  job::note_clock();
}
