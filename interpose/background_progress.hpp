// Moves papaya's nonblocking operations on while a thread of the program is inside MPI: MPI does so with its own, and a
// program may rely on it. Open MPI takes a function into its progress (opal_progress_register), which all its blocking
// calls make. With another MPI a thread of papaya's looks at them, often while the program is in a call that papaya has
// seen, a thousand times a second in any other; it calls MPI, which needs MPI_THREAD_MULTIPLE. So MPI is initialised at
// that level where a nonblocking algorithm is named, and the program is told the level it would get without papaya. A
// session is asked for at that level, too, and says so: a session may have more than the program has asked for.
#pragma once

#include <mpi.h>

#include "interpose/mpi_features.hpp"

namespace papaya::background_progress {

// In place of PMPI_Init and the like.
int init(int* argc, char*** argv);
int init_thread(int* argc, char*** argv, int required, int* provided);
int query_thread(int* provided);
#if PAPAYA_HAS_MPI_4
int session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session);
#endif

// Calls `move_on` while `are_outstanding()`; both from any thread. False if there is no way to.
bool start(bool (*are_outstanding)() noexcept, void (*move_on)() noexcept) noexcept;
void stop() noexcept;

// Around a call that may block inside MPI.
void enter() noexcept;
void leave() noexcept;

}  // namespace papaya::background_progress
