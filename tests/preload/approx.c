/* Calls that PAPAYA_APPROX may make approximate: approx MODE [CALLS]. Results that must be exact are checked here. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { count = 100 };

#define fail(...) (++failures <= 10 ? fprintf(stderr, "failed: " __VA_ARGS__) + fputc('\n', stderr) : 0)

static int rank, size;
static double mine[count], all[count];

static void fill(double value) {
  for (int i = 0; i < count; ++i) {
    mine[i] = value + rank;
    all[i] = -1;
  }
}
static double sum_of(double value) {
  return size * value + size * (size - 1) / 2.0;
}

static MPI_Comm named(const char* name) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, name);
  return comm;
}

/* Rank 1 is late; the results are of one of the last calls. `most` calls may be between. */
static void allreduces(int calls, int most, int in_place) {
  MPI_Comm comm = named("gradients");
  for (int call = 1; call <= calls; ++call) {
    fill(call);
    if (rank == 1) usleep(500);
    if (in_place) memcpy(all, mine, sizeof all);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, all, count, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < count; ++i)
      if (all[i] > sum_of(call + most) || all[i] < sum_of(call > most ? call - most : 1))
        fail("rank %d, call %d: %g", rank, call, all[i]);
    MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (all[3] != sum_of(call)) fail("another communicator's: %g", all[3]);
  }
  MPI_Comm_free(&comm);
}

/* What a weak collective does not serve is exact: no data, a user's operation, other communicators. */
static void add(void* in, void* out, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((double*)out)[i] += ((double*)in)[i];
}
static void odd(void) {
  MPI_Comm comm = named("gradients"), copy, pair, between;
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  for (int call = 1; call <= 3; ++call) {
    fill(call);
    MPI_Allreduce(mine, all, 0, MPI_DOUBLE, MPI_SUM, comm);
    if (all[0] != -1) fail("a call of no data wrote %g", all[0]);
    MPI_Allreduce(mine, all, count, MPI_DOUBLE, own, comm);
    if (all[5] != sum_of(call)) fail("a user's operation: %g", all[5]);
    struct {
      double value;
      int where;
    } least = {rank == 1 ? -call : call, rank}, found;
    MPI_Allreduce(&least, &found, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    if (found.where != 1) fail("MINLOC: %d", found.where);
  }
  MPI_Op_free(&own);
  /* Several communicators of this name, also of some ranks, come and go. */
  for (int i = 0; i < 4; ++i) {
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_set_name(copy, "gradients");
    fill(i);
    MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, copy);
    if (all[0] != sum_of(i)) fail("the first call of communicator %d: %g", i, all[0]);
    MPI_Comm_free(&copy);
  }
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &pair);
  MPI_Intercomm_create(pair, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &between);
  MPI_Comm_set_name(between, "gradients");
  MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_MAX, between);
  MPI_Comm_free(&between);
  MPI_Comm_free(&pair);
  /* Not by one name on all ranks. */
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_name(copy, rank == 0 ? "gradients" : "others");
  for (int i = 0; i < 4; ++i) {
    fill(i);
    MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, copy);
    if (all[0] != sum_of(i)) fail("ranks disagree on the name: %g", all[0]);
  }
  MPI_Comm_free(&copy);
  MPI_Comm_free(&comm);
}

/* More communicators than collectives are kept for; of others the ranks disagree on the name. */
static void churn(int communicators) {
  for (int i = 0; i < communicators; ++i) {
    MPI_Comm comm = named(i % 10 == 0 && rank == 1 ? "others" : "gradients");
    for (int call = 1; call <= 2; ++call) {
      fill(i);
      MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, comm);
      if (all[7] != sum_of(i)) fail("communicator %d: %g", i, all[7]);
    }
    MPI_Comm_free(&comm);
  }
}

/* Each communicator has a thread of papaya's, which may be inside MPI when MPI_Finalize begins. */
static void threads(int communicators) {
  for (int i = 0; i < communicators; ++i) {
    MPI_Comm comm = named("gradients");
    fill(i);
    MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, comm);
    if (all[7] < i || all[7] > sum_of(i)) fail("communicator %d: %g", i, all[7]);
    MPI_Comm_free(&comm);
  }
}

/* Two layers of one size. */
static void layers(int calls) {
  MPI_Comm comm = named("gradients");
  for (int call = 1; call <= calls; ++call)
    for (int layer = 0; layer < 2; ++layer) {
      fill(layer * 1000000.0);
      if (rank == 1) usleep(200);
      MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, comm);
      if (all[0] != sum_of(layer * 1000000.0)) fail("layer %d mixed with another: %g", layer, all[0]);
    }
  MPI_Comm_free(&comm);
}

