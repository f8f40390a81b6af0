/* For what is preloaded in place of some of UCX's functions: the function itself. */
#pragma once

#include <dlfcn.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

/* The plugin brings libucp with RTLD_LOCAL, out of RTLD_NEXT's reach. */
static void* original(const char* name) {
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
  void* function = library == NULL ? NULL : dlsym(library, name);
  if (function == NULL) abort();
  return function;
}

/* MPICH makes its endpoints without an error handler. */
static int is_papayas_endpoint(const ucp_ep_params_t* parameters) {
  return (parameters->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLER) != 0;
}
