#include "profiler/record/weak_recorder.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/log.hpp"
#include "profiler/record/recorder.hpp"

namespace papaya {

namespace {

constexpr std::size_t prefault_bytes = 8 << 20;  // as Recorder

constexpr std::size_t file_bytes(std::uint64_t events) {
  return trace::weak::events_offset + events * sizeof(trace::WeakEvent);
}

template <std::size_t capacity>
void put_text(char (&field)[capacity], std::string_view text) noexcept {
  Recorder::set_name(field, capacity, text);
}

// Relaxed: what is published is so by `commit` and `exit_ticks`.
template <class Field, class Value>
void put(Field& field, Value value) noexcept {
  std::atomic_ref(field).store(static_cast<Field>(value), std::memory_order_relaxed);
}

}  // namespace

bool WeakRecorder::open(const std::string& path, const trace::Header& record) {
  if (has_failed_) return false;
  std::string error;
  const FilePart whole[] = {{0, file_bytes(capacity_)}};
  file_ = create_mapped(path, whole->bytes, error, std::span(whole).first(whole->bytes <= prefault_bytes ? 1 : 0));
  void* const base = file_.base;
  if (base == nullptr) {
    has_failed_ = true;
    log::warn("rank " + std::to_string(record.rank) +
              " cannot make the file for its calls of weakly consistent collectives: " + error +
              "; they are not recorded.");
    return false;
  }
  auto* const bytes = static_cast<std::byte*>(base);
  rows_ = reinterpret_cast<trace::WeakRow*>(bytes + trace::weak::rows_offset);
  events_ = reinterpret_cast<trace::WeakEvent*>(bytes + trace::weak::events_offset);
  header_ = reinterpret_cast<trace::WeakHeader*>(bytes);
  header_->version = trace::weak::format_version;
  header_->endian_mark = trace::endian_mark;
  header_->header_bytes = sizeof(trace::WeakHeader);
  header_->row_bytes = sizeof(trace::WeakRow);
  header_->event_bytes = sizeof(trace::WeakEvent);
  header_->rank = record.rank;
  header_->begin_ticks = record.begin_ticks;
  header_->begin_unix_ns = record.begin_unix_ns;
  header_->rows_offset = trace::weak::rows_offset;
  header_->row_capacity = trace::weak::row_capacity;
  header_->events_offset = trace::weak::events_offset;
  header_->event_capacity = capacity_;
  std::memcpy(header_->magic, trace::weak::magic, sizeof trace::weak::magic);
  return true;
}

const WeakRecorder::Collective* WeakRecorder::add(const std::string& path, const trace::Header& record,
                                                  const WeakDescription& description, const Where& where) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = ++created_[where.communicator];
  if (header_ == nullptr && !open(path, record)) return nullptr;
  trace::WeakRow wanted{};
  wanted.communicator = where.communicator;
  wanted.size = where.size;
  wanted.rank = where.rank;
  wanted.root = description.root;
  put_text(wanted.collective, description.collective);
  put_text(wanted.algorithm, description.algorithm);
  put_text(wanted.parameters, description.parameters);
  put_text(wanted.communicator_name, where.name);
  trace::WeakRow* const end = rows_ + header_->row_count;
  trace::WeakRow* const row = std::find_if(rows_, end, [&](const trace::WeakRow& one) {
    return std::memcmp(&one, &wanted, offsetof(trace::WeakRow, communicator_name)) == 0;
  });
  if (row == rows_ + trace::weak::row_capacity) {
    ++header_->lost_collectives;
    return nullptr;
  }
  if (row == end) {
    *row = wanted;
    // Release: a reader that finds the count finds the row.
    std::atomic_ref(header_->row_count).fetch_add(1, std::memory_order_release);
  }
  const std::uint64_t id = where.is_known ? trace::arrival_key(where.communicator, number) | 1 : 0;
  return &collectives_.emplace_back(Collective{id, description.bytes, static_cast<std::uint32_t>(row - rows_)});
}

void WeakRecorder::close() noexcept {
  if (header_ == nullptr) return;
  write_out(file_);
  unmap(file_.base, file_.bytes);
  header_ = nullptr;
  has_failed_ = true;
}

std::uint64_t WeakRecorder::begin(const Collective& collective, std::uint64_t clock, std::uint64_t ticks,
                                  Place place) noexcept {
  if (header_ == nullptr) return not_recorded;
  const std::uint64_t number = std::atomic_ref(header_->event_count).fetch_add(1, std::memory_order_relaxed);
  trace::WeakEvent& event = events_[number & (capacity_ - 1)];
  put(event.exit_ticks, 0);
  put(event.arrival_ticks, ticks);
  put(event.collective, collective.id);
  put(event.clock, clock);
  put(event.bytes, collective.bytes);
  put(event.row, collective.row);
  put(event.call_site, place.call_site);
  put(event.ended_site, 0);
  put(event.thread, thread_number());
  put(event.phase, place.phase);
  // Release: whoever reads this number finds the fields above.
  std::atomic_ref(event.commit).store(static_cast<std::uint32_t>(number + 1), std::memory_order_release);
  return number;
}

void WeakRecorder::finish(const Collective& collective, std::uint64_t number, std::uint64_t exit_ticks,
                          std::uint64_t ended_site, const WeakOutcome& outcome) noexcept {
  if (header_ == nullptr || number == not_recorded) return;
  trace::WeakEvent& event = events_[number & (capacity_ - 1)];
  trace::WeakRow& row = rows_[collective.row];
  // Another collective's calls may have wrapped around the ring since.
  if (std::atomic_ref(event.commit).load(std::memory_order_relaxed) == static_cast<std::uint32_t>(number + 1)) {
    put(event.oldest, outcome.oldest);
    put(event.own, outcome.own);
    put(event.updated_bytes, outcome.updated_bytes);
    put(event.inside_ns, outcome.inside_ns);
    put(event.waited_ns, outcome.waited_ns);
    put(event.share, outcome.share);
    put(event.ranks, outcome.ranks);
    put(event.ended_site, ended_site);
    // Release: a reader that finds the exit finds the others.
    std::atomic_ref(event.exit_ticks).store(exit_ticks, std::memory_order_release);
  }
  sum(row.calls, 1);
  sum(row.bytes, collective.bytes);
  sum(row.inside_ns, outcome.inside_ns);
  sum(row.waited_ns, outcome.waited_ns);
  sum(row.share_millionths, static_cast<std::uint64_t>(std::llround(outcome.share * 1e6)));
  if (outcome.oldest == 0) return;
  const std::uint64_t clock = outcome.clock;
  // By some algorithms ranks that are ahead may have brought all there is.
  const std::uint64_t staleness = clock - std::min(clock, outcome.oldest);
  sum(row.aged_calls, 1);
  sum(row.staleness, staleness);
  std::atomic_ref most(row.most_staleness);
  std::uint64_t known = most.load(std::memory_order_relaxed);
  while (known < staleness && !most.compare_exchange_weak(known, staleness, std::memory_order_relaxed)) {
  }
}

}  // namespace papaya
