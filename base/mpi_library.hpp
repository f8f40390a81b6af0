// Which MPI a library is of, for those who meet it at run time.
#pragma once

#include <cstring>
#include <initializer_list>

namespace papaya {

// The flavour of papaya for a library version such as "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\n...";
// nullptr if there is none.
inline const char* flavour_of(const char* version) {
  if (std::strncmp(version, "Open MPI v4.", 12) == 0 || std::strncmp(version, "Open MPI v5.", 12) == 0)
    return "openmpi";
  if (std::strncmp(version, "MPICH Version:", 14) == 0) return "mpich";
  return nullptr;
}

// Whether a library holds an MPI's Fortran binding, whose calls of PMPI functions are the program's.
inline bool is_fortran_binding(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  const char* const base = slash == nullptr ? path : slash + 1;
  for (const char* prefix :
       {"libmpi_mpifh", "libmpi_usempi", "libmpichfort", "libmpifort", "libmpichf90", "libmpi_f90", "libmpi_f77"})
    if (std::strncmp(base, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

// Whether a library is MPI itself or one of its parts, whose calls of PMPI functions are MPI's own.
inline bool is_part_of_mpi(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  const char* const base = slash == nullptr ? path : slash + 1;
  if (is_fortran_binding(path)) return false;
  for (const char* prefix :
       {"mca_", "libmca_", "libopen-", "libompi", "libmpi.", "libmpi_", "libmpich", "libpmpi", "libromio"})
    if (std::strncmp(base, prefix, std::strlen(prefix)) == 0) return true;
  return false;
}

}  // namespace papaya
