// What a job takes to start and end: nothing but MPI_Init and MPI_Finalize. For wall_time.py.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  return 0;
}
