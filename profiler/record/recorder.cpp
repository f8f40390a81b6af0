#include "profiler/record/recorder.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "base/clock.hpp"

namespace papaya {

namespace {
constexpr std::size_t prefault_bytes = 8 << 20;  // more would take too long at the start, and too much memory
}

Recorder::~Recorder() {
  close();
}

bool Recorder::open(const std::string& path, std::uint64_t event_capacity, std::span<const std::string_view> algorithms,
                    std::string& error, std::span<const Function> functions) noexcept {
  const std::size_t rows = algorithms.size() + 1;
  const std::size_t bytes = trace::file_bytes(event_capacity, rows, functions.size());
  // The first write to a page costs some microseconds; taken now, not in the application's calls. Not the board and
  // the table behind it, of which few pages are ever used, nor the intervals, which many programs have none of.
  const FilePart in_use[] = {
      {0, trace::node_board_offset},
      {trace::events_offset, trace::intervals_offset(event_capacity, rows, functions.size()) - trace::events_offset},
  };
  file_ = create_mapped(path, bytes, error, std::span(in_use).first(bytes <= prefault_bytes ? std::size(in_use) : 0));
  void* const base = file_.base;
  if (base == nullptr) return false;
  auto* bytes_base = static_cast<std::byte*>(base);
  totals_ = reinterpret_cast<trace::Totals*>(bytes_base + trace::totals_offset);
  algorithms_ = reinterpret_cast<trace::Algorithm*>(bytes_base + trace::algorithms_offset(event_capacity));
  communicators_ = reinterpret_cast<trace::Communicator*>(bytes_base + trace::communicators_offset);
  events_ = reinterpret_cast<trace::Event*>(bytes_base + trace::events_offset);
  node_board_ = reinterpret_cast<trace::NodeBoard*>(bytes_base + trace::node_board_offset);
  node_calls_ = reinterpret_cast<trace::NodeCalls*>(bytes_base + trace::node_calls_offset);
  event_mask_ = event_capacity - 1;
  header_ = reinterpret_cast<trace::Header*>(bytes_base);
  header_->version = trace::format_version;
  header_->endian_mark = trace::endian_mark;
  header_->header_bytes = sizeof(trace::Header);
  header_->event_bytes = sizeof(trace::Event);
  header_->collectives = collective_count;
  header_->forms = form_count;
  header_->totals_offset = trace::totals_offset;
  header_->communicators_offset = trace::communicators_offset;
  header_->communicator_capacity = trace::communicator_capacity;
  header_->events_offset = trace::events_offset;
  header_->event_capacity = event_capacity;
  header_->modules_offset = trace::modules_offset;
  header_->frames_offset = trace::frames_offset;
  header_->call_sites_offset = trace::call_sites_offset;
  header_->node_board_offset = trace::node_board_offset;
  header_->node_calls_offset = trace::node_calls_offset;
  header_->node_calls_capacity = trace::node_calls_capacity;
  header_->algorithms_offset = trace::algorithms_offset(event_capacity);
  header_->algorithm_count = rows;
  header_->timed_offset = trace::timed_offset(event_capacity, rows);
  header_->timed_count = functions.size();
  header_->intervals_offset = trace::intervals_offset(event_capacity, rows, functions.size());
  header_->interval_capacity = functions.empty() ? 0 : trace::interval_capacity;
  timed_ = reinterpret_cast<trace::TimedFunction*>(bytes_base + header_->timed_offset);
  intervals_ = reinterpret_cast<trace::Interval*>(bytes_base + header_->intervals_offset);
  header_->stacks_offset = trace::stacks_offset(event_capacity, rows, functions.size());
  header_->trials_offset = trace::trials_offset(event_capacity, rows, functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i) {
    set_name(timed_[i].name, sizeof timed_[i].name, functions[i].name);
    timed_[i].kind = static_cast<std::uint32_t>(functions[i].kind);
  }
  set_name(algorithms_[0].name, trace::name_bytes, "native");
  for (std::size_t i = 0; i < algorithms.size(); ++i)
    set_name(algorithms_[i + 1].name, trace::name_bytes, algorithms[i]);
  header_->ns_per_tick = 1.0;
  header_->phase_count = 1;
  std::memcpy(header_->magic, trace::magic, sizeof trace::magic);
  return true;
}

void Recorder::start_spilling(const std::string& path, std::string later_path, std::uint64_t limit_bytes) noexcept {
  spiller_.reset(new (std::nothrow) Spiller(*header_, events_));
  if (spiller_ == nullptr) return;
  if (spiller_->open(path, std::move(later_path), limit_bytes) && spiller_->start())
    stretch_mask_ = spiller_->stretch_mask();
}

void Recorder::stop_spilling() noexcept {
  if (spiller_ != nullptr) spiller_->stop();
}

void Recorder::close() noexcept {
  if (header_ == nullptr) return;
  stop_spilling();
  const std::uint64_t capacity = event_mask_ + 1;
  if (header_->event_count > capacity) header_->lost_events = header_->event_count - capacity;
  write_out(file_);
  // Another thread may still be on its way out of a call.
  if (!concurrent_) unmap(file_.base, file_.bytes);
  header_ = nullptr;
}

void Recorder::write_out_head() noexcept {
  if (!file_.is_on_network) return;
  write_out(header_, sizeof *header_);
  write_out(&stacks(), sizeof stacks());
}

void Recorder::set_name(char* field, std::size_t capacity, std::string_view name) noexcept {
  const std::size_t length = std::min(name.size(), capacity - 1);
  std::memcpy(field, name.data(), length);
  std::memset(field + length, 0, capacity - length);
}

trace::TrialRow* Recorder::add_trials() noexcept {
  const std::uint64_t row = std::atomic_ref(header_->trial_count).fetch_add(1, std::memory_order_relaxed);
  if (row >= trace::trial_capacity) return nullptr;
  return reinterpret_cast<trace::TrialRow*>(reinterpret_cast<std::byte*>(header_) + header_->trials_offset) + row;
}

std::uint64_t Recorder::mpi_ticks() const noexcept {
  std::uint64_t sum = 0;
  const auto add = [&](std::uint64_t& ticks) { sum += std::atomic_ref(ticks).load(std::memory_order_relaxed); };
  for (auto& forms : totals_->by_size)
    for (auto& sizes : forms)
      for (trace::Total& total : sizes) add(total.ticks);
  for (std::uint64_t i = 0; i < header_->timed_count; ++i) add(timed_[i].ticks);
  return sum;
}

void Recorder::settle_phase(std::uint64_t ticks) noexcept {
  const std::uint64_t since = phase_since_ticks_ != 0 ? phase_since_ticks_ : header_->init_ticks;
  const std::uint64_t in_mpi = mpi_ticks();
  trace::PhaseTime& time = header_->phase_times[phase_.load(std::memory_order_relaxed)];
  if (since != 0) time.ticks += ticks - std::min(since, ticks);
  time.mpi_ticks += in_mpi - std::min(phase_since_mpi_, in_mpi);
  phase_since_ticks_ = ticks;
  phase_since_mpi_ = in_mpi;
}

void Recorder::end_phases(std::uint64_t ticks) noexcept {
  const std::lock_guard lock(phases_mutex_);
  if (header_->phase_count > 1) settle_phase(ticks);
}

void Recorder::begin_phase(std::string_view name) noexcept {
  const std::lock_guard lock(phases_mutex_);
  settle_phase(clock::ticks());
  const std::uint16_t present = phase_.load(std::memory_order_relaxed);
  if (phases_deep_ < deepest_phase) phases_[phases_deep_] = present;
  if (++phases_deep_ > deepest_phase) return;
  name = name.substr(0, trace::name_bytes - 1);
  std::uint64_t number = 1;
  while (number < header_->phase_count && name != header_->phase_names[number]) ++number;
  if (number == trace::phase_capacity) return;
  if (number == header_->phase_count) {
    set_name(header_->phase_names[number], trace::name_bytes, name);
    header_->phase_count = number + 1;
  }
  phase_.store(static_cast<std::uint16_t>(number), std::memory_order_relaxed);
  ++header_->phase_times[number].entered;
}

void Recorder::end_phase() noexcept {
  const std::lock_guard lock(phases_mutex_);
  if (phases_deep_ == 0) return;
  settle_phase(clock::ticks());
  if (--phases_deep_ < deepest_phase) phase_.store(phases_[phases_deep_], std::memory_order_relaxed);
}

trace::Communicator* Recorder::add_communicator(std::uint64_t id, std::uint64_t parent_id, int size, int rank,
                                                int nodes, std::string_view name) noexcept {
  std::atomic_ref<std::uint64_t> count(header_->communicator_count);
  // Claimed first, so that two threads never share a row; the count is brought back when the table is full.
  const std::uint64_t row_number = count.fetch_add(1, std::memory_order_relaxed);
  if (row_number >= trace::communicator_capacity) {
    count.store(trace::communicator_capacity, std::memory_order_relaxed);
    std::atomic_ref(header_->lost_communicators).fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  trace::Communicator& row = communicators_[row_number];
  row.parent_id = parent_id;
  row.size = size;
  row.rank = rank;
  row.nodes = nodes;
  set_name(row.name, sizeof row.name, name);
  row.id = id;
  return &row;
}

}  // namespace papaya
