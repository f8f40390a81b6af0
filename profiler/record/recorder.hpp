// The recorder: writes this rank's file rank-NNNNN.pap (profiler/record/format.hpp) through a shared mapping. Its
// blocks are reserved at the start, so that a full disk is found then and not by a signal later, and what was written
// survives the process. Calls cost a few stores: no lock, no system call, no allocation.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/collective.hpp"
#include "base/mpi_kind.hpp"
#include "base/prefetch.hpp"
#include "base/reason.hpp"
#include "profiler/record/format.hpp"
#include "profiler/record/mapped_file.hpp"
#include "profiler/record/spill.hpp"

namespace papaya {

static_assert(reason_names.size() <= trace::reason_capacity);  // their names are in the header

// The system's numbers of the first threads that had a call recorded; 0 where there is none.
inline std::array<std::atomic<std::int32_t>, trace::most_stacks> recorded_threads{};

// A small number of the calling thread, from 0.
inline std::uint32_t thread_number() noexcept {
  static std::atomic<std::uint32_t> threads{0};
  static thread_local constinit std::uint32_t number_plus_one = 0;
  if (number_plus_one == 0) {
    number_plus_one = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number_plus_one <= recorded_threads.size())
      recorded_threads[number_plus_one - 1].store(gettid(), std::memory_order_relaxed);
  }
  return number_plus_one - 1;
}

class Recorder {
 public:
  Recorder() = default;
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // A function that add_timed() is to count.
  struct Function {
    std::string_view name;
    MpiKind kind;
  };

  // Creates `path` with room for `event_capacity` events (a power of two), whose calls go natively, algorithm 0, or by
  // one of `algorithms`, from 1, and with a row for each of `functions`. On failure returns false and says in `error`
  // what the operating system said; the recorder stays closed.
  bool open(const std::string& path, std::uint64_t event_capacity, std::span<const std::string_view> algorithms,
            std::string& error, std::span<const Function> functions = {}) noexcept;
  void close() noexcept;

  // So that readers on other machines know of this record now, not half a minute later.
  void write_out_head() noexcept;
  bool is_open() const noexcept { return header_ != nullptr; }

  // Has the events that the ring loses written to `path` (see spill.hpp), up to so many bytes. Call it once the header
  // is filled. Where that cannot be, the ring is all there is.
  void start_spilling(const std::string& path, std::string later_path, std::uint64_t limit_bytes) noexcept;
  const Spiller* spiller() const noexcept { return spiller_.get(); }
  void stop_spilling() noexcept;

  // Several threads may record at once (MPI_THREAD_MULTIPLE).
  void set_concurrent(bool concurrent) noexcept { concurrent_ = concurrent; }
  bool is_concurrent() const noexcept { return concurrent_; }

  trace::Header& header() noexcept { return *header_; }
  trace::Totals& totals() noexcept { return *totals_; }
  std::span<const trace::Algorithm> algorithms() const noexcept { return {algorithms_, header_->algorithm_count}; }
  trace::NodeBoard& node_board() noexcept { return *node_board_; }
  trace::Stacks& stacks() noexcept {
    return *reinterpret_cast<trace::Stacks*>(reinterpret_cast<std::byte*>(header_) + header_->stacks_offset);
  }
  std::span<trace::NodeCalls> node_calls() noexcept { return {node_calls_, trace::node_calls_capacity}; }

  // Copies a name into a fixed field, cut to fit and NUL-terminated.
  static void set_name(char* field, std::size_t capacity, std::string_view name) noexcept;

  // A row of the communicator table, or nullptr when it is full (counted).
  trace::Communicator* add_communicator(std::uint64_t id, std::uint64_t parent_id, int size, int rank, int nodes,
                                        std::string_view name) noexcept;

  // A row of the table of trials, or nullptr when it is full (counted).
  trace::TrialRow* add_trials() noexcept;

