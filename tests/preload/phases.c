// usage: phases [recorded]   recorded: all the time
// What include/papaya.h offers: allreduces in phases, and some that are not to be recorded.
#include <mpi.h>
#include <stdio.h>

#include "check.h"
#include "include/papaya.h"

static void reduce(int times) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < times; ++i) {
    int one = 1, sum = 0;
    COUNTED(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size);
  }
}

int main(int argc, char** argv) {
  papaya_begin_phase("too early");
  MPI_Init(&argc, &argv);
  papaya_end_phase();  // one too many does no harm
  reduce(3);
  papaya_begin_phase("assembly");
  reduce(5);
  papaya_begin_phase("solve");
  reduce(7);
  if (argc < 2) MPI_Pcontrol(0);
  reduce(20);
  MPI_Pcontrol(1);
  papaya_end_phase();
  reduce(11);
  papaya_end_phase();
  // Deeper than they are kept, and more names than are kept.
  for (int i = 0; i < 20; ++i) papaya_begin_phase("deep");
  for (int i = 0; i < 20; ++i) papaya_end_phase();
  for (int i = 0; i < 40; ++i) {
    char name[80];
    snprintf(name, sizeof name, "step %d of a name that is longer than what is kept of a name of a phase", i);
    papaya_begin_phase(name);
    papaya_end_phase();
  }
  papaya_begin_phase("solve");
  reduce(13);
  papaya_end_phase();
  reduce(1);
  MPI_Finalize();
  papaya_begin_phase("too late");
  return finish();
}
