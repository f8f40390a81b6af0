/* Rank 1 is late at every call of a weakly consistent collective, at no MPI collective. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#include "include/papaya.h"

enum { count = 100, calls = 20, slack = 2 };

int main(int argc, char** argv) {
  double contribution[count], result[count];
  int rank, flag;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < count; ++i) contribution[i] = 1;

  papaya_weak total, share, split;
  papaya_weak_status status;
  papaya_ssp_allreduce_create(MPI_COMM_WORLD, count, MPI_DOUBLE, MPI_SUM, slack, NULL, &total);
  double waited = 0;
  volatile unsigned late_us = rank == 1 ? 2000 : 0; /* else compilers make two loops, and two call sites */
  papaya_begin_phase("training");
  for (int call = 0; call < calls; ++call) {
    usleep(late_us);
    papaya_weak_call(total, contribution, result, &status); /* here they would wait */
    waited += status.waited;
  }
  papaya_end_phase();
  /* Switched off for one. */
  MPI_Pcontrol(0);
  papaya_weak_call(total, contribution, result, &status);
  MPI_Pcontrol(1);

  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_name(copy, "a copy");
  papaya_threshold_bcast_create(copy, count, MPI_DOUBLE, 0.5, PAPAYA_OF_DATA, 1, &share);
  MPI_Comm_free(&copy);
  papaya_weak_call(share, contribution, result, PAPAYA_WEAK_STATUS_IGNORE);

  papaya_ssp_accumulate_create(MPI_COMM_WORLD, count, MPI_DOUBLE, MPI_SUM, 1, NULL, &split);
  for (int call = 0; call < 2; ++call) {
    papaya_weak_start(split, contribution, result); /* here one starts */
    usleep(20000);
    papaya_weak_wait(split, -1, &flag, &status); /* here it ends */
  }
  papaya_weak_free(&total);
  papaya_weak_free(&share);
  papaya_weak_free(&split);
  for (int call = 0; call < 3; ++call) MPI_Allreduce(contribution, result, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d waited %.9f s\n", rank, waited);
  MPI_Finalize();
  return 0;
}
