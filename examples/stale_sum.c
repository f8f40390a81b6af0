// Each rank adds to a sum that all share, and goes on with one that is at most four calls old.
#include <papaya.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  enum { count = 1000, calls = 100, slack = 4 };
  double gradient[count], sum[count];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  papaya_weak total;
  papaya_ssp_accumulate_create(MPI_COMM_WORLD, count, MPI_DOUBLE, MPI_SUM, slack, NULL, &total);
  papaya_weak_status status;
  double waited = 0;
  for (int call = 1; call <= calls; ++call) {
    usleep(call % 10 == rank ? 500 : 100);  // now and then a rank is late
    for (int i = 0; i < count; ++i) gradient[i] = 1;
    papaya_weak_call(total, gradient, sum, &status);
    waited += status.waited;
  }
  printf("rank %d: the last sum is %.0f, of contributions from call %lld on; waited %.1f ms\n", rank, sum[0],
         status.oldest, waited * 1e3);
  papaya_weak_free(&total);
  MPI_Finalize();
}
