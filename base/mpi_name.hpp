// The name of a call, as MPI spells it.
#pragma once

#include <string>

#include "base/collective.hpp"

namespace papaya {

// MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, MPI_Start(Allreduce).
inline std::string mpi_name(Collective collective, Form form) {
  std::string name(name_of(collective));
  if (form == Form::nonblocking) {
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    return "MPI_I" + name;
  }
  if (form == Form::started) return "MPI_Start(" + name + ")";
  return "MPI_" + name + (form == Form::persistent ? "_init" : "");
}

}  // namespace papaya
