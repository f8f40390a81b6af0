// Which MPI a library is of, for those who meet it at run time.
#pragma once

#include <cstring>
#include <initializer_list>

namespace papaya {

// What PMPI_Abi_get_version of an MPI is; one older than MPI 5.0 has none.
using AbiGetVersion = int (*)(int* major, int* minor);

// The standard ABI that an MPI's functions have; 0: its own. It may be asked before MPI_Init.
inline int standard_abi_of(AbiGetVersion ask) {
  int major = 0;
  int minor = 0;
  return ask != nullptr && ask(&major, &minor) == 0 && major > 0 ? major : 0;
}

inline bool starts_with(const char* text, const char* prefix) {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// MPICH, and those that keep to its ABI (libmpi.so.12): a program in C built with one runs with the others.
inline bool is_of_mpich(const char* version) {
  for (const char* prefix : {"MPICH Version:", "Intel(R) MPI", "MVAPICH"})
    if (starts_with(version, prefix)) return true;
  return std::strstr(version, "CRAY MPICH") != nullptr;
}

// The flavour of papaya for an MPI with this standard ABI and this version, such as "Open MPI v4.1.4, package: ..." or
// "MPICH Version:\t4.0.2\n..."; nullptr if there is none.
inline const char* flavour_of(int standard_abi, const char* version) {
  if (standard_abi > 0) return standard_abi == 1 ? "abi" : nullptr;
  for (const char* prefix : {"Open MPI v4.", "Open MPI v5.", "Open MPI v6."})
    if (starts_with(version, prefix)) return "openmpi";
  return is_of_mpich(version) ? "mpich" : nullptr;
}

inline constexpr const char* flavour_names[] = {"openmpi", "mpich", "abi"};

inline const char* file_name_of(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// What passes the calls of a program that was built with one MPI on to another one, which it loads itself.
struct Translator {
  const char* library;  // how the name of the file begins
  const char* name;
  const char* flavour;  // of the MPI that programs are built with; nullptr: an ABI of its own, if not the standard one
};

inline const Translator* translator_of(const char* path) {
  static constexpr Translator translators[] = {
      {"libwi4mpi_OMPI_", "wi4mpi", "openmpi"}, {"libwi4mpi_MPICH_", "wi4mpi", "mpich"},
      {"libwi4mpi_INTEL_", "wi4mpi", "mpich"},  {"libwi4mpi_", "wi4mpi", nullptr},
      {"libmuk", "Mukautuva", nullptr},         {"libmpitrampoline", "MPItrampoline", nullptr},
  };
  for (const Translator& translator : translators)
    if (starts_with(file_name_of(path), translator.library)) return &translator;
  return nullptr;
}

// Whether a library holds an MPI's Fortran binding, whose calls of PMPI functions are the program's.
inline bool is_fortran_binding(const char* path) {
  for (const char* prefix :
       {"libmpi_mpifh", "libmpi_usempi", "libmpichfort", "libmpifort", "libmpichf90", "libmpi_f90", "libmpi_f77"})
    if (starts_with(file_name_of(path), prefix)) return true;
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
