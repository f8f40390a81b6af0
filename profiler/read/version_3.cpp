#include "profiler/read/version_3.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/reason.hpp"

namespace papaya::report::version_3 {

namespace {

// The rest of the header is the same, but lies behind the names.
constexpr std::size_t names_offset = 2040;
constexpr std::size_t names_bytes = algorithms * trace::name_bytes;
static_assert(offsetof(trace::Header, reason_names) == names_offset);
static_assert(offsetof(trace::Header, algorithms_offset) == header_bytes - names_bytes);

struct Totals {
  trace::Total by_size[trace::first_collectives][trace::first_forms][size_class_count];
  std::uint64_t calls_by_algorithm[trace::first_collectives][algorithms];
  std::uint64_t native_calls_by_reason[trace::first_collectives][32];
  std::uint64_t nonblocking_by_algorithm[trace::first_collectives][algorithms];
  std::uint64_t native_nonblocking_by_reason[trace::first_collectives][32];
};
static_assert(sizeof(Totals) == totals_bytes);

struct Event {
  std::uint64_t arrival_ticks;
  std::uint64_t exit_ticks;
  std::uint64_t communicator;
  std::uint64_t call;
  std::uint64_t bytes;
  std::uint64_t call_site;
  std::uint32_t commit;
  std::int32_t root;
  std::uint8_t collective;
  std::uint8_t form;
  std::uint8_t algorithm;
  std::uint8_t reason;
  std::uint16_t thread;
  std::uint16_t phase;
};
static_assert(sizeof(Event) == sizeof(trace::Event));

}  // namespace

trace::Header header_of(const std::byte* header) {
  trace::Header today{};
  auto* const to = reinterpret_cast<std::byte*>(&today);
  std::memcpy(to, header, names_offset);
  std::memcpy(to + names_offset, header + names_offset + names_bytes, header_bytes - names_offset - names_bytes);
  today.algorithm_count = algorithms;
  // A reason had no id; its sentence is today's or the one before.
  for (std::size_t r = 0; r < trace::reason_capacity; ++r) {
    const std::string_view field(today.reason_names[r], trace::name_bytes);
    const std::string_view sentence = field.substr(0, field.find('\0'));
    for (std::size_t i = 0; i < reason_names.size(); ++i)
      if (sentence == reason_names[i] || (!sentence.empty() && sentence == old_reason_names[i]))
        reason_ids[i].copy(today.reason_ids[r], trace::id_bytes - 1);
  }
  return today;
}

std::vector<trace::Algorithm> names_of(const std::byte* header) {
  std::vector<trace::Algorithm> rows(algorithms);
  for (std::size_t a = 0; a < rows.size(); ++a)
    std::memcpy(rows[a].name, header + names_offset + a * trace::name_bytes, trace::name_bytes);
  return rows;
}

trace::Totals totals_of(const std::byte* totals, std::vector<trace::Algorithm>& algorithms_of_file) {
  Totals then;
  std::memcpy(&then, totals, sizeof then);
  trace::Totals today{};
  for (std::size_t c = 0; c < trace::first_collectives; ++c) {
    std::memcpy(today.by_size[c], then.by_size[c], sizeof then.by_size[c]);
    std::memcpy(today.native_calls_by_reason[c], then.native_calls_by_reason[c], sizeof then.native_calls_by_reason[c]);
    std::memcpy(today.native_nonblocking_by_reason[c], then.native_nonblocking_by_reason[c],
                sizeof then.native_nonblocking_by_reason[c]);
  }
  for (std::size_t c = 0; c < trace::first_collectives; ++c)
    for (std::size_t a = 0; a < algorithms; ++a) {
      algorithms_of_file[a].calls[c] = then.calls_by_algorithm[c][a];
      algorithms_of_file[a].nonblocking[c] = then.nonblocking_by_algorithm[c][a];
    }
  return today;
}

trace::Event event_of(const trace::Event& read) {
  const Event then = std::bit_cast<Event>(read);
  trace::Event today = read;
  // A number above 32 bits is damage, and so is the greatest number of 32 bits.
  today.call_site =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(then.call_site, std::numeric_limits<std::uint32_t>::max()));
  today.algorithm = then.algorithm;
  today.reason = then.reason;
  return today;
}

}  // namespace papaya::report::version_3
