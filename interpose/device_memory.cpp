#include "interpose/device_memory.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstring>
#include <iterator>
#include <mutex>

namespace papaya::device_memory {

constinit std::atomic<bool> is_possible{false};
constinit std::atomic<std::uint64_t> next_look_ticks{0};

namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// CUDA, by the driver's interface.

namespace cuda {

constexpr int invalid_context = 201;        // CUDA_ERROR_INVALID_CONTEXT: none is current in this thread
constexpr int context_attribute = 1;        // CU_POINTER_ATTRIBUTE_CONTEXT
constexpr int memory_type_attribute = 2;    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int ordinal_attribute = 9;        // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned device_memory_type = 2;  // CU_MEMORYTYPE_DEVICE

using Context = void*;

int (*get_attribute)(void* data, int attribute, std::uint64_t pointer);
int (*copy_any)(std::uint64_t to, std::uint64_t from, std::size_t bytes);
int (*push)(Context context);
int (*pop)(Context* context);
int (*count_devices)(int* count);
int (*get_device)(int* device, int ordinal);
int (*primary_state)(int device, unsigned* flags, int* is_active);
int (*retain_primary)(Context* context, int device);
int (*release_primary)(int device);

bool start(void* library) noexcept {
  return find(library, "cuPointerGetAttribute", get_attribute) && find(library, "cuMemcpy", copy_any) &&
         find(library, "cuCtxPushCurrent_v2", push) && find(library, "cuCtxPopCurrent_v2", pop) &&
         find(library, "cuDeviceGetCount", count_devices) && find(library, "cuDeviceGet", get_device) &&
         find(library, "cuDevicePrimaryCtxGetState", primary_state) &&
         find(library, "cuDevicePrimaryCtxRetain", retain_primary) &&
         find(library, "cuDevicePrimaryCtxRelease_v2", release_primary);
}

// Runs the work with the context current in this thread, and leaves the thread as it was.
template <typename Work>
int within(Context context, Work work) noexcept {
  if (const int error = push(context); error != 0) return error;
  const int error = work();
  Context popped = nullptr;
  pop(&popped);
  return error;
}

template <typename Work>
int within_primary(int device, Work work) noexcept {
  Context context = nullptr;
  if (const int error = retain_primary(&context, device); error != 0) return error;
  const int error = within(context, work);
  release_primary(device);
  return error;
}

// An attribute of the pointer; 0 if it has it.
int ask(void* answer, int attribute, const void* pointer) noexcept {
  const auto question = [&] { return get_attribute(answer, attribute, reinterpret_cast<std::uint64_t>(pointer)); };
  int error = question();
  if (error != invalid_context) return error;
  int devices = 0;
  count_devices(&devices);
  // A context that nobody has made would take long to make, and has no memory.
  for (int ordinal = 0; ordinal < devices && error != 0; ++ordinal) {
    int device = 0;
    unsigned flags = 0;
    int is_active = 0;
    if (get_device(&device, ordinal) == 0 && primary_state(device, &flags, &is_active) == 0 && is_active != 0)
      error = within_primary(device, question);
  }
  return error;
}

bool holds(const void* buffer) noexcept {
  unsigned type = 0;
  return ask(&type, memory_type_attribute, buffer) == 0 && type == device_memory_type;
}

// In a thread without a context, as a background thread may be, in that of the memory, or in its device's.
int copy(void* to, const void* from, std::size_t bytes, const void* on_device) noexcept {
  const auto work = [&] {
    return copy_any(reinterpret_cast<std::uint64_t>(to), reinterpret_cast<std::uint64_t>(from), bytes);
  };
  int error = work();
  if (error == 0) return 0;
  Context context = nullptr;
  if (ask(&context, context_attribute, on_device) == 0 && context != nullptr) error = within(context, work);
  int ordinal = 0;
  int device = 0;
  if (error != 0 && ask(&ordinal, ordinal_attribute, on_device) == 0 && get_device(&device, ordinal) == 0)
    error = within_primary(device, work);
  return error;
}

}  // namespace cuda

// ROCm, by HIP.

namespace rocm {

constexpr int not_initialized = 0x100b;  // HSA_STATUS_ERROR_NOT_INITIALIZED
constexpr int default_kind = 4;          // hipMemcpyDefault: by the pointers

// hipPointerAttribute_t. The numbers of its types are not the same in all versions; a device's memory alone has no
// address for the host.
struct Attributes {
  int type;
  int device;
  void* on_device;
  void* on_host;
  unsigned char more[104];
};

int (*get_attributes)(Attributes* attributes, const void* pointer);
int (*copy_any)(void* to, const void* from, std::size_t bytes, int kind);
int (*peek_error)();
int (*take_error)();

bool start(void* library) noexcept {
  // HIP starts at the first call, whosever it is; what it stands on tells whether it has. Before that there is no
  // pointer of its.
  int (*get_info)(int attribute, void* value) = nullptr;
  std::uint64_t version = 0;
  if (find(library, "hsa_system_get_info", get_info) && get_info(0, &version) == not_initialized) return false;
  return find(library, "hipPointerGetAttributes", get_attributes) && find(library, "hipMemcpy", copy_any) &&
         find(library, "hipPeekAtLastError", peek_error) && find(library, "hipGetLastError", take_error);
}

bool holds(const void* buffer) noexcept {
  Attributes attributes{};
  const bool had_error = peek_error() != 0;
  if (get_attributes(&attributes, buffer) != 0) {
    // That the pointer is not HIP's is no error of the program's, which may ask for its last one.
    if (!had_error) take_error();
    return false;
  }
  return attributes.on_device != nullptr && attributes.on_host == nullptr;
}

int copy(void* to, const void* from, std::size_t bytes, const void*) noexcept {
  return copy_any(to, from, bytes, default_kind);
}

}  // namespace rocm

// Level Zero.

namespace level_zero {

constexpr std::uint32_t context_description = 0xd;     // ZE_STRUCTURE_TYPE_CONTEXT_DESC
constexpr std::uint32_t queue_description = 0xe;       // ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC
constexpr std::uint32_t allocation_properties = 0x17;  // ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
constexpr std::uint32_t device_type = 2;               // ZE_MEMORY_TYPE_DEVICE
constexpr std::uint32_t synchronous = 1;               // ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
constexpr int unknown_pointer = 0x78000004;            // ZE_RESULT_ERROR_INVALID_ARGUMENT

using Handle = void*;
struct ContextDescription {  // ze_context_desc_t
  std::uint32_t what;
  const void* next;
  std::uint32_t flags;
};
struct QueueDescription {  // ze_command_queue_desc_t
  std::uint32_t what;
  const void* next;
  std::uint32_t ordinal;
  std::uint32_t index;
  std::uint32_t flags;
  std::uint32_t mode;
  std::uint32_t priority;
};
struct Allocation {  // ze_memory_allocation_properties_t
  std::uint32_t what;
  void* next;
  std::uint32_t type;
  std::uint64_t id;
  std::uint64_t page_bytes;
};

int (*get_drivers)(std::uint32_t* count, Handle* drivers);
int (*create_context)(Handle driver, const ContextDescription* description, Handle* context);
int (*get_allocation)(Handle context, const void* pointer, Allocation* allocation, Handle* device);
int (*create_list)(Handle context, Handle device, const QueueDescription* description, Handle* list);
int (*append_copy)(Handle list, void* to, const void* from, std::size_t bytes, Handle signal, std::uint32_t waits,
                   Handle* events);
int (*destroy_list)(Handle list);

std::array<Handle, 8> contexts;  // one of each driver, kept: it answers for memory of the program's contexts, too
std::size_t context_count = 0;

bool start(void* library) noexcept {
  if (!find(library, "zeDriverGet", get_drivers) || !find(library, "zeContextCreate", create_context) ||
      !find(library, "zeMemGetAllocProperties", get_allocation) ||
      !find(library, "zeCommandListCreateImmediate", create_list) ||
      !find(library, "zeCommandListAppendMemoryCopy", append_copy) ||
      !find(library, "zeCommandListDestroy", destroy_list))
    return false;
  // Fails until the program has started it.
  std::array<Handle, contexts.size()> drivers{};
  std::uint32_t count = drivers.size();
  if (get_drivers(&count, drivers.data()) != 0) return false;
  for (std::uint32_t i = 0; i < count && context_count < contexts.size(); ++i) {
    const ContextDescription description{context_description, nullptr, 0};
    if (create_context(drivers[i], &description, &contexts[context_count]) == 0) ++context_count;
  }
  return context_count != 0;
}

// The context and the device that the pointer belongs to; false if it is not on a device.
bool locate(const void* buffer, Handle& context, Handle& device) noexcept {
  for (std::size_t i = 0; i < context_count; ++i) {
    Allocation allocation{allocation_properties, nullptr, 0, 0, 0};
    context = contexts[i];
    device = nullptr;
    if (get_allocation(context, buffer, &allocation, &device) == 0 && allocation.type == device_type) return true;
  }
  return false;
}

bool holds(const void* buffer) noexcept {
  Handle context = nullptr;
  Handle device = nullptr;
  return locate(buffer, context, device);
}

int copy(void* to, const void* from, std::size_t bytes, const void* on_device) noexcept {
  Handle context = nullptr;
  Handle device = nullptr;
  if (!locate(on_device, context, device)) return unknown_pointer;
  const QueueDescription description{queue_description, nullptr, 0, 0, 0, synchronous, 0};
  Handle list = nullptr;
  if (const int error = create_list(context, device, &description, &list); error != 0) return error;
  const int error = append_copy(list, to, from, bytes, nullptr, 0, nullptr);
  destroy_list(list);
  return error;
}

}  // namespace level_zero

struct Runtime {
  const char* library;                    // how the name of its file begins
  bool (*start)(void* library) noexcept;  // finds its functions; false as long as the program has not started it
  bool (*holds)(const void* buffer) noexcept;
  int (*copy)(void* to, const void* from, std::size_t bytes, const void* on_device) noexcept;
  const char* copies_by;
};

constexpr Runtime runtimes[] = {
    {"libcuda.so", cuda::start, cuda::holds, cuda::copy, "cuMemcpy"},
    {"libamdhip64.so", rocm::start, rocm::holds, rocm::copy, "hipMemcpy"},
    {"libze_loader.so", level_zero::start, level_zero::holds, level_zero::copy, "zeCommandListAppendMemoryCopy"},
};
constexpr std::size_t runtime_count = std::size(runtimes);
constexpr std::size_t path_bytes = 4096;

std::mutex looking;                            // guards what start() writes, and
unsigned long long loads_seen = ~0ull;         // how many objects the loader had ever loaded at the last look,
std::array<void*, runtime_count> libraries{};  // and those of them that are runtimes
std::atomic<unsigned> started{0};              // a bit for each runtime; release after what start() writes

int read_loads(dl_phdr_info* info, std::size_t, void* loads) {
  *static_cast<unsigned long long*>(loads) = info->dlpi_adds;
  return 1;
}

struct Search {
  const char* begin;
  char path[path_bytes];
};

int find_library(dl_phdr_info* info, std::size_t, void* search) {
  auto& wanted = *static_cast<Search*>(search);
  const char* const slash = std::strrchr(info->dlpi_name, '/');
  const char* const base = slash == nullptr ? info->dlpi_name : slash + 1;
  if (std::strncmp(base, wanted.begin, std::strlen(wanted.begin)) != 0) return 0;
  std::strncpy(wanted.path, info->dlpi_name, path_bytes - 1);
  return 1;
}

}  // namespace

