#include "interpose/device_memory.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace papaya::device_memory {

constinit std::atomic<bool> cuda_is_loaded{false};
constinit std::atomic<std::uint64_t> next_look_ticks{0};

namespace {

using PointerGetAttribute = int (*)(void* data, int attribute, std::uint64_t pointer);
using Copy = int (*)(std::uint64_t to, std::uint64_t from, std::size_t bytes);

constexpr int memory_type_attribute = 2;    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned device_memory_type = 2;  // CU_MEMORYTYPE_DEVICE
constexpr std::size_t path_bytes = 4096;

std::atomic<PointerGetAttribute> ask{nullptr};
std::atomic<Copy> copy_any{nullptr};
std::atomic<unsigned long long> loads_seen{
    ~0ull};  // how many objects the loader had ever loaded at the last look

int read_loads(dl_phdr_info* info, std::size_t, void* loads) {
  *static_cast<unsigned long long*>(loads) = info->dlpi_adds;
  return 1;
}

int find_cuda(dl_phdr_info* info, std::size_t, void* path) {
  const char* const slash = std::strrchr(info->dlpi_name, '/');
  const char* const base = slash == nullptr ? info->dlpi_name : slash + 1;
  if (std::strncmp(base, "libcuda.so", 10) != 0) return 0;
  std::strncpy(static_cast<char*>(path), info->dlpi_name, path_bytes - 1);
  return 1;
}

}  // namespace

void look_for_cuda(std::uint64_t now_ticks) noexcept {
  next_look_ticks.store(now_ticks + look_every_ticks, std::memory_order_relaxed);
  // Not by dlopen(RTLD_NOLOAD): for a library that is not loaded it searches the file system, which takes 40
  // us.
  unsigned long long loads = 0;
  dl_iterate_phdr(read_loads, &loads);
  if (loads_seen.exchange(loads, std::memory_order_relaxed) == loads) return;
  char path[path_bytes] = "";
  if (dl_iterate_phdr(find_cuda, path) == 0) return;
  void* const library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  const auto function = reinterpret_cast<PointerGetAttribute>(dlsym(library, "cuPointerGetAttribute"));
  if (function == nullptr) return;
  ask.store(function, std::memory_order_relaxed);
  copy_any.store(reinterpret_cast<Copy>(dlsym(library, "cuMemcpy")), std::memory_order_relaxed);
  next_look_ticks.store(~std::uint64_t{0}, std::memory_order_relaxed);
  cuda_is_loaded.store(true, std::memory_order_relaxed);
}

bool ask_cuda(const void* buffer) noexcept {
  const PointerGetAttribute function = ask.load(std::memory_order_relaxed);
  unsigned type = 0;
  return function != nullptr &&
         function(&type, memory_type_attribute, reinterpret_cast<std::uint64_t>(buffer)) == 0 &&
         type == device_memory_type;
}

bool copy(void* to, const void* from, std::size_t bytes) noexcept {
  const Copy function = copy_any.load(std::memory_order_relaxed);
  return function != nullptr &&
         function(reinterpret_cast<std::uint64_t>(to), reinterpret_cast<std::uint64_t>(from), bytes) == 0;
}

}  // namespace papaya::device_memory
