#include "profiler/read/read_weak.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace papaya::report {

namespace {

template <std::size_t bytes>
bool ends_in_bounds(const char (&field)[bytes]) {
  return std::memchr(field, '\0', bytes) != nullptr;
}

bool is_possible(const trace::WeakRow& row) {
  return ends_in_bounds(row.collective) && ends_in_bounds(row.algorithm) && ends_in_bounds(row.parameters) &&
         ends_in_bounds(row.communicator_name) && row.size >= 1 && row.rank >= 0 && row.rank < row.size &&
         row.root >= -1 && row.root < row.size;
}

bool is_whole(const trace::WeakEvent& event, std::uint64_t number, std::uint64_t rows, const RankFile& record) {
  return event.commit == static_cast<std::uint32_t>(number + 1) && event.row < rows && event.clock > 0 &&
         event.call_site <= record.call_sites->size() && event.ended_site <= record.call_sites->size() &&
         event.phase < record.header.phase_count && event.arrival_ticks >= record.header.begin_ticks &&
         (event.exit_ticks == 0 || (event.exit_ticks >= event.arrival_ticks && event.share >= 0 && event.share <= 1));
}

// "" if its tables lie within the file.
std::string problem_with(const trace::WeakHeader& header, const Source& source, const RankFile& record) {
  if (std::memcmp(header.magic, trace::weak::magic, sizeof header.magic) != 0 ||
      header.endian_mark != trace::endian_mark)
    return "is not a record of weakly consistent collectives and is left out";
  if (header.version != trace::weak::format_version)
    return "has a format version that this papaya does not read, and is left out";
  if (header.rank != record.header.rank || header.begin_ticks != record.header.begin_ticks ||
      header.begin_unix_ns != record.header.begin_unix_ns)
    return "is of another run and is left out";
  constexpr std::uint64_t most = 1 << 24;  // bounds the memory that a damaged file can ask for
  const bool is_possible = header.header_bytes == sizeof header && header.row_bytes == sizeof(trace::WeakRow) &&
                           header.event_bytes == sizeof(trace::WeakEvent) && header.row_count <= header.row_capacity &&
                           header.row_capacity <= most && header.event_capacity <= most &&
                           std::has_single_bit(header.event_capacity);
  if (!is_possible) return "is damaged (impossible sizes) and is left out";
  const auto is_there = [&](std::uint64_t offset, std::uint64_t bytes) {
    return offset <= source.bytes() && bytes <= source.bytes() - offset;
  };
  if (!is_there(header.rows_offset, header.row_capacity * sizeof(trace::WeakRow)) ||
      !is_there(header.events_offset, header.event_capacity * sizeof(trace::WeakEvent)))
    return "is cut short and is left out";
  return {};
}

}  // namespace

std::string read_weak(const Source& source, RankFile& record) {
  trace::WeakHeader header{};
  if (source.bytes() < sizeof header || !source.read(0, &header, sizeof header)) return "is cut short and is left out";
  if (std::string problem = problem_with(header, source, record); !problem.empty()) return problem;
  WeakCalls calls;
  calls.lost_collectives = header.lost_collectives;
  calls.begun = header.event_count;
  calls.rows.resize(header.row_count);
  if (!source.read(header.rows_offset, calls.rows.data(), calls.rows.size() * sizeof(trace::WeakRow)))
    return "could not be read to its end and is left out";
  if (!std::all_of(calls.rows.begin(), calls.rows.end(), is_possible)) return "is damaged (its table) and is left out";
  const std::uint64_t kept = std::min(header.event_count, header.event_capacity);
  calls.overwritten = header.event_count - kept;
  std::vector<trace::WeakEvent> ring(kept);
  if (!source.read(header.events_offset, ring.data(), ring.size() * sizeof(trace::WeakEvent)))
    return "could not be read to its end and is left out";
  for (std::uint64_t number = header.event_count - kept; number < header.event_count; ++number) {
    const trace::WeakEvent& event = ring[number & (header.event_capacity - 1)];
    if (is_whole(event, number, header.row_count, record)) calls.events.push_back(event);
  }
  record.weak = std::move(calls);
  return {};
}

}  // namespace papaya::report
