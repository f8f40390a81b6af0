// MPI's functions other than blocking collectives: how often the program calls them, and how long they take.
#pragma once

#include <span>

#include "profiler/record/recorder.hpp"

namespace papaya::timed_calls {

// Those that this flavour's MPI has, in the order that the recorder counts them in.
std::span<const Recorder::Function> functions() noexcept;

// For Preload::time_calls: a wrapper, or nullptr, for each row of symbols.def.
void* const* wrappers() noexcept;

}  // namespace papaya::timed_calls
