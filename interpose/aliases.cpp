#include "interpose/aliases.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <cstdlib>
#include <cstring>

#include "interpose/implementation.hpp"

namespace papaya::aliases {

namespace {

bool mpich_refuses() noexcept {
  const char* const check = std::getenv("MPIR_CVAR_COLL_ALIAS_CHECK");
  return check == nullptr || (std::strcmp(check, "0") != 0 && std::strcmp(check, "no") != 0 &&
                              std::strcmp(check, "false") != 0 && std::strcmp(check, "off") != 0);
}

// Its MCA parameter mpi_param_check may stand in files as well: what has come of it is a variable of the library.
bool openmpi_refuses() noexcept {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&PMPI_Get_library_version), &library) == 0) return false;
  void* const handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  const auto* const checks = static_cast<const bool*>(dlsym(handle, "ompi_mpi_param_check"));
  const bool refuses = checks != nullptr && *checks;
  dlclose(handle);
  return refuses;
}

}  // namespace

bool are_refused() noexcept {
  static const bool refused = is_mpich() ? mpich_refuses() : openmpi_refuses();
  return refused;
}

}  // namespace papaya::aliases
