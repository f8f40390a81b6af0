// For each pair of ranks, writer and reader, there are slots in the reader's segment, used in turn. A full buffer is
// written to the next slot with a notification, `filled`; the reader says by another, `emptied`, that it has copied the
// records out of the slot: credit-based flow control, as in Gall et al. (2019, section 4.2), whose reader has one slot.
// A writer that has a slot to spare goes on at once, so that it waits only where the reader is behind by all of them.
// Buffers and slots are used again while caches have them; records reach memory only in the bins. Nobody enters a
// barrier, not even in the end: the segment is freed when the records are sorted.
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "shuffle.hpp"

namespace terasort {

namespace {

// Notifications of a rank: those of the writers' slots, then those of its own slots at the readers.
struct Layout {
  std::size_t ranks;
  std::size_t slots;
  std::size_t capacity;  // records of a slot

  Layout(const Plan& plan, const Options& options, const Job& job) noexcept
      : ranks(static_cast<std::size_t>(job.ranks)), slots(plan.slots), capacity(options.buffer / record_bytes) {}

  std::size_t slot_bytes() const noexcept { return capacity * record_bytes; }
  std::size_t segment_bytes() const noexcept { return ranks * slots * slot_bytes(); }
  std::size_t offset_of(std::size_t writer, std::size_t slot) const noexcept {
    return (writer * slots + slot) * slot_bytes();
  }
  int notifications() const noexcept { return 2 * emptied(0, 0); }
  int filled(std::size_t writer, std::size_t slot) const noexcept { return static_cast<int>(writer * slots + slot); }
  int emptied(std::size_t reader, std::size_t slot) const noexcept {
    return static_cast<int>((ranks + reader) * slots + slot);
  }
};

class NotifiedShuffle {
 public:
  NotifiedShuffle(const Task& task, Segment& segment)
      : task_(task),
        segment_(segment),
        layout_(task.plan, task.options, task.job),
        rank_(static_cast<std::size_t>(task.job.rank)),
        outputs_(layout_.ranks),
        next_slot_(layout_.ranks) {
    for (Output& output : outputs_) {
      output.buffers.resize(layout_.slots);
      output.credits = layout_.slots;
      use(output, 0);
    }
  }

  void run() {
    const Within phase(task_.times, Phase::shuffle);
    Records room;
    for (std::uint64_t done = 0; done < task_.source.count();) {
      const std::uint64_t count = std::min(task_.plan.chunk, task_.source.count() - done);
      partition(task_.read(done, count, room), task_.source.first() + done);
      done += count;
    }
    for (std::size_t peer = 0; peer < layout_.ranks; ++peer)
      if (peer != rank_) write(peer, true);
    collect_own();
    while (open_writers_ > 0)
      if (!take() && !task_.collector.sort_one() && !task_.collector.sort_bin()) wait(-1);
    const Waiting waiting(task_.times);
    int are_free = 0;
    papaya_write_wait(segment_.handle, -1, &are_free);  // the buffers end
  }

 private:
  struct Output {
    std::vector<Records> buffers;
    Record* next = nullptr;  // in the buffer that is filled
    Record* end = nullptr;
    std::size_t buffer = 0;     // that one
    std::size_t under_way = 0;  // the first buffers, whose records may still be read
    std::size_t slot = 0;       // the next one
    std::size_t emptied = 0;    // the one that the reader says next that it has emptied
    std::size_t credits = 0;    // slots that are empty
  };

  void use(Output& output, std::size_t buffer) {
    output.buffer = buffer;
    Records& records = output.buffers[buffer];
    records.resize(layout_.capacity);
    output.next = records.data();
    output.end = output.next + layout_.capacity;
  }

  void partition(std::span<const Record> records, std::uint64_t place) {
    constexpr std::size_t between_looks = 1024;
    const Within phase(task_.times, Phase::partition);
    std::size_t looked = 0;
    for (const Record& record : records) {
      const auto peer = static_cast<std::size_t>(task_.splitters.rank_of(record.key(), place++));
      Output& output = outputs_[peer];
      *output.next++ = record;
      if (output.next == output.end) peer == rank_ ? collect_own() : write(peer, false);
      if (++looked % between_looks == 0) take();
    }
  }

