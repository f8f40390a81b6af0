// The per-rank file rank-NNNNN.papx, version 1: what has become of the rules of PAPAYA_APPROX. Made only where that is
// set. A header, then one row a rule, mapped and valid at any moment as the rank's .pap is (format.hpp).
#pragma once

#include <cstdint>

namespace papaya::trace {

namespace approx {
inline constexpr char magic[8] = {'P', 'A', 'P', 'A', 'Y', 'A', 'X', '\n'};
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::uint64_t row_capacity = 32;
inline constexpr std::uint64_t error_capacity = 1024;
}  // namespace approx

struct ApproxRow {
  // Texts end in NUL.
  char places[224];  // communicator "gradients"
  char bound[128];   // ssp_sharded, slack 2
  char why[160];     // of the first call that the rule named and that was exact all the same; "": none
  std::uint32_t collective;
  std::uint32_t reserved;
  std::uint64_t calls;                    // that the rule names
  std::uint64_t approximate;              // of these
  std::uint64_t aged;                     // of these, whose results have a contribution: only these have an age
  std::uint64_t most_staleness;           // calls that a contribution was old
  std::uint64_t verified;                 // calls whose error is known; of the last of these:
  double errors[approx::error_capacity];  // norm of the difference to the exact result, of the norm of that
};
static_assert(sizeof(ApproxRow) == 560 + approx::error_capacity * sizeof(double));

struct ApproxHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t endian_mark;
  std::uint32_t header_bytes;
  std::uint32_t row_bytes;
  std::int32_t rank;  // this and the next two as in the rank's .pap: else the file is of another run
  std::uint32_t reserved;
  std::uint64_t begin_ticks;
  std::int64_t begin_unix_ns;
  std::uint64_t row_count;
};
static_assert(sizeof(ApproxHeader) == 56);

}  // namespace papaya::trace
