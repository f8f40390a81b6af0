#pragma once

namespace papaya {

// Asks for a cache line in exclusive state. GCC's __builtin_prefetch(p, 1) falls back to a shared-state fetch on the
// x86-64 baseline, which costs the later store a second transfer; PREFETCHW is a no-op on processors without it.
inline void prefetch_for_write(const void* address) noexcept {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1, 3);
#endif
}

}  // namespace papaya
