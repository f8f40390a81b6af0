// The wrappers papaya_MPI_X of every intercepted function: of the collectives (wrappers.cpp), of what makes and frees
// communicators and of the life cycle (wrappers_communicators.cpp), and of what only waits (wrappers_waiting.cpp).
// libpapaya.so finds them by name.
#pragma once

#include <mpi.h>

#define PAPAYA_WRAPPER extern "C" __attribute__((visibility("default"))) int
