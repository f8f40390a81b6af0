// Records the weakly consistent collectives of a program that uses libpapaya-weak-MPI.so.
#include "interpose/weak_calls.hpp"

#include <mpi.h>

#include <atomic>
#include <new>

#include "base/clock.hpp"
#include "base/weak_records.hpp"
#include "interpose/communicator.hpp"
#include "interpose/output.hpp"
#include "interpose/runtime.hpp"

namespace papaya {

namespace {

void* open(const WeakDescription& description) noexcept {
  Runtime& process = runtime();
  if (!process.active.load(std::memory_order_acquire) || !process.records.recorder.is_open()) return nullptr;
  const auto comm = *static_cast<const MPI_Comm*>(description.comm);
  const Communicator* const state = communicators::find_or_make(comm);
  if (state == nullptr) return nullptr;
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  try {
    Records& records = process.records;
    return const_cast<WeakRecorder::Collective*>(records.weak.add(
        output::weak_file(records.folder.path(), process.job.rank), records.recorder.header(), description,
        {.communicator = state->id,
         .is_known = state->is_known,
         .size = state->size,
         .rank = state->rank,
         .name = {name, static_cast<std::size_t>(length)}}));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::uint64_t begin(void* collective, std::uint64_t clock, const void* site) noexcept {
  Records& records = runtime().records;
  if (!records.recording.load(std::memory_order_relaxed)) {
    if (records.recorder.is_open()) records.recorder.leave_out();
    return WeakRecorder::not_recorded;
  }
  return records.weak.begin(
      *static_cast<const WeakRecorder::Collective*>(collective), clock, clock::ticks(),
      {.call_site = site == nullptr ? 0 : records.call_sites.number_of(site), .phase = records.recorder.phase()});
}

void finish(void* collective, std::uint64_t number, const void* site, const WeakOutcome& outcome) noexcept {
  Records& records = runtime().records;
  const std::uint64_t exit_ticks = clock::ticks();
  const bool is_told = site != nullptr && number != WeakRecorder::not_recorded;
  records.weak.finish(*static_cast<const WeakRecorder::Collective*>(collective), number, exit_ticks,
                      is_told ? records.call_sites.number_of(site) : 0, outcome);
}

constinit std::atomic<void (*)() noexcept> last_act{nullptr};
void before_finalize(void (*act)() noexcept) noexcept {
  last_act.store(act, std::memory_order_relaxed);
}

constexpr WeakRecords functions{open, begin, finish, before_finalize};

}  // namespace

void weak_calls::before_finalize() noexcept {
  if (void (*const act)() noexcept = last_act.load(std::memory_order_relaxed); act != nullptr) act();
}

}  // namespace papaya

extern "C" __attribute__((visibility("default"))) const papaya::WeakRecords* papaya_flavour_weak_records();
const papaya::WeakRecords* papaya_flavour_weak_records() {
  return &papaya::functions;
}
