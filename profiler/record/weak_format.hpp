// The per-rank file rank-NNNNN.papw, version 2: the rank's calls of weakly consistent collectives. Made when the
// program creates its first one. A header, a table with exact sums of the run, then a ring of events, mapped and valid
// at any moment as the rank's .pap is (format.hpp). docs/trace_format.md describes it for other tools.
#pragma once

#include <cstdint>

namespace papaya::trace {

// The calls of one algorithm with the same parameters on one communicator.
struct WeakRow {
  std::uint64_t communicator;  // trace::Communicator::id
  std::int32_t size;           // of the communicator
  std::int32_t rank;           // of this process
  std::int32_t root;           // -1 without
  std::uint32_t reserved;
  char collective[32];  // texts end in NUL
  char algorithm[32];
  char parameters[64];
  char communicator_name[64];
  // Sums over the calls that have ended.
  std::uint64_t calls;
  std::uint64_t bytes;
  std::uint64_t inside_ns;   // in papaya's functions
  std::uint64_t waited_ns;   // of it, for other ranks
  std::uint64_t aged_calls;  // whose results have a contribution: only these have an age
  std::uint64_t staleness;   // clock less clock of the oldest contribution in the result
  std::uint64_t most_staleness;
  std::uint64_t share_millionths;  // of the elements or ranks that took part
};
static_assert(sizeof(WeakRow) == 280);

// One call. `commit` as in trace::Event.
struct WeakEvent {
  std::uint64_t arrival_ticks;
  std::uint64_t exit_ticks;  // 0: it has not ended
  std::uint64_t collective;  // equal on all its ranks, and no other's; 0: not known
  std::uint64_t clock;       // number of the call, from 1, equal on all ranks
  std::uint64_t oldest;      // clock of the oldest contribution in the result; 0: it has none
  std::uint64_t own;         // clock of this rank's own; 0: it has none
  std::uint64_t bytes;       // of a contribution
  std::uint64_t updated_bytes;
  std::uint64_t inside_ns;
  std::uint64_t waited_ns;
  double share;
  std::uint32_t row;
  std::int32_t ranks;        // whose contributions are in the result
  std::uint32_t call_site;   // as in trace::Event, in the rank's .pap: where the program called or started it
  std::uint32_t ended_site;  // where it waited for or tested a started one at last; 0: where it began, or not known
  std::uint32_t commit;
  std::uint16_t thread;  // these two as in trace::Event
  std::uint16_t phase;
};
static_assert(sizeof(WeakEvent) == 112);

struct WeakHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t endian_mark;
  std::uint32_t header_bytes;
  std::uint32_t row_bytes;
  std::uint32_t event_bytes;
  std::int32_t rank;  // this and the next two as in the rank's .pap: else the file is of another run
  std::uint64_t begin_ticks;
  std::int64_t begin_unix_ns;
  std::uint64_t rows_offset;
  std::uint64_t row_count;
  std::uint64_t row_capacity;
  std::uint64_t events_offset;
  std::uint64_t event_count;       // begun in the run; the ring holds the last min(count, capacity)
  std::uint64_t event_capacity;    // a power of two
  std::uint64_t lost_collectives;  // that did not fit the table
};
static_assert(sizeof(WeakHeader) == 104);

namespace weak {

inline constexpr char magic[8] = {'P', 'A', 'P', 'A', 'Y', 'A', 'W', '\n'};
inline constexpr std::uint32_t format_version = 2;

inline constexpr std::uint64_t rows_offset = 4096;
inline constexpr std::uint64_t row_capacity = 256;
inline constexpr std::uint64_t events_offset = 77824;  // next page after them
static_assert(rows_offset + row_capacity * sizeof(WeakRow) <= events_offset && events_offset % 4096 == 0);
inline constexpr std::uint64_t event_capacity = 1u << 15;  // in summary mode

}  // namespace weak

}  // namespace papaya::trace