void look_for_runtimes(std::uint64_t now_ticks) noexcept {
  const std::unique_lock lock(looking, std::try_to_lock);
  if (!lock) return;
  // Not by dlopen(RTLD_NOLOAD): for a library that is not loaded it searches the file system, which takes 40
  // us.
  unsigned long long loads = 0;
  dl_iterate_phdr(read_loads, &loads);
  unsigned all = started.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < runtime_count; ++i) {
    if (libraries[i] == nullptr && loads != loads_seen) {
      Search search{runtimes[i].library, ""};
      if (dl_iterate_phdr(find_library, &search) != 0) libraries[i] = dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD);
    }
    if (libraries[i] != nullptr && (all >> i & 1) == 0 && runtimes[i].start(libraries[i])) all |= 1u << i;
  }
  loads_seen = loads;
  started.store(all, std::memory_order_release);
  if (all != 0) is_possible.store(true, std::memory_order_relaxed);
  next_look_ticks.store(now_ticks + look_every_ticks, std::memory_order_relaxed);
}

bool ask_runtimes(const void* buffer) noexcept {
  const unsigned all = started.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < runtime_count; ++i)
    if ((all >> i & 1) != 0 && runtimes[i].holds(buffer)) return true;
  return false;
}

Copied copy(void* to, const void* from, std::size_t bytes, const void* on_device) noexcept {
  const unsigned all = started.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < runtime_count; ++i)
    if ((all >> i & 1) != 0 && runtimes[i].holds(on_device))
      return {runtimes[i].copies_by, runtimes[i].copy(to, from, bytes, on_device)};
  return {"the search for its runtime, before the copy", -1};
}

}  // namespace papaya::device_memory
