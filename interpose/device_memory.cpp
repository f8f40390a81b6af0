#include "interpose/device_memory.hpp"

#include <dlfcn.h>

namespace papaya::device_memory {

constinit std::atomic<bool> cuda_is_loaded{false};
constinit std::atomic<std::uint64_t> next_look_ticks{0};

namespace {

using PointerGetAttribute = int (*)(void* data, int attribute, std::uint64_t pointer);

constexpr int memory_type_attribute = 2;    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned device_memory_type = 2;  // CU_MEMORYTYPE_DEVICE

std::atomic<PointerGetAttribute> ask{nullptr};

}  // namespace

void look_for_cuda(std::uint64_t now_ticks) noexcept {
  next_look_ticks.store(now_ticks + look_every_ticks, std::memory_order_relaxed);
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  const auto function = reinterpret_cast<PointerGetAttribute>(dlsym(library, "cuPointerGetAttribute"));
  if (function == nullptr) return;
  ask.store(function, std::memory_order_relaxed);
  next_look_ticks.store(~std::uint64_t{0}, std::memory_order_relaxed);
  cuda_is_loaded.store(true, std::memory_order_relaxed);
}

bool ask_cuda(const void* buffer) noexcept {
  const PointerGetAttribute function = ask.load(std::memory_order_relaxed);
  unsigned type = 0;
  return function != nullptr && function(&type, memory_type_attribute, reinterpret_cast<std::uint64_t>(buffer)) == 0 &&
         type == device_memory_type;
}

}  // namespace papaya::device_memory
