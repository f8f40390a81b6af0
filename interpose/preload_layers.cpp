#include "interpose/preload_layers.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "base/mpi_library.hpp"
#include "interpose/preload_aside.hpp"

namespace papaya::preload {

namespace {

bool lies_in(const void* address, const papaya_range& range) {
  return reinterpret_cast<std::uintptr_t>(address) - range.begin < range.bytes;
}

// Tools behind papaya, written before anybody asks whose a call is.
papaya_range tools_behind[16];
std::size_t behind_count = 0;

void note_behind(const papaya_range& range) {
  for (std::size_t i = 0; i < behind_count; ++i)
    if (tools_behind[i].begin == range.begin) return;
  if (behind_count < sizeof tools_behind / sizeof tools_behind[0]) tools_behind[behind_count++] = range;
}

// Callers of PMPI_X seen so far beside the two the trampoline knows. A library loaded later than MPI_Init (a Python
// plugin) is classified at its first call. Entries are written under the mutex and published by `caller_count`.
struct Caller {
  papaya_range range;
  Origin origin;
};
Caller callers[64];
std::size_t caller_count = 0;

Origin classify(const Module& module) {
  if (papaya::is_fortran_binding(module.path)) return Origin::fortran;
  for (std::size_t i = 0; i < behind_count; ++i)
    if (tools_behind[i].begin == module.range.begin) return Origin::behind;
  return papaya::is_part_of_mpi(module.path) ? Origin::behind : Origin::program;
}

}  // namespace

void* next_of(const char* name, void* native, const papaya_range& mpi) {
  void* const next = dlsym(RTLD_NEXT, name);
  Module module;
  if (next == nullptr || next == native || !find_module(next, module)) return native;
  if (!lies_in(next, mpi)) note_behind(module.range);
  return next;
}

bool is_taken(const char* name, const papaya_range& own) {
  void* const first = dlsym(RTLD_DEFAULT, name);
  // It is asked of hundreds of functions, and dladdr() goes through all symbols of an object.
  if (first == nullptr || lies_in(first, own)) return false;
  Dl_info object;
  void* entry = nullptr;
  if (dladdr1(first, &object, &entry, RTLD_DL_SYMENT) == 0) return false;
  // A program that is not position-independent and takes the function's address has an entry for it, too.
  const auto* const symbol = static_cast<const ElfW(Sym)*>(entry);
  return symbol != nullptr && symbol->st_shndx != SHN_UNDEF && !papaya::is_part_of_mpi(object.dli_fname);
}

Origin origin_of(const void* caller) {
  const std::size_t known = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE);
  for (std::size_t i = 0; i < known; ++i)
    if (lies_in(caller, callers[i].range)) return callers[i].origin;
  Module module;
  if (!find_module(caller, module)) return Origin::behind;
  const Origin origin = classify(module);
  pthread_mutex_lock(&mutex);
  if (caller_count < sizeof callers / sizeof callers[0]) {
    callers[caller_count] = {module.range, origin};
    __atomic_store_n(&caller_count, caller_count + 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&mutex);
  return origin;
}

}  // namespace papaya::preload
