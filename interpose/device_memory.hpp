// Buffers on an accelerator, by what the runtimes that the process has loaded say of a pointer: CUDA, ROCm, Level Zero.
// Such memory cannot be read by a plain copy, so calls with it go to MPI, which may know how, or it is copied by its
// runtime.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace papaya::device_memory {

// Whether a runtime has been loaded is looked up at most this often, which is shorter than it takes to start it.
inline constexpr std::uint64_t look_every_ticks = 10'000'000;

extern std::atomic<bool> is_possible;  // there is a runtime to ask
extern std::atomic<std::uint64_t> next_look_ticks;

void look_for_runtimes(std::uint64_t now_ticks) noexcept;
bool ask_runtimes(const void* buffer) noexcept;

// True if a runtime says that the buffer is on a device, where the processor cannot read it. `now_ticks` is the call's
// arrival.
inline bool holds(const void* buffer, std::uint64_t now_ticks) noexcept {
  // Relaxed: each thread may look for itself, and finds the same.
  if (now_ticks >= next_look_ticks.load(std::memory_order_relaxed)) look_for_runtimes(now_ticks);
  return is_possible.load(std::memory_order_relaxed) && ask_runtimes(buffer);
}

// What a copy ended with: the runtime's function, and its error, 0 if all is well.
struct Copied {
  const char* function;
  int error;
};
// Between host memory and that of a device; holds() was true of `on_device`.
Copied copy(void* to, const void* from, std::size_t bytes, const void* on_device) noexcept;

}  // namespace papaya::device_memory
