// The standard ABI for the programs of the tests: what papaya has of it, and what they call besides.
#ifndef PAPAYA_TESTS_ABI_MPI_H
#define PAPAYA_TESTS_ABI_MPI_H
#include "interpose/standard_abi/mpi.h"
#ifdef __cplusplus
extern "C" {
#endif
#define ABI(name, ...) int MPI_##name(__VA_ARGS__);
#include "tests/abi/more_functions.def"
#undef ABI
#ifdef __cplusplus
}
#endif
#endif
