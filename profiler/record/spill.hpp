// Spilling: with PAPAYA_PROFILE=trace the events of a rank's ring go to rank-NNNNN.papz
// (profiler/record/spill_format.hpp) before they are overwritten. A helper thread does that, which runs where nothing
// else wants to (SCHED_IDLE). The ring is divided into stretches; one is written once half a ring of younger events has
// come, so that its calls have ended, and what is not written is still in the ring, which survives the process. The
// application never waits for the helper: if that falls a ring behind, stretches are lost, and a reader sees from their
// numbers which.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file_identity.hpp"
#include "profiler/record/spill_format.hpp"
#include "profiler/record/zstd.hpp"

namespace papaya {

// The file: blocks are appended until one does not fit or cannot be written.
class SpillFile {
 public:
  SpillFile() = default;
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  // Creates it. `later_path` is where to look for it if the program closes the descriptor.
  bool open(const std::string& path, std::string later_path, const trace::Header& record,
            std::uint64_t limit_bytes) noexcept;
  void append(std::uint64_t first, std::span<const trace::Event> events) noexcept;
  void append_late(std::span<const trace::spill::LateEvent> events) noexcept;
  void close() noexcept;

  trace::spill::State state() const noexcept { return static_cast<trace::spill::State>(header_.state); }
  bool takes_more() const noexcept { return descriptor_ >= 0 && state() == trace::spill::State::open; }
  bool is_compressed() const noexcept { return context_ != nullptr; }

 private:
  void append_block(trace::spill::BlockHeader block, const void* payload, std::size_t bytes) noexcept;
  bool is_ours() noexcept;
  bool write_at(std::uint64_t offset, const void* from, std::size_t bytes) noexcept;
  void end(trace::spill::State state, int error) noexcept;

  int descriptor_ = -1;
  FileIdentity identity_;
  std::string later_path_;
  trace::spill::FileHeader header_{};
  std::uint64_t offset_ = 0;
  zstd::Context* context_ = nullptr;
  std::vector<std::uint64_t> columns_;
  std::vector<std::byte> block_;  // a header and its payload
};

class Spiller {
 public:
  // Of the ring of an open record.
  Spiller(trace::Header& record, trace::Event* events) noexcept;
  ~Spiller();
  Spiller(const Spiller&) = delete;
  Spiller& operator=(const Spiller&) = delete;

  bool open(const std::string& path, std::string later_path, std::uint64_t limit_bytes) noexcept;
  // The helper. Without one, spill() does what it does.
  bool start() noexcept;
  void stop() noexcept;
  void spill() noexcept;

  const SpillFile& file() const noexcept { return file_; }

  // For the recorder. The first event of a stretch has begun: there may be something to do.
  std::uint64_t stretch_mask() const noexcept { return stretch_ - 1; }
  void stretch_begun(std::uint64_t number) noexcept {
    if (number >= lag_) wake();
  }
  // Event `number` ends as so many have begun: its stretch may have been written.
  bool is_late(std::uint64_t number, std::uint64_t event_count) const noexcept {
    return event_count - number > lag_ / 2;
  }
  // The end of such an event; exit_ticks 0: it has none, and its call no number.
  void note_late(std::uint64_t number, std::uint64_t exit_ticks, std::uint32_t algorithm, std::uint8_t reason) noexcept;

 private:
  // Passed from any thread to the helper without a lock: a thread that held one might not run for long.
  struct Note {
    std::atomic<std::uint64_t> ready{0};  // its number in the order of notes, plus one
    std::uint64_t number = 0;
    std::uint64_t exit_ticks = 0;
    std::uint32_t algorithm = 0;
    std::uint8_t reason = 0;
  };
  static constexpr std::size_t note_capacity = 64;

  static void* run(void* self) noexcept;
  void wake() noexcept;
  bool is_overtaken(std::uint64_t first) const noexcept;
  void copy_stretch(std::uint64_t first) noexcept;
  void keep_open_events(std::uint64_t first) noexcept;
  void write_notes() noexcept;

  trace::Header& record_;
  trace::Event* const events_;
  const std::uint64_t capacity_;
  const std::uint64_t stretch_;  // events, a power of two
  const std::uint64_t lag_;

  SpillFile file_;
  std::uint64_t next_ = 0;  // first event of the next stretch
  std::vector<trace::Event> copy_;
  std::vector<trace::spill::LateEvent> open_;  // written before they ended
  std::vector<trace::spill::LateEvent> late_;

  std::array<Note, note_capacity> notes_;
  std::atomic<std::uint64_t> notes_begun_{0};
  std::atomic<std::uint64_t> notes_taken_{0};

  pthread_t thread_{};
  bool is_running_ = false;
  std::atomic<bool> stops_{false};
  sem_t work_{};
};

}  // namespace papaya
