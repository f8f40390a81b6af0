// For each pair of ranks, writer and reader, there are two slots in the reader's segment and two buffers at the writer.
// A full buffer is written to its slot with a notification, `filled`, and is used again when the reader has said by
// another, `emptied`, that it has copied the records out of the slot: credit-based flow control with double buffering,
// as in Gall et al. (2019, section 4.2), whose reader has one slot. Nobody enters a barrier.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "papaya.h"
#include "shuffle.hpp"

namespace terasort {

namespace {

constexpr int slots = 2;

class NotifiedShuffle {
 public:
  explicit NotifiedShuffle(const Task& task)
      : task_(task),
        rank_(task.job.rank),
        ranks_(task.job.ranks),
        capacity_(task.options.buffer / record_bytes),
        outputs_(static_cast<std::size_t>(ranks_)),
        next_slot_(static_cast<std::size_t>(ranks_)) {
    for (Output& output : outputs_)
      for (std::vector<Record>& buffer : output.buffers) buffer.resize(capacity_);
    papaya_segment_create(MPI_COMM_WORLD, static_cast<std::size_t>(ranks_) * slots * slot_bytes(), notifications(),
                          &segment_);
    void* address = nullptr;
    papaya_segment_address(segment_, &address);
    memory_ = static_cast<const unsigned char*>(address);
  }
  ~NotifiedShuffle() {
    const Within phase(task_.times, Phase::shuffle);
    const Waiting waiting(task_.times);
    papaya_segment_free(&segment_);
  }
  NotifiedShuffle(const NotifiedShuffle&) = delete;
  NotifiedShuffle& operator=(const NotifiedShuffle&) = delete;

  void run() {
    const Within phase(task_.times, Phase::shuffle);
    std::vector<Record> room;
    for (std::uint64_t done = 0; done < task_.source.count();) {
      const std::uint64_t count = std::min(task_.plan.chunk, task_.source.count() - done);
      partition(task_.read(done, count, room), task_.source.first() + done);
      done += count;
    }
    for (int peer = 0; peer < ranks_; ++peer)
      if (peer != rank_) write(peer, true);
    collect_own();
    while (open_writers_ > 0) step();
  }
  std::string place() const {
    char text[64] = "";
    papaya_segment_get_info(segment_, text, sizeof text);
    return text;
  }

 private:
  struct Output {
    std::array<std::vector<Record>, slots> buffers;
    std::array<bool, slots> is_under_way{};
    int slot = 0;
    std::size_t size = 0;  // of the buffer of that slot
    bool is_ready = true;  // it may be written into
  };

  std::size_t slot_bytes() const noexcept { return capacity_ * record_bytes; }
  std::size_t offset_of(int writer, int slot) const noexcept {
    return (static_cast<std::size_t>(writer) * slots + static_cast<std::size_t>(slot)) * slot_bytes();
  }
  int notifications() const noexcept { return 2 * ranks_ * slots; }
  static int filled(int writer, int slot) noexcept { return writer * slots + slot; }
  int emptied(int reader, int slot) const noexcept { return (ranks_ + reader) * slots + slot; }

  void partition(std::span<const Record> records, std::uint64_t place) {
    constexpr std::size_t between_looks = 2048;
    const Within phase(task_.times, Phase::partition);
    std::size_t looked = 0;
    for (const Record& record : records) {
      const int peer = task_.splitters.rank_of(record.key(), place++);
      Output& output = outputs_[static_cast<std::size_t>(peer)];
      if (!output.is_ready) make_ready(output);
      output.buffers[static_cast<std::size_t>(output.slot)][output.size++] = record;
      if (output.size == capacity_) peer == rank_ ? collect_own() : write(peer, false);
      if (++looked % between_looks == 0) take();
    }
  }

  void collect_own() {
    const Within phase(task_.times, Phase::shuffle);
    Output& own = outputs_[static_cast<std::size_t>(rank_)];
    task_.collector.add(std::span(own.buffers[0]).first(own.size));
    own.size = 0;
  }

  // `is_last`: nothing follows; it may be empty.
  void write(int peer, bool is_last) {
    const Within phase(task_.times, Phase::shuffle);
    Output& output = outputs_[static_cast<std::size_t>(peer)];
    if (!output.is_ready) make_ready(output);
    const auto slot = static_cast<std::size_t>(output.slot);
    // Never 0, which a notification has that nobody has set.
    const auto value = static_cast<unsigned>(1 + 2 * output.size + (is_last ? 1 : 0));
    papaya_write_notify(segment_, peer, offset_of(rank_, output.slot), output.buffers[slot].data(),
                        output.size * record_bytes, filled(rank_, output.slot), value);
    output.is_under_way[slot] = true;
    output.slot = 1 - output.slot;
    output.size = 0;
    output.is_ready = false;
  }

  // The slot has been emptied, and nobody reads the buffer any more.
  void make_ready(Output& output) {
    const Within phase(task_.times, Phase::shuffle);
    while (output.is_under_way[static_cast<std::size_t>(output.slot)]) step();
    int are_sources_free = 0;
    while (papaya_write_wait(segment_, 0, &are_sources_free), are_sources_free == 0) step(0.001);
    output.is_ready = true;
  }

  // Something useful if there is anything, else it waits for something to arrive.
  void step(double seconds = -1) {
    if (take() || task_.collector.sort_one()) return;
    int id = -1;
    {
      const Within phase(task_.times, Phase::shuffle);
      const Waiting waiting(task_.times);
      papaya_notify_wait(segment_, 0, notifications(), seconds, &id);
    }
    if (id >= 0) take(id);
  }

  bool take() {
    const Within phase(task_.times, Phase::shuffle);
    int id = -1;
    papaya_notify_wait(segment_, 0, notifications(), 0, &id);
    if (id >= 0) take(id);
    return id >= 0;
  }

  void take(int id) {
    const Within phase(task_.times, Phase::shuffle);
    const int peer = id / slots % ranks_;
    unsigned value = 0;
    if (id >= emptied(0, 0)) {
      papaya_notify_reset(segment_, id, &value);
      outputs_[static_cast<std::size_t>(peer)].is_under_way[static_cast<std::size_t>(id % slots)] = false;
      return;
    }
    // In the order of writing: the other slot may have been written before, and been seen after.
    int& slot = next_slot_[static_cast<std::size_t>(peer)];
    while (papaya_notify_reset(segment_, filled(peer, slot), &value), value != 0) {
      const auto* const records = reinterpret_cast<const Record*>(memory_ + offset_of(peer, slot));
      task_.collector.add({records, (value - 1) / 2});
      if ((value - 1) % 2 != 0) --open_writers_;
      papaya_notify(segment_, peer, emptied(rank_, slot), 1);
      slot = 1 - slot;
    }
  }

  const Task& task_;
  const int rank_;
  const int ranks_;
  const std::size_t capacity_;  // records of a buffer
  papaya_segment segment_ = PAPAYA_SEGMENT_NULL;
  const unsigned char* memory_ = nullptr;
  std::vector<Output> outputs_;  // by reader
  std::vector<int> next_slot_;   // by writer
  int open_writers_ = task_.job.ranks - 1;
};

}  // namespace

std::string shuffle_notified(const Task& task) {
  const Within phase(task.times, Phase::set_up);
  NotifiedShuffle shuffle(task);
  try {
    shuffle.run();
  } catch (const std::exception& problem) {
    abort_job(problem.what());  // the others need this rank to go on, and to free the segment
  }
  return shuffle.place();
}

}  // namespace terasort
