// The recorder: writes this rank's file rank-NNNNN.pap (profiler/format.hpp) through a shared mapping. Its blocks are
// reserved at the start, so that a full disk is found then and not by a signal later, and what was written survives
// the process. Calls cost a few stores: no lock, no system call, no allocation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/collective.hpp"
#include "base/prefetch.hpp"
#include "base/reason.hpp"
#include "profiler/format.hpp"

namespace papaya {

class Recorder {
 public:
  Recorder() = default;
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Creates `path` with room for `event_capacity` events (a power of two). On failure returns false and says in
  // `error` what the operating system said; the recorder stays closed.
  bool open(const std::string& path, std::uint64_t event_capacity, std::string& error) noexcept;
  void close() noexcept;
  bool is_open() const noexcept { return header_ != nullptr; }

  // Several threads may record at once (MPI_THREAD_MULTIPLE).
  void set_concurrent(bool concurrent) noexcept { concurrent_ = concurrent; }

  trace::Header& header() noexcept { return *header_; }
  trace::Totals& totals() noexcept { return *totals_; }

  // Copies a name into a fixed field, cut to fit and NUL-terminated.
  static void set_name(char* field, std::size_t capacity, std::string_view name) noexcept;

  // A row of the communicator table, or nullptr when it is full (counted).
  trace::Communicator* add_communicator(std::uint64_t id, std::uint64_t parent_id, int size, int rank, int nodes,
                                        std::string_view name) noexcept;

  struct Arrival {
    std::uint64_t ticks;
    std::uint64_t communicator;
    std::uint64_t call;
    std::uint64_t bytes;
    std::int32_t root;
    Collective collective;
    Form form;
  };

  // The arrival and the departure of one call. `begin` returns the event's number, which `finish` takes.
  std::uint64_t begin(const Arrival& arrival, std::uint64_t call_site) noexcept;
  void finish(std::uint64_t number, const Arrival& arrival, std::uint64_t exit_ticks, std::uint8_t algorithm,
              std::uint8_t reason) noexcept;
  // The call returned an error: it has no number, and its arrival is compared with nothing.
  void take_back(std::uint64_t number) noexcept;

 private:
  void add(std::uint64_t& counter, std::uint64_t value) noexcept {
    std::atomic_ref<std::uint64_t> shared(counter);
    if (concurrent_)
      shared.fetch_add(value, std::memory_order_relaxed);
    else
      shared.store(shared.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  trace::Header* header_ = nullptr;
  trace::Totals* totals_ = nullptr;
  trace::Communicator* communicators_ = nullptr;
  trace::Event* events_ = nullptr;
  std::uint64_t event_mask_ = 0;
  std::size_t mapped_bytes_ = 0;
  bool concurrent_ = true;
};

inline std::uint64_t Recorder::begin(const Arrival& arrival, std::uint64_t call_site) noexcept {
  static std::atomic<std::uint32_t> threads{0};
  static thread_local constinit std::uint32_t thread_plus_one = 0;
  if (thread_plus_one == 0) thread_plus_one = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  std::atomic_ref<std::uint64_t> count(header_->event_count);
  std::uint64_t number;
  if (concurrent_) {
    number = count.fetch_add(1, std::memory_order_relaxed);
  } else {
    number = count.load(std::memory_order_relaxed);
    count.store(number + 1, std::memory_order_relaxed);
  }
  trace::Event& event = events_[number & event_mask_];
  event.arrival_ticks = arrival.ticks;
  event.exit_ticks = 0;
  event.communicator = arrival.communicator;
  event.call = arrival.call;
  event.bytes = arrival.bytes;
  event.call_site = call_site;
  event.root = arrival.root;
  event.collective = static_cast<std::uint8_t>(arrival.collective);
  event.form = static_cast<std::uint8_t>(arrival.form);
  event.algorithm = 0;
  event.reason = 0;
  event.thread = thread_plus_one - 1;
  // Release: whoever reads this number (the report, from the file) finds the fields above.
  std::atomic_ref(event.commit).store(static_cast<std::uint32_t>(number + 1), std::memory_order_release);
  // The ring outgrows the second-level cache; without this the next event's stores would wait for its line, and an
  // algorithm's flag would wait behind them in the store buffer.
  prefetch_for_write(&events_[(number + 4) & event_mask_]);
  return number;
}

inline void Recorder::take_back(std::uint64_t number) noexcept {
  trace::Event& event = events_[number & event_mask_];
  if (std::atomic_ref(event.commit).load(std::memory_order_relaxed) == static_cast<std::uint32_t>(number + 1))
    event.call = trace::no_call;
}

inline void Recorder::finish(std::uint64_t number, const Arrival& arrival, std::uint64_t exit_ticks,
                             std::uint8_t algorithm, std::uint8_t reason) noexcept {
  trace::Event& event = events_[number & event_mask_];
  // Another thread may have wrapped around the ring in the meantime and own the slot now.
  if (std::atomic_ref(event.commit).load(std::memory_order_relaxed) == static_cast<std::uint32_t>(number + 1)) {
    event.algorithm = algorithm;
    event.reason = reason;
    event.exit_ticks = exit_ticks;
  }
  const std::size_t collective = index_of(arrival.collective);
  trace::Total& total = totals_->by_size[collective][static_cast<std::size_t>(arrival.form)]
                                        [static_cast<std::size_t>(size_class_of(arrival.bytes))];
  add(total.calls, 1);
  add(total.bytes, arrival.bytes);
  add(total.ticks, exit_ticks - arrival.ticks);
  if (arrival.form == Form::blocking) {
    add(totals_->calls_by_algorithm[collective][algorithm], 1);
    if (reason != 0) add(totals_->native_calls_by_reason[collective][reason], 1);
  } else if (reason != static_cast<std::uint8_t>(Reason::no_algorithm)) {
    add(totals_->nonblocking_by_algorithm[collective][algorithm], 1);
    if (reason != 0) add(totals_->native_nonblocking_by_reason[collective][reason], 1);
  }
}

}  // namespace papaya
