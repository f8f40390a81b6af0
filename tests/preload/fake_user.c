// A program of the MPI that nobody has heard of (fake_mpi.c).
#include <stdio.h>

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Comm_rank(int comm, int* rank);
int MPI_Allreduce(const void* in, void* out, int count, int type, int op, int comm);

int main(int argc, char** argv) {
  int in[3] = {1, 2, 3}, out[3] = {0, 0, 0}, rank = -1, code = 0;
  if (MPI_Init(&argc, &argv) != 0 || MPI_Comm_rank(1, &rank) != 0) return 1;
  for (int i = 0; i < 100; ++i) code = MPI_Allreduce(in, out, 3, 1, 20, 300);
  if (MPI_Finalize() != 0) return 1;
  printf("rank %d, code %d, result %d %d %d\n", rank, code, out[0], out[1], out[2]);
  return 0;
}
