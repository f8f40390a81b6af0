/* Preloaded beside papaya: what papaya sends through UCX leaves only at the SLOW_TURNS-th look of UCX's at its worker
   from then on, as where a socket is full; who stops looking keeps it. MPICH's own endpoints are left alone. For one
   thread. */
#define _GNU_SOURCE
#include "ucx_original.h"

static struct message {
  ucp_ep_h endpoint;
  unsigned id;
  const void *header, *data;
  size_t header_length, count;
  ucp_request_param_t parameters;
  long due;
} messages[4096];         /* also what papaya gets as requests */
static long sent, queued; /* so far; number n is messages[n % 4096] */
static ucp_worker_h papayas_worker;
static ucp_ep_h papayas[64];
static int papaya_count;
static long turn;

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* parameters, ucp_ep_h* endpoint) {
  ucs_status_t (*create)(ucp_worker_h, const ucp_ep_params_t*, ucp_ep_h*) = original("ucp_ep_create");
  const ucs_status_t status = create(worker, parameters, endpoint);
  if (is_papayas_endpoint(parameters) && papaya_count < 64) {
    papayas_worker = worker;
    papayas[papaya_count++] = *endpoint;
  }
  return status;
}

static ucs_status_ptr_t pass_on(ucp_ep_h endpoint, unsigned id, const void* header, size_t header_length,
                                const void* data, size_t count, const ucp_request_param_t* parameters) {
  ucs_status_ptr_t (*function)(ucp_ep_h, unsigned, const void*, size_t, const void*, size_t,
                               const ucp_request_param_t*) = original("ucp_am_send_nbx");
  return function(endpoint, id, header, header_length, data, count, parameters);
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h endpoint, unsigned id, const void* header, size_t header_length,
                                 const void* data, size_t count, const ucp_request_param_t* parameters) {
  int is_papayas = 0;
  for (int i = 0; i < papaya_count; ++i) is_papayas |= papayas[i] == endpoint;
  if (!is_papayas) return pass_on(endpoint, id, header, header_length, data, count, parameters);
  if (queued - sent == 4096) abort();
  struct message* message = &messages[queued++ % 4096];
  *message = (struct message){endpoint,      id,    header,      data,
                              header_length, count, *parameters, turn + atol(getenv("SLOW_TURNS"))};
  return message;
}

void ucp_request_free(void* request) {
  void (*release)(void*) = original("ucp_request_free");
  if ((struct message*)request < messages || (struct message*)request >= messages + 4096) release(request);
}

static void is_sent(void* request, ucs_status_t status, void* user_data) {
  struct message* message = user_data;
  if (request != NULL) ucp_request_free(request);
  message->parameters.cb.send(message, status, message->parameters.user_data);
}

unsigned ucp_worker_progress(ucp_worker_h worker) {
  static unsigned (*progress)(ucp_worker_h);
  if (progress == NULL) progress = original("ucp_worker_progress");
  if (worker == papayas_worker) ++turn;
  while (worker == papayas_worker && sent < queued && messages[sent % 4096].due <= turn) {
    struct message* message = &messages[sent++ % 4096];
    ucp_request_param_t parameters = message->parameters;
    parameters.cb.send = is_sent;
    parameters.user_data = message;
    ucs_status_ptr_t status = pass_on(message->endpoint, message->id, message->header, message->header_length,
                                      message->data, message->count, &parameters);
    if (!UCS_PTR_IS_PTR(status)) is_sent(NULL, UCS_PTR_STATUS(status), message);
  }
  return progress(worker);
}
