// Records the weakly consistent collectives of a program that uses libpapaya-weak-MPI.so.
#include <mpi.h>

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

std::uint64_t begin(void* collective, std::uint64_t clock) noexcept {
  Records& records = runtime().records;
  if (!records.recording.load(std::memory_order_relaxed)) {
    if (records.recorder.is_open()) records.recorder.leave_out();
    return WeakRecorder::not_recorded;
  }
  return records.weak.begin(*static_cast<const WeakRecorder::Collective*>(collective), clock, clock::ticks());
}

void finish(void* collective, std::uint64_t number, const WeakOutcome& outcome) noexcept {
  runtime().records.weak.finish(*static_cast<const WeakRecorder::Collective*>(collective), number, clock::ticks(),
                                outcome);
}

constexpr WeakRecords functions{open, begin, finish};

}  // namespace

}  // namespace papaya

extern "C" __attribute__((visibility("default"))) const papaya::WeakRecords* papaya_flavour_weak_records();
const papaya::WeakRecords* papaya_flavour_weak_records() {
  return &papaya::functions;
}