  // The program enters a phase, inside the one it is in, or leaves the one it entered last. What is deeper or more than
  // fits belongs to the phase around it.
  void begin_phase(std::string_view name) noexcept;
  void end_phase() noexcept;
  // The process will be in no phase any more: it has come to its end, at that time.
  void end_phases(std::uint64_t ticks) noexcept;
  std::uint16_t phase() const noexcept { return phase_.load(std::memory_order_relaxed); }

  // A call that is not to be recorded.
  void leave_out() noexcept { std::atomic_ref(header_->unrecorded_calls).fetch_add(1, std::memory_order_relaxed); }

  // The program switches recording off, or on; before MPI_Finalize. Returns the ticks for which it was off.
  std::uint64_t switch_recording(bool is_on, std::uint64_t ticks) noexcept {
    const std::uint64_t since =
        std::atomic_ref(header_->unrecorded_since).exchange(is_on ? 0 : ticks, std::memory_order_relaxed);
    const std::uint64_t off = since == 0 || since > ticks ? 0 : ticks - since;
    std::atomic_ref(header_->unrecorded_ticks).fetch_add(off, std::memory_order_relaxed);
    return off;
  }

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
  void finish(std::uint64_t number, const Arrival& arrival, std::uint64_t exit_ticks, std::uint32_t algorithm,
              std::uint8_t reason) noexcept;
  // The call returned an error: it has no number, and its arrival is compared with nothing.
  void take_back(std::uint64_t number) noexcept;

  // A call of the function of this number, as open() got them.
  void add_timed(std::size_t function, std::uint64_t ticks, std::uint64_t calls = 1) noexcept {
    if (calls != 0) add(timed_[function].calls, calls);
    if (ticks != 0) add(timed_[function].ticks, ticks);
  }
  // What the thread of this event did before it; its `commit` is filled in here. Of a recorder with functions.
  void put_interval(std::uint64_t number, trace::Interval interval) noexcept {
    trace::Interval& slot = intervals_[number & (trace::interval_capacity - 1)];
    slot = interval;
    // Release: who reads this number, from the file, finds the other fields.
    std::atomic_ref(slot.commit).store(static_cast<std::uint32_t>(number + 1), std::memory_order_release);
  }

