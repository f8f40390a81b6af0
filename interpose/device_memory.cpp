#include "interpose/device_memory.hpp"

#include <dlfcn.h>

#include <atomic>

namespace papaya {

namespace {

using PointerGetAttribute = int (*)(void* data, int attribute, std::uint64_t pointer);

constexpr int memory_type_attribute = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned device_memory_type = 2;  // CU_MEMORYTYPE_DEVICE
constexpr std::uint64_t look_every_ns = 10'000'000;

// Relaxed: each thread may look for itself, and finds the same function.
std::atomic<PointerGetAttribute> ask{nullptr};
std::atomic<std::uint64_t> next_look_ns{0};

void look_for_cuda() noexcept {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  ask.store(reinterpret_cast<PointerGetAttribute>(dlsym(library, "cuPointerGetAttribute")), std::memory_order_relaxed);
}

}  // namespace

bool is_device_memory(const void* buffer, std::uint64_t now_ns) noexcept {
  PointerGetAttribute function = ask.load(std::memory_order_relaxed);
  if (function == nullptr) {
    if (now_ns < next_look_ns.load(std::memory_order_relaxed)) return false;
    next_look_ns.store(now_ns + look_every_ns, std::memory_order_relaxed);
    look_for_cuda();
    function = ask.load(std::memory_order_relaxed);
    if (function == nullptr) return false;
  }
  unsigned type = 0;
  return function(&type, memory_type_attribute, reinterpret_cast<std::uint64_t>(buffer)) == 0 &&
         type == device_memory_type;
}

}  // namespace papaya
