// A libcuda.so.1, libamdhip64.so.6 or libze_loader.so.1 (FAKE_CUDA, FAKE_ROCM, FAKE_LEVEL_ZERO) without a device: what
// the program registers counts as device memory, and nothing else does. What it holds lies elsewhere, so that the
// memory itself can be inaccessible. Each checks that it is used as the real one must be.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum mode {
  works,
  wants_context,       // in a thread without a context copies fail
  has_no_context,      // the same, and the memory is of no context: its device's primary one does
  answers_in_context,  // the same, and so do questions
  fails,
};
static enum mode mode;
static uint64_t device_begin, device_bytes;
static char* holds;
static int misuses;

// From now on the runtime counts as started.
void fake_register(void* begin, uint64_t bytes, void* contents, int how) {
  device_begin = (uint64_t)(uintptr_t)begin;
  device_bytes = bytes;
  holds = contents;
  mode = (enum mode)how;
}

static int is_device(uint64_t pointer) {
  return pointer - device_begin < device_bytes;
}

static void* contents_of(uint64_t pointer) {
  return is_device(pointer) ? holds + (pointer - device_begin) : (void*)(uintptr_t)pointer;
}

static void copy(uint64_t to, uint64_t from, size_t bytes) {
  if (is_device(to) == is_device(from)) ++misuses;
  memcpy(contents_of(to), contents_of(from), bytes);
}

#ifdef FAKE_CUDA
static char own_context, primary_context;
static __thread void* current;
static int retained;

int cuPointerGetAttribute(void* data, int attribute, uint64_t pointer) {
  if (mode == answers_in_context && current == NULL) return 201;  // invalid context
  if (!is_device(pointer)) return 1;                              // as for plain host memory: invalid value
  if (attribute == 1)
    *(void**)data = mode == wants_context ? &own_context : NULL;
  else if (attribute == 2)
    *(unsigned*)data = 2;  // CU_MEMORYTYPE_DEVICE
  else if (attribute == 9)
    *(int*)data = 3;
  else
    return 1;
  return 0;
}

int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
  if (mode == fails) return 700;
  if (mode != works && current == NULL) return 201;
  copy(to, from, bytes);
  return 0;
}

int cuCtxPushCurrent_v2(void* context) {
  if (current != NULL || (context != &own_context && (context != &primary_context || retained == 0))) ++misuses;
  current = context;
  return 0;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current == NULL) ++misuses;
  *context = current;
  current = NULL;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 4;
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = 10 + ordinal;
  return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = device == 13;
  return 0;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device != 13) return 101;  // invalid device
  ++retained;
  *context = &primary_context;
  return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  --retained;
  return 0;
}

int fake_misuses(void) {
  return misuses + retained + (current != NULL);
}
#endif

#ifdef FAKE_ROCM
struct attributes {
  int type, device;
  void *on_device, *on_host;
  int is_managed;
  unsigned flags;
};
static __thread int last_error;

int hsa_system_get_info(int attribute, void* value) {
  (void)attribute;
  *(uint16_t*)value = 1;
  return holds == NULL ? 0x100b : 0;
}

int hipPointerGetAttributes(struct attributes* attributes, const void* pointer) {
  if (holds == NULL) ++misuses;  // would start it
  memset(attributes, 0, sizeof *attributes);
  if (!is_device((uint64_t)(uintptr_t)pointer)) return last_error = 1;
  attributes->type = 2;
  attributes->on_device = (void*)pointer;
  return 0;
}

int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  if (mode == fails) return last_error = 719;
  if (kind != 4) ++misuses;
  copy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes);
  return 0;
}

int hipPeekAtLastError(void) {
  return last_error;
}
int hipGetLastError(void) {
  const int error = last_error;
  last_error = 0;
  return error;
}

int fake_misuses(void) {
  return misuses + last_error;
}
#endif

#ifdef FAKE_LEVEL_ZERO
enum { context_description = 0xd, queue_description = 0xe, allocation_properties = 0x17, uninitialized = 0x78000001 };
struct description {
  uint32_t what;
  const void* next;
  uint32_t words[5];
};
struct allocation {
  uint32_t what;
  void* next;
  uint32_t type;
  uint64_t id, page_bytes;
};
static char driver, context, device, list;
static int lists;

int zeDriverGet(uint32_t* count, void** drivers) {
  if (holds == NULL) return uninitialized;
  if (*count > 0) drivers[0] = &driver;
  *count = 1;
  return 0;
}

int zeContextCreate(void* of, const struct description* description, void** created) {
  if (of != &driver || description->what != context_description) ++misuses;
  *created = &context;
  return 0;
}

int zeMemGetAllocProperties(void* in, const void* pointer, struct allocation* allocation, void** on) {
  if (in != &context || allocation->what != allocation_properties) ++misuses;
  const int found = is_device((uint64_t)(uintptr_t)pointer);
  allocation->type = found ? 2 : 0;
  *on = found ? &device : NULL;
  return 0;
}

int zeCommandListCreateImmediate(void* in, void* on, const struct description* description, void** created) {
  if (in != &context || on != &device || description->what != queue_description || description->words[3] != 1)
    ++misuses;
  ++lists;
  *created = &list;
  return 0;
}

int zeCommandListAppendMemoryCopy(void* to_list, void* to, const void* from, size_t bytes, void* signal, uint32_t waits,
                                  void** events) {
  if (mode == fails) return 0x70000001;  // device lost
  if (to_list != &list || signal != NULL || waits != 0 || events != NULL) ++misuses;
  copy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes);
  return 0;
}

int zeCommandListDestroy(void* of) {
  if (of != &list) ++misuses;
  --lists;
  return 0;
}

int fake_misuses(void) {
  return misuses + lists;
}
#endif
