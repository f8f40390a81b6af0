// What should not happen: counted as it happens, reported once at the end.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/inner_calls.hpp"
#include "interpose/job.hpp"

namespace papaya::oddities {

inline constinit std::atomic<std::uint64_t> verified{0};
inline constinit std::atomic<std::uint64_t> mismatches{0};  // of those
// Collective over the job.
void report(const Job& job);

}  // namespace papaya::oddities
