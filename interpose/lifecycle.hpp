// From MPI_Init to MPI_Finalize: what papaya opens, in which order, and what it closes.
#pragma once

#include <mpi.h>

#include "interpose/mpi_features.hpp"

namespace papaya {

// Before MPI_Init, after a successful one, before MPI_Finalize, before MPI_Abort. They return when done; they do not
// fail.
void announce() noexcept;
void start() noexcept;
void stop() noexcept;
void note_abort(int code) noexcept;

#if PAPAYA_HAS_MPI_4
// In a program that never calls MPI_Init the job begins with the first communicator of all processes and ends with the
// last session: after MPI_Session_init, after a communicator has been made, before MPI_Session_finalize.
void note_session() noexcept;
void start_in_session(MPI_Comm comm) noexcept;
void stop_in_session() noexcept;
#endif

}  // namespace papaya
