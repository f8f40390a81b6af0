// Buffers on an accelerator. Its memory cannot be read by a plain copy, so such calls go to MPI, which may know how.
#pragma once

#include <cstdint>

namespace papaya {

// True if libcuda is loaded and says that the buffer is on a device. `now_ns` is the caller's time: whether libcuda
// has been loaded in the meantime is looked up at most every 10 ms, which is shorter than it takes to start it.
bool is_device_memory(const void* buffer, std::uint64_t now_ns) noexcept;

}  // namespace papaya
