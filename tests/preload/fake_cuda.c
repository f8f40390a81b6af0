// A libcuda.so.1 without a device: what the program registers counts as device memory, and nothing else does.
#include <stdint.h>

static uint64_t device_begin = 0, device_bytes = 0;

void fake_register(void* begin, uint64_t bytes) {
  device_begin = (uint64_t)(uintptr_t)begin;
  device_bytes = bytes;
}

int cuPointerGetAttribute(void* data, int attribute, uint64_t pointer) {
  if (attribute != 2) return 1;                               // CU_POINTER_ATTRIBUTE_MEMORY_TYPE only
  if (pointer - device_begin >= device_bytes) return 1;       // as for plain host memory: invalid value
  *(unsigned*)data = 2;                                       // CU_MEMORYTYPE_DEVICE
  return 0;
}