  std::span<const Record> filled_of(const Output& output) const noexcept {
    return {output.end - layout_.capacity, output.next};
  }

  void collect_own() {
    const Within phase(task_.times, Phase::shuffle);
    Output& own = outputs_[rank_];
    task_.collector.add(filled_of(own));
    use(own, 0);
  }

  // `is_last`: nothing follows; it may be empty.
  void write(std::size_t peer, bool is_last) {
    const Within phase(task_.times, Phase::shuffle);
    Output& output = outputs_[peer];
    while (output.credits == 0) step(-1);
    const std::span<const Record> records = filled_of(output);
    // Never 0, which a notification has that nobody has set.
    const auto value = static_cast<unsigned>(1 + 2 * records.size() + (is_last ? 1 : 0));
    {
      const Calling call(task_.times);
      papaya_write_notify(segment_.handle, static_cast<int>(peer), layout_.offset_of(rank_, output.slot),
                          records.data(), records.size_bytes(), layout_.filled(rank_, output.slot), value);
    }
    --output.credits;
    output.slot = (output.slot + 1) % layout_.slots;
    output.under_way = output.buffer + 1;
    use_free(output);
  }

  // The same buffer if nobody reads it any more, as caches have it, else another one.
  void use_free(Output& output) {
    while (true) {
      if (are_sources_free())
        for (Output& each : outputs_) each.under_way = 0;
      if (output.under_way < layout_.slots) break;
      step(0.001);
    }
    use(output, output.under_way);
  }

  bool are_sources_free() {
    const Calling call(task_.times);
    int are_free = 0;
    papaya_write_wait(segment_.handle, 0, &are_free);
    return are_free != 0;
  }

  // Something useful if there is anything, else it waits for something to arrive.
  void step(double seconds) {
    if (!take() && !task_.collector.sort_one()) wait(seconds);
  }

  void wait(double seconds) {
    const Within phase(task_.times, Phase::shuffle);
    int id = -1;
    {
      const Waiting waiting(task_.times);
      papaya_notify_wait(segment_.handle, 0, layout_.notifications(), seconds, &id);
    }
    if (id >= 0) take(id);
  }

  bool take() {
    const Within phase(task_.times, Phase::shuffle);
    int id = -1;
    {
      const Calling call(task_.times);
      papaya_notify_wait(segment_.handle, 0, layout_.notifications(), 0, &id);
    }
    if (id >= 0) take(id);
    return id >= 0;
  }

  unsigned reset(int id) {
    const Calling call(task_.times);
    unsigned value = 0;
    papaya_notify_reset(segment_.handle, id, &value);
    return value;
  }

  void take(int id) {
    const std::size_t peer = static_cast<std::size_t>(id) / layout_.slots % layout_.ranks;
    // In the order of writing: a later slot may have been seen first.
    if (id >= layout_.emptied(0, 0)) {
      Output& output = outputs_[peer];
      while (reset(layout_.emptied(peer, output.emptied)) != 0) {
        ++output.credits;
        output.emptied = (output.emptied + 1) % layout_.slots;
      }
      return;
    }
    std::size_t& slot = next_slot_[peer];
    while (const unsigned value = reset(layout_.filled(peer, slot))) {
      const auto* const records = reinterpret_cast<const Record*>(segment_.memory() + layout_.offset_of(peer, slot));
      task_.collector.add({records, (value - 1) / 2});
      if ((value - 1) % 2 != 0) --open_writers_;
      {
        const Calling call(task_.times);
        papaya_notify(segment_.handle, static_cast<int>(peer), layout_.emptied(rank_, slot), 1);
      }
      slot = (slot + 1) % layout_.slots;
    }
  }

  const Task& task_;
  Segment& segment_;
  const Layout layout_;
  const std::size_t rank_;
  std::vector<Output> outputs_;         // by reader
  std::vector<std::size_t> next_slot_;  // by writer
  int open_writers_ = task_.job.ranks - 1;
};

}  // namespace

std::unique_ptr<Segment> make_segment(const Plan& plan, const Options& options, const Job& job) {
  const Layout layout(plan, options, job);
  return std::make_unique<Segment>(layout.segment_bytes(), layout.notifications());
}

void shuffle_notified(const Task& task, Segment& segment) {
  NotifiedShuffle(task, segment).run();
}

}  // namespace terasort
