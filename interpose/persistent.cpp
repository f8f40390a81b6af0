#include "interpose/persistent.hpp"

#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "interpose/next.hpp"
#include "interpose/peers.hpp"
#include "interpose/wrappers.hpp"

namespace papaya::persistent {

namespace {

// Never destroyed, as all that calls of other threads may need while the process exits.
struct Table {
  std::mutex mutex;                                         // guards
  std::unordered_map<std::uint64_t, Operation> operations;  // by request
};
Table& table = *new Table;
std::atomic<std::size_t> known{0};  // relaxed: who starts an operation has made it

// A call of which only the beginning is known.
struct Started {
  Operation* operation;  // the program neither frees its request nor starts it twice while it is being started
  Recorder::Arrival arrival;
  std::uint64_t event = 0;
};

std::vector<Started> find(int count, const MPI_Request* requests, std::uint64_t ticks) {
  std::vector<Started> found;
  const std::lock_guard lock(table.mutex);
  for (int i = 0; i < count; ++i) {
    const auto place = table.operations.find(peers::key_of(requests[i]));
    if (place == table.operations.end()) continue;
    Operation& one = place->second;
    found.push_back({&one,
                     {ticks, one.communicator, trace::started_call(one.init, one.starts), one.bytes, one.root,
                      one.collective, Form::started}});
  }
  return found;
}

// Several that start at once share one time, which is the last one's.
void begin(std::vector<Started>& all, Records& records, const void* site) noexcept {
  const std::uint64_t call_site = records.call_sites.number_of(site);
  for (Started& one : all) {
    one.event = records.recorder.begin(one.arrival, call_site);
    records.mpi_times.arrive(one.event, one.arrival.ticks);
    MpiTimes::leave(one.arrival.ticks);
  }
}

void finish(const std::vector<Started>& all, Records& records, bool is_good) noexcept {
  const std::uint64_t exit_ticks = clock::ticks();
  for (const Started& one : all) {
    if (!is_good) records.recorder.take_back(one.event);
    records.recorder.finish(one.event, one.arrival, &one == &all.back() ? exit_ticks : one.arrival.ticks, 0,
                            static_cast<std::uint8_t>(Reason::no_algorithm));
  }
  MpiTimes::leave(exit_ticks);
}

}  // namespace

void add(MPI_Request request, const Operation& operation) noexcept {
  const std::lock_guard lock(table.mutex);
  try {
    table.operations.insert_or_assign(peers::key_of(request), operation);
    known.store(table.operations.size(), std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // its starts are not recorded
  }
}

void forget(const MPI_Request* request) noexcept {
  if (known.load(std::memory_order_relaxed) == 0 || request == nullptr) return;
  const std::lock_guard lock(table.mutex);
  table.operations.erase(peers::key_of(*request));
  known.store(table.operations.size(), std::memory_order_relaxed);
}

int start(int count, const MPI_Request* requests, const void* site, int (*native)(int count, MPI_Request* requests)) {
  auto* const own = const_cast<MPI_Request*>(requests);
  Runtime& process = runtime();
  Records& records = process.records;
  if (known.load(std::memory_order_relaxed) == 0 || requests == nullptr || Entry::is_inside() ||
      !process.active.load(std::memory_order_acquire) || !records.recorder.is_open())
    return native(count, own);
  std::vector<Started> all;
  try {
    all = find(count, requests, clock::ticks());
  } catch (const std::bad_alloc&) {
  }
  if (all.empty()) return native(count, own);
  const bool is_recording = records.recording.load(std::memory_order_relaxed);
  if (is_recording) {
    begin(all, records, MpiTimes::Call::leave_out(site));
  } else {
    for (std::size_t i = 0; i < all.size(); ++i) records.recorder.leave_out();
  }
  const int code = native(count, own);
  if (is_recording) finish(all, records, code == MPI_SUCCESS);
  if (code == MPI_SUCCESS)
    for (const Started& one : all) ++one.operation->starts;
  return code;
}

}  // namespace papaya::persistent

PAPAYA_WRAPPER papaya_MPI_Start(MPI_Request* request) {
  return papaya::persistent::start(1, request, __builtin_return_address(0),
                                   [](int, MPI_Request* one) { return PAPAYA_NEXT(Start)(one); });
}
PAPAYA_WRAPPER papaya_MPI_Startall(int count, MPI_Request requests[]) {
  return papaya::persistent::start(count, requests, __builtin_return_address(0), PAPAYA_NEXT(Startall));
}
PAPAYA_WRAPPER papaya_MPI_Request_free(MPI_Request* request) {
  papaya::persistent::forget(request);
  return PAPAYA_NEXT(Request_free)(request);
}
