// What recording costs: MPI_X under papaya against MPI's own function, in turn in one process, for a call that does
// almost nothing (one rank, or MPI_COMM_SELF), so that the difference is papaya's. Medians of blocks.
//
//   mpirun -n 1 env PAPAYA_CALLSITES=0 papaya run call_cost
//
// With two ranks: what it costs to wait for a message that is late by some microseconds, for whom being looked up.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tools/measure/native.h"

enum { blocks = 101, iterations = 20000, kinds = 5 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double median(double* values) {
  qsort(values, blocks, sizeof *values, ascending);
  return values[blocks / 2];
}

typedef int (*Recv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
typedef int (*Send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*Irecv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
typedef int (*Wait)(MPI_Request*, MPI_Status*);

// Rank 1 answers 5 us after it was asked. Until rank 0 has the answer, one time by each way.
enum { late_iterations = 400 };
static double asked_ns(int rank, MPI_Comm comm, Recv recv, Irecv irecv, Wait wait) {
  const Recv native_recv = (Recv)native_function("PMPI_Recv");
  const Send native_send = (Send)native_function("PMPI_Send");
  int word = 0;
  const double begin = now_ns();
  for (int i = 0; i < late_iterations; ++i) {
    if (rank == 1) {
      native_recv(&word, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
      for (const double until = now_ns() + 5000; now_ns() < until;) continue;
      native_send(&word, 1, MPI_INT, 0, 0, comm);
      continue;
    }
    MPI_Request request;
    if (irecv != NULL) irecv(&word, 1, MPI_INT, 1, 0, comm, &request);
    native_send(&word, 1, MPI_INT, 1, 0, comm);
    if (irecv != NULL)
      wait(&request, MPI_STATUS_IGNORE);
    else
      recv(&word, 1, MPI_INT, 1, 0, comm, MPI_STATUS_IGNORE);
  }
  return (now_ns() - begin) / late_iterations;
}

static void waits(int rank) {
  static double native[blocks], recorded[blocks];
  const char* const names[] = {"Recv of a late message", "Irecv, Wait of a late message"};
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  for (int kind = 0; kind < 4; ++kind) {
    const MPI_Comm comm = kind < 2 ? MPI_COMM_WORLD : copy;
    for (int block = 0; block < blocks; ++block) {
      if (kind % 2 == 0) {
        native[block] = asked_ns(rank, comm, (Recv)native_function("PMPI_Recv"), NULL, NULL);
        recorded[block] = asked_ns(rank, comm, MPI_Recv, NULL, NULL);
      } else {
        native[block] =
            asked_ns(rank, comm, NULL, (Irecv)native_function("PMPI_Irecv"), (Wait)native_function("PMPI_Wait"));
        recorded[block] = asked_ns(rank, comm, NULL, MPI_Irecv, MPI_Wait);
      }
    }
    const double n = median(native), r = median(recorded);
    if (rank == 0)
      printf("MPI_%s%s: native %.0f ns, recorded %.0f ns, cost %.0f ns\n", names[kind % 2],
             kind < 2 ? "" : ", copied communicator", n, r, r - n);
  }
  MPI_Comm_free(&copy);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) {
    waits(rank);
    MPI_Finalize();
    return 0;
  }
  int (*native_bcast)(void*, int, MPI_Datatype, int, MPI_Comm) =
      (int (*)(void*, int, MPI_Datatype, int, MPI_Comm))native_function("PMPI_Bcast");
  int (*native_allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) =
      (int (*)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm))native_function("PMPI_Allreduce");
  int (*native_test)(MPI_Request*, int*, MPI_Status*) =
      (int (*)(MPI_Request*, int*, MPI_Status*))native_function("PMPI_Test");
  int (*native_recv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) =
      (int (*)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*))native_function("PMPI_Recv");
  int (*native_irecv)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) =
      (int (*)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))native_function("PMPI_Irecv");
  int (*native_wait)(MPI_Request*, MPI_Status*) = (int (*)(MPI_Request*, MPI_Status*))native_function("PMPI_Wait");
  int (*native_send)(const void*, int, MPI_Datatype, int, int, MPI_Comm) =
      (int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm))native_function("PMPI_Send");
  static double native[kinds][blocks], recorded[kinds][blocks];
  MPI_Request request = MPI_REQUEST_NULL;
  int flag;
  double value = 1, sum = 0;
  for (int block = 0; block < blocks; ++block) {
    double t = now_ns();
    for (int i = 0; i < iterations; ++i) native_bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_SELF);
    native[0][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_SELF);
    recorded[0][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) native_allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    native[1][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    recorded[1][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) native_test(&request, &flag, MPI_STATUS_IGNORE);
    native[2][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    recorded[2][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i)
      native_recv(&value, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    native[3][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i)
      MPI_Recv(&value, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    recorded[3][block] = (now_ns() - t) / iterations;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) {
      native_irecv(&sum, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &request);
      native_send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF);
      native_wait(&request, MPI_STATUS_IGNORE);
    }
    native[4][block] = (now_ns() - t) / iterations / 3;
    t = now_ns();
    for (int i = 0; i < iterations; ++i) {
      MPI_Irecv(&sum, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &request);
      MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    recorded[4][block] = (now_ns() - t) / iterations / 3;
  }
  const char* names[kinds] = {"Bcast", "Allreduce", "Test", "Recv", "Irecv, Send, Wait: each"};
  for (int k = 0; k < kinds; ++k) {
    const double n = median(native[k]), r = median(recorded[k]);
    printf("MPI_%-24s native %6.1f ns, recorded %6.1f ns, cost %6.1f ns\n", names[k], n, r, r - n);
  }
  MPI_Finalize();
  return 0;
}