 private:
  void add(std::uint64_t& counter, std::uint64_t value) noexcept {
    std::atomic_ref<std::uint64_t> shared(counter);
    if (concurrent_)
      shared.fetch_add(value, std::memory_order_relaxed);
    else
      shared.store(shared.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  // The time since phases changed last belongs to the one that the process is in. The caller holds their mutex.
  void settle_phase(std::uint64_t ticks) noexcept;
  // In collectives and timed functions that have returned.
  std::uint64_t mpi_ticks() const noexcept;

  // So late that the event may have been spilled.
  bool is_late(std::uint64_t number) const noexcept {
    return spiller_ != nullptr &&
           spiller_->is_late(number, std::atomic_ref(header_->event_count).load(std::memory_order_relaxed));
  }

  trace::Header* header_ = nullptr;
  trace::Totals* totals_ = nullptr;
  trace::Algorithm* algorithms_ = nullptr;
  trace::Communicator* communicators_ = nullptr;
  trace::Event* events_ = nullptr;
  trace::NodeBoard* node_board_ = nullptr;
  trace::NodeCalls* node_calls_ = nullptr;
  trace::TimedFunction* timed_ = nullptr;
  trace::Interval* intervals_ = nullptr;
  std::uint64_t event_mask_ = 0;
  std::atomic<std::uint16_t> phase_{0};  // relaxed: another thread's call may count for the phase before or after
  MappedFile file_;
  bool concurrent_ = true;
  std::unique_ptr<Spiller> spiller_;
  std::uint64_t stretch_mask_ = ~std::uint64_t{0};

  static constexpr std::size_t deepest_phase = 16;
  std::mutex phases_mutex_;                            // guards what follows, and the names in the header
  std::array<std::uint16_t, deepest_phase> phases_{};  // those around the present one
  std::size_t phases_deep_ = 0;
  std::uint64_t phase_since_ticks_ = 0;  // 0: never changed
  std::uint64_t phase_since_mpi_ = 0;    // mpi_ticks() then
};

inline std::uint64_t Recorder::begin(const Arrival& arrival, std::uint64_t call_site) noexcept {
  std::atomic_ref<std::uint64_t> count(header_->event_count);
  std::uint64_t number;
  if (concurrent_) {
    number = count.fetch_add(1, std::memory_order_relaxed);
  } else {
    number = count.load(std::memory_order_relaxed);
    count.store(number + 1, std::memory_order_relaxed);
  }
  trace::Event& event = events_[number & event_mask_];
  // Relaxed: a spiller that comes too late for what was here sees that by the count, and drops what it read.
  const auto put = [](auto& field, auto value) {
    std::atomic_ref(field).store(static_cast<std::remove_reference_t<decltype(field)>>(value),
                                 std::memory_order_relaxed);
  };
  put(event.arrival_ticks, arrival.ticks);
  put(event.exit_ticks, 0);
  put(event.communicator, arrival.communicator);
  put(event.call, arrival.call);
  put(event.bytes, arrival.bytes);
  put(event.call_site, call_site);
  put(event.root, arrival.root);
  put(event.collective, arrival.collective);
  put(event.form, arrival.form);
  put(event.algorithm, 0);
  put(event.reason, 0);
  put(event.thread, thread_number());
  put(event.phase, phase());
  // Release: whoever reads this number (the report, from the file) finds the fields above.
  std::atomic_ref(event.commit).store(static_cast<std::uint32_t>(number + 1), std::memory_order_release);
  // The ring outgrows the second-level cache; without this the next event's stores would wait for its line, and an
  // algorithm's flag would wait behind them in the store buffer.
  prefetch_for_write(&events_[(number + 4) & event_mask_]);
  if ((number & stretch_mask_) == 0 && spiller_ != nullptr) [[unlikely]]
    spiller_->stretch_begun(number);
  return number;
}

inline void Recorder::take_back(std::uint64_t number) noexcept {
  trace::Event& event = events_[number & event_mask_];
  if (std::atomic_ref(event.commit).load(std::memory_order_relaxed) == static_cast<std::uint32_t>(number + 1))
    std::atomic_ref(event.call).store(trace::no_call, std::memory_order_relaxed);
  if (is_late(number)) [[unlikely]]
    spiller_->note_late(number, 0, 0, 0);
}

inline void Recorder::finish(std::uint64_t number, const Arrival& arrival, std::uint64_t exit_ticks,
                             std::uint32_t algorithm, std::uint8_t reason) noexcept {
  trace::Event& event = events_[number & event_mask_];
  // Another thread may have wrapped around the ring in the meantime and own the slot now.
  if (std::atomic_ref(event.commit).load(std::memory_order_relaxed) == static_cast<std::uint32_t>(number + 1)) {
    std::atomic_ref(event.algorithm).store(algorithm, std::memory_order_relaxed);
    std::atomic_ref(event.reason).store(reason, std::memory_order_relaxed);
    // Release: a spiller that finds the exit finds the others.
    std::atomic_ref(event.exit_ticks).store(exit_ticks, std::memory_order_release);
  }
  if (is_late(number)) [[unlikely]]
    spiller_->note_late(number, exit_ticks, algorithm, reason);
  const std::size_t collective = index_of(arrival.collective);
  trace::Total& total = totals_->by_size[collective][static_cast<std::size_t>(arrival.form)]
                                        [static_cast<std::size_t>(size_class_of(arrival.bytes))];
  add(total.calls, 1);
  add(total.bytes, arrival.bytes);
  add(total.ticks, exit_ticks - arrival.ticks);
  if (arrival.form == Form::blocking) {
    add(algorithms_[algorithm].calls[collective], 1);
    if (reason != 0) add(totals_->native_calls_by_reason[collective][reason], 1);
  } else if (reason != static_cast<std::uint8_t>(Reason::no_algorithm)) {
    add(algorithms_[algorithm].nonblocking[collective], 1);
    if (reason != 0) add(totals_->native_nonblocking_by_reason[collective][reason], 1);
  }
}

}  // namespace papaya
