// The mpi.h of the MPI that is here. An older one than 4.0 has no handle for sessions.
#pragma once

#include <mpi.h>

#if !defined(MPI_SESSION_NULL)
using MPI_Session = struct NoSession*;
#define MPI_SESSION_NULL (static_cast<MPI_Session>(nullptr))
#endif
