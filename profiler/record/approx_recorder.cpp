#include "profiler/record/approx_recorder.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/log.hpp"
#include "profiler/record/recorder.hpp"

namespace papaya {

namespace {

// Relaxed: nothing else depends on them.
std::uint64_t add_one(std::uint64_t& counter) noexcept {
  return std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void ApproxRecorder::open(const std::string& path, const trace::Header* record, std::size_t rules) {
  if (!path.empty()) {
    std::string error;
    file_ = create_mapped(path, sizeof(trace::ApproxHeader) + rules * sizeof(trace::ApproxRow), error);
    header_ = static_cast<trace::ApproxHeader*>(file_.base);
    if (header_ == nullptr)
      log::warn("rank " + std::to_string(record->rank) + " cannot make the file for its approximate calls: " + error +
                "; the report leaves them out.");
  }
  if (header_ == nullptr) {
    in_memory_ = std::make_unique<trace::ApproxRow[]>(rules);
    rows_ = in_memory_.get();
    return;
  }
  rows_ = reinterpret_cast<trace::ApproxRow*>(header_ + 1);
  header_->version = trace::approx::format_version;
  header_->endian_mark = trace::endian_mark;
  header_->header_bytes = sizeof(trace::ApproxHeader);
  header_->row_bytes = sizeof(trace::ApproxRow);
  header_->rank = record->rank;
  header_->begin_ticks = record->begin_ticks;
  header_->begin_unix_ns = record->begin_unix_ns;
  header_->row_count = rules;
  std::memcpy(header_->magic, trace::approx::magic, sizeof trace::approx::magic);
}

void ApproxRecorder::describe(std::size_t rule, Collective collective, std::string_view places,
                              std::string_view bound) noexcept {
  trace::ApproxRow& row = rows_[rule];
  row.collective = static_cast<std::uint32_t>(collective);
  Recorder::set_name(row.places, sizeof row.places, places);
  Recorder::set_name(row.bound, sizeof row.bound, bound);
}

void ApproxRecorder::close() noexcept {
  if (header_ != nullptr) {
    write_out(file_);
    unmap(file_.base, file_.bytes);
  }
  header_ = nullptr;
  rows_ = nullptr;
}

void ApproxRecorder::count_exact(std::size_t rule, std::string_view why) noexcept {
  if (rows_ == nullptr) return;
  trace::ApproxRow& row = rows_[rule];
  add_one(row.calls);
  // One reason is enough. Threads that find the first at once write the same sort of text.
  if (row.why[0] == '\0') Recorder::set_name(row.why, sizeof row.why, why);
}

void ApproxRecorder::count_approximate(std::size_t rule, std::int64_t staleness) noexcept {
  if (rows_ == nullptr) return;
  trace::ApproxRow& row = rows_[rule];
  add_one(row.calls);
  add_one(row.approximate);
  if (staleness < 0) return;
  add_one(row.aged);
  std::atomic_ref most(row.most_staleness);
  std::uint64_t known = most.load(std::memory_order_relaxed);
  while (known < static_cast<std::uint64_t>(staleness) &&
         !most.compare_exchange_weak(known, static_cast<std::uint64_t>(staleness), std::memory_order_relaxed)) {
  }
}

void ApproxRecorder::count_error(std::size_t rule, double error) noexcept {
  if (rows_ == nullptr) return;
  trace::ApproxRow& row = rows_[rule];
  const std::uint64_t number = add_one(row.verified);
  std::atomic_ref(row.errors[number % trace::approx::error_capacity]).store(error, std::memory_order_relaxed);
}

}  // namespace papaya
