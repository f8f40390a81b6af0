// Horovod in a record: known by the library through which it calls MPI,
// horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so and the like. Its calls come from its background thread, on
// communicators of its own.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/read/read.hpp"

namespace papaya::report {

struct Horovod {
  std::string library;                           // empty: the program does not use Horovod
  std::set<std::uint64_t> communicators;         // on which it made calls
  std::vector<std::set<std::uint32_t>> threads;  // that made them, by file of the run
};

Horovod find_horovod(const Run& run);

// Fills in its library and threads.
void describe_horovod(const Run& run, Analysis& analysis);

// Whether this is the library of Horovod that calls MPI.
bool is_horovod_library(std::string_view path);

// "Horovod global", "Horovod local", "Horovod cross": after Horovod's own words.
std::string_view horovod_communicator(trace::Origin origin);

// What Horovod makes a call for. Known from the function that calls; without its name from the collective and the
// sizes.
enum class HorovodUse : std::uint8_t { none, negotiation, names, gradients, broadcast, other };
inline constexpr HorovodUse horovod_uses[] = {HorovodUse::gradients, HorovodUse::negotiation, HorovodUse::names,
                                              HorovodUse::broadcast, HorovodUse::other};
HorovodUse horovod_use(const CallSiteFigures& site);

// "negotiation", and a sentence about it for tables.
std::string_view name_of(HorovodUse use);
std::string_view text_of(HorovodUse use);

}  // namespace papaya::report
