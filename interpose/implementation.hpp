// Which MPI is beneath, where papaya must do as it does: fixed when a flavour of its ABI is compiled, asked under the
// standard ABI.
#pragma once

#include <mpi.h>

#include "base/mpi_library.hpp"

namespace papaya {

#if defined(MPICH)
constexpr bool is_mpich() noexcept {
  return true;
}
#elif defined(OPEN_MPI)
constexpr bool is_mpich() noexcept {
  return false;
}
#else
inline bool is_mpich() noexcept {
  static const bool answer = [] {
    static char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    PMPI_Get_library_version(version, &length);
    return is_of_mpich(version);
  }();
  return answer;
}
#endif

// The name of this library's flavour.
#if defined(MPICH)
inline constexpr const char* own_flavour = "mpich";
#elif defined(OPEN_MPI)
inline constexpr const char* own_flavour = "openmpi";
#else
inline constexpr const char* own_flavour = "abi";
#endif

}  // namespace papaya
