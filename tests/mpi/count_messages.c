// Preloaded into programs whose MPI sends by UCX: counts its messages.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef void* Send(void* endpoint, const void* buffer, size_t count, uint64_t tag, const void* parameters);

static unsigned long messages;

unsigned long messages_sent(void);
unsigned long messages_sent(void) {
  return messages;
}

Send ucp_tag_send_nbx;
void* ucp_tag_send_nbx(void* endpoint, const void* buffer, size_t count, uint64_t tag, const void* parameters) {
  static Send* next;
  if (next == NULL) next = (Send*)dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
  ++messages;
  return next(endpoint, buffer, count, tag, parameters);
}