/* A quarter of the data. `of`: doubles, or a derived type on the odd ranks that does not lie close. */
static void rooted(int calls) {
  MPI_Comm comm = named("solver");
  MPI_Datatype pairs;
  MPI_Type_vector(count / 2, 1, 2, MPI_DOUBLE, &pairs);
  MPI_Type_commit(&pairs);
  for (int call = 1; call <= calls; ++call) {
    const int root = call % size;
    fill(call);
    memset(all, 0, sizeof all);
    MPI_Reduce(mine, all, count, MPI_DOUBLE, MPI_SUM, root, comm);
    if (rank == root && (all[0] != sum_of(call) || all[count / 4 - 1] != sum_of(call)))
      fail("what is asked for of a reduce: %g", all[0]);
    if (rank == root && (all[count / 4] != mine[0] || all[count - 1] != mine[0]))
      fail("what is left out of a reduce: %g", all[count - 1]);
    for (int i = 0; i < count; ++i) all[i] = rank == root ? call * 1000 + i : -1;
    MPI_Bcast(all, count, MPI_DOUBLE, root, comm);
    for (int i = 0; i < count; ++i) {
      const double wanted = rank == root || i < count / 4 ? call * 1000 + i : i >= count / 4 + 1 ? -1 : all[i];
      if (all[i] != wanted) fail("broadcast, element %d: %g", i, all[i]);
    }
    /* 50 doubles, on odd ranks every second one of an array. */
    for (int i = 0; i < count; ++i) all[i] = rank == root ? call : -1;
    MPI_Bcast(all, rank % 2 ? 1 : count / 2, rank % 2 ? pairs : MPI_DOUBLE, root, comm);
    if (rank != root && rank % 2 == 0 && all[0] != call) fail("derived type: %g", all[0]);
    if (rank != root && rank % 2 == 1 && all[1] != -1) fail("a hole was written: %g", all[1]);
  }
  MPI_Type_free(&pairs);
  MPI_Comm_free(&comm);
}

/* Calls of one MPI_Allreduce at different lines. Approximate ones all have the same data. The compiler must not merge
   the functions, nor leave them by a jump. */
static volatile int at_exact, at_approximate;
static void exact_here(MPI_Comm comm) {
  MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, comm); /* exact site */
  ++at_exact;
}
static void approximate_here(MPI_Comm comm) {
  MPI_Allreduce(mine, all, count, MPI_DOUBLE, MPI_SUM, comm); /* approximate site */
  ++at_approximate;
}
static void sites(int calls) {
  MPI_Comm comms[2] = {MPI_COMM_WORLD, named("copy")};
  for (int call = 1; call <= calls; ++call)
    for (int c = 0; c < 2; ++c) {
      /* All, odd ranks, nobody, rank 0, nobody. */
      const int who = call % 5;
      const int is_exact = who == 2 || who == 4;
      const int is_here = who == 0 || (who == 1 && rank % 2 == 1) || (who == 3 && rank == 0);
      const double value = is_exact ? call * 1000.0 : 7;
      if (rank == call % size) usleep(300);
      fill(value);
      (is_here ? approximate_here : exact_here)(comms[c]);
      for (int i = 0; i < count; ++i)
        if (all[i] != sum_of(value)) {
          fail("rank %d, call %d: %g", rank, call, all[i]);
          break;
        }
    }
  MPI_Comm_free(&comms[1]);
}

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "allreduce";
  const int calls = argc > 2 ? atoi(argv[2]) : 20;
  int level;
  MPI_Init_thread(&argc, &argv, strcmp(mode, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(mode, "exact") == 0) allreduces(calls, 0, 0);
  if (strcmp(mode, "stale") == 0) allreduces(calls, 2, 0);
  if (strcmp(mode, "in_place") == 0) allreduces(calls, 2, 1);
  if (strcmp(mode, "odd") == 0) odd();
  if (strcmp(mode, "threads") == 0) threads(calls);
  if (strcmp(mode, "churn") == 0) churn(calls);
  if (strcmp(mode, "layers") == 0) layers(calls);
  if (strcmp(mode, "sites") == 0) sites(calls);
  if (strcmp(mode, "rooted") == 0) rooted(calls);
  MPI_Finalize();
  return finish();
}
