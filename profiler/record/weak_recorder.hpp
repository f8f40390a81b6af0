// Writes this rank's file rank-NNNNN.papw (profiler/record/weak_format.hpp): its calls of weakly consistent
// collectives. A file of their own, and no events of the rank's .pap: a late rank holds others up there only as far as
// the program lets it, so that nothing holds which is concluded from arrivals at MPI's collectives. A call costs some
// stores: no lock, no system call, no allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/weak_records.hpp"
#include "profiler/record/format.hpp"
#include "profiler/record/mapped_file.hpp"
#include "profiler/record/weak_format.hpp"

namespace papaya {

class WeakRecorder {
 public:
  WeakRecorder() = default;
  ~WeakRecorder() { close(); }
  WeakRecorder(const WeakRecorder&) = delete;
  WeakRecorder& operator=(const WeakRecorder&) = delete;

  struct Where {
    std::uint64_t communicator;  // its identity,
    bool is_known;               // which is the same on all ranks
    std::int32_t size;
    std::int32_t rank;
    std::string_view name;
  };
  // One collective of the program's, which lives as long as the recorder.
  struct Collective {
    std::uint64_t id;
    std::uint64_t bytes;
    std::uint32_t row;
  };

  // Several threads may record at once (MPI_THREAD_MULTIPLE).
  void set_concurrent(bool concurrent) noexcept { concurrent_ = concurrent; }
  // Room for so many calls, a power of two. Before the first collective.
  void set_capacity(std::uint64_t events) noexcept { capacity_ = events; }
  // A collective that the program has created. At the first one the file is made at `path`, beside the record with the
  // header `record`. Null: its calls are not recorded.
  const Collective* add(const std::string& path, const trace::Header& record, const WeakDescription& description,
                        const Where& where);
  void close() noexcept;

  static constexpr std::uint64_t not_recorded = ~std::uint64_t{0};
  struct Place {
    std::uint64_t call_site;  // in the rank's record
    std::uint16_t phase;
  };
  std::uint64_t begin(const Collective& collective, std::uint64_t clock, std::uint64_t ticks, Place place) noexcept;
  // `ended_site`: 0 where it is the begin's, or not known.
  void finish(const Collective& collective, std::uint64_t number, std::uint64_t exit_ticks, std::uint64_t ended_site,
              const WeakOutcome& outcome) noexcept;

 private:
  bool open(const std::string& path, const trace::Header& record);
  void sum(std::uint64_t& counter, std::uint64_t value) noexcept {
    std::atomic_ref<std::uint64_t> shared(counter);
    if (concurrent_)
      shared.fetch_add(value, std::memory_order_relaxed);
    else
      shared.store(shared.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  trace::WeakHeader* header_ = nullptr;  // null after close(): calls that end later are dropped
  MappedFile file_;
  trace::WeakRow* rows_ = nullptr;
  trace::WeakEvent* events_ = nullptr;
  bool concurrent_ = true;
  std::uint64_t capacity_ = trace::weak::event_capacity;

  std::mutex mutex_;  // guards what follows, and new rows
  bool has_failed_ = false;
  std::deque<Collective> collectives_;
  std::map<std::uint64_t, std::uint64_t> created_;  // so many on a communicator
};

}  // namespace papaya
