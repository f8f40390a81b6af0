// Buffers on an accelerator. Its memory cannot be read by a plain copy, so such calls go to MPI, which may
// know how.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace papaya::device_memory {

// Whether libcuda is loaded is looked up at most this often, which is shorter than it takes to start it.
inline constexpr std::uint64_t look_every_ticks = 10'000'000;

extern std::atomic<bool> cuda_is_loaded;
extern std::atomic<std::uint64_t> next_look_ticks;

void look_for_cuda(std::uint64_t now_ticks) noexcept;
bool ask_cuda(const void* buffer) noexcept;

// Copies to or from a buffer of which holds() was true. False if libcuda cannot.
bool copy(void* to, const void* from, std::size_t bytes) noexcept;

// True if libcuda is loaded and says that the buffer is on a device. `now_ticks` is the call's arrival.
inline bool holds(const void* buffer, std::uint64_t now_ticks) noexcept {
  // Relaxed: each thread may look for itself, and finds the same.
  if (now_ticks >= next_look_ticks.load(std::memory_order_relaxed)) look_for_cuda(now_ticks);
  return cuda_is_loaded.load(std::memory_order_relaxed) && ask_cuda(buffer);
}

}  // namespace papaya::device_memory
