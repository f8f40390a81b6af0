/* Preloaded beside papaya: on rank REFUSE_RANK, UCX refuses every endpoint of papaya's but the first, as between
   machines that do not reach each other. REFUSE_WHEN=now: at once; later: by the error handler, while it is being wired
   up. MPICH's own endpoints are left alone. */
#define _GNU_SOURCE
#include <string.h>

#include "ucx_original.h"

static struct {
  ucp_err_handler_t handler;
  ucp_ep_h endpoint;
} due[16];
static int due_count, seen;

static int is_here(void) {
  const char* wanted = getenv("REFUSE_RANK");
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL) rank = getenv("PMI_RANK");
  return wanted != NULL && rank != NULL && strcmp(wanted, rank) == 0;
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* parameters, ucp_ep_h* endpoint) {
  ucs_status_t (*create)(ucp_worker_h, const ucp_ep_params_t*, ucp_ep_h*) = original("ucp_ep_create");
  const int refuse = is_papayas_endpoint(parameters) && is_here() && seen++ > 0;
  if (refuse && strcmp(getenv("REFUSE_WHEN"), "now") == 0) return UCS_ERR_UNREACHABLE;
  const ucs_status_t status = create(worker, parameters, endpoint);
  if (refuse && status == UCS_OK && due_count < 16) {
    due[due_count].handler = parameters->err_handler;
    due[due_count++].endpoint = *endpoint;
  }
  return status;
}

/* The first flush ends when the endpoint is wired up, or not. */
ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h endpoint, const ucp_request_param_t* parameters) {
  ucs_status_ptr_t (*flush)(ucp_ep_h, const ucp_request_param_t*) = original("ucp_ep_flush_nbx");
  for (int i = 0; i < due_count; ++i)
    if (due[i].endpoint == endpoint) {
      due[i].handler.cb(due[i].handler.arg, endpoint, UCS_ERR_ENDPOINT_TIMEOUT);
      return UCS_STATUS_PTR(UCS_ERR_ENDPOINT_TIMEOUT);
    }
  return flush(endpoint, parameters);
}
