// Between libpapaya-weak-MPI.so, which programs link, and a preloaded libpapaya.so, which records: the one finds the
// other at run time, and both are of one build.
#pragma once

#include <cstdint>

namespace papaya {

// What the calls of a weakly consistent collective have in common.
struct WeakDescription {
  const void* comm;        // of the program, an MPI_Comm
  const char* collective;  // as papaya_NAME_create
  const char* algorithm;
  const char* parameters;  // "slack=4"
  std::uint64_t bytes;     // of a contribution
  std::int32_t root;       // -1 without
};

// What a call had to work with; papaya_weak_status in other units.
struct WeakOutcome {
  std::uint64_t clock;
  std::uint64_t oldest;
  std::uint64_t own;
  std::uint64_t updated_bytes;
  std::uint64_t inside_ns;  // in papaya's functions
  std::uint64_t waited_ns;
  double share;
  std::int32_t ranks;
};

struct WeakRecords {
  // After the collective has been created, on all ranks in the same order. Null: its calls are not recorded.
  void* (*open)(const WeakDescription& description) noexcept;
  // The arrival at the call `clock`, and its end, each from papaya's function that returns to `site`, which is on the
  // stack; null: not known, or as the call's begin. `begin` returns a number for `finish`.
  std::uint64_t (*begin)(void* collective, std::uint64_t clock, const void* site) noexcept;
  void (*finish)(void* collective, std::uint64_t number, const void* site, const WeakOutcome& outcome) noexcept;
  // libpapaya.so's MPI_Finalize calls `act` right before MPI's. The last one counts.
  void (*before_finalize)(void (*act)() noexcept) noexcept;
};

// papaya_weak_records of libpapaya.so: null where nothing is recorded, or `version` is not its own.
using FindWeakRecords = const WeakRecords* (*)(const char* version);

}  // namespace papaya
