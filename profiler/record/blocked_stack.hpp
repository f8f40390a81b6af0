// The call stack of a thread of this process that sleeps in a system call, read without its noticing. The system tells
// where the thread sleeps and where its stack ends; the stack is copied, and believed only if the thread has slept all
// the time. Of its registers no others are known, so the stack ends where a function's frame is found by one of them
// that no function inside has saved.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "profiler/record/thread_state.hpp"

namespace papaya {

// The places of the functions, innermost first: where it sleeps, and where calls return to; empty if that cannot be
// found out here. `meanwhile` is called while the thread sleeps. None, and what that has read is worthless: it has
// woken.
std::optional<std::vector<const void*>> blocked_stack(std::int32_t thread, const Sleep& sleep,
                                                      const std::function<void()>& meanwhile);

}  // namespace papaya
