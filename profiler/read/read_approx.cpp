#include "profiler/read/read_approx.hpp"

#include <algorithm>
#include <cstring>

#include "base/collective.hpp"

namespace papaya::report {

namespace {

template <std::size_t bytes>
bool ends_in_bounds(const char (&field)[bytes]) {
  return std::memchr(field, '\0', bytes) != nullptr;
}

bool is_possible(const trace::ApproxRow& row) {
  const std::uint64_t errors = std::min(row.verified, trace::approx::error_capacity);
  return ends_in_bounds(row.places) && ends_in_bounds(row.bound) && ends_in_bounds(row.why) &&
         row.collective < collective_count && row.approximate <= row.calls &&
         std::all_of(row.errors, row.errors + errors, [](double error) { return error >= 0; });
}

}  // namespace

std::string read_approx(const Source& source, RankFile& record) {
  trace::ApproxHeader header{};
  if (source.bytes() < sizeof header || !source.read(0, &header, sizeof header)) return "is cut short and is left out";
  if (std::memcmp(header.magic, trace::approx::magic, sizeof header.magic) != 0 ||
      header.endian_mark != trace::endian_mark)
    return "is not a record of approximate calls and is left out";
  if (header.version != trace::approx::format_version)
    return "has a format version that this papaya does not read, and is left out";
  if (header.rank != record.header.rank || header.begin_ticks != record.header.begin_ticks ||
      header.begin_unix_ns != record.header.begin_unix_ns)
    return "is of another run and is left out";
  if (header.header_bytes != sizeof header || header.row_bytes != sizeof(trace::ApproxRow) ||
      header.row_count > trace::approx::row_capacity)
    return "is damaged (impossible sizes) and is left out";
  std::vector<trace::ApproxRow> rows(header.row_count);
  if (source.bytes() < sizeof header + rows.size() * sizeof(trace::ApproxRow) ||
      !source.read(sizeof header, rows.data(), rows.size() * sizeof(trace::ApproxRow)))
    return "is cut short and is left out";
  if (!std::all_of(rows.begin(), rows.end(), is_possible)) return "is damaged (its table) and is left out";
  record.approx = std::move(rows);
  return {};
}

}  // namespace papaya::report
