// A tool that takes MPI_Init for itself, as PMPI tools do.
#include <mpi.h>

int MPI_Init(int* argc, char*** argv) {
  return PMPI_Init(argc, argv);
}
