// For PAPAYA_VERIFY: results that may differ from MPI's in rounding, memory that must not be touched, and
// wrong ones.
//   verified hole     a type whose gap cannot be read
//   verified cancel   sums of doubles that cancel out to almost nothing
//   verified own      the same with an operation of the program on contiguous doubles
//   verified wrong    an operation that gives another result each time it is used
//   verified planted  calls of nine collectives whose results an algorithm gets wrong
//   verified only     the same of MPI_Bcast alone, in which ranks may leave early
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { count = 4096, calls = 8 };
static long gap;

static void add_both_ends(void* in, void* inout, int* length, MPI_Datatype* type) {
  MPI_Aint lowest, extent;
  MPI_Type_get_extent(*type, &lowest, &extent);
  for (int i = 0; i < *length; ++i)
    for (long at = 0; at <= gap; at += gap)
      *(int*)((char*)inout + i * extent + at) += *(const int*)((const char*)in + i * extent + at);
}

static void add_pairs(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < 2 * *length; ++i) ((double*)inout)[i] += ((const double*)in)[i];
}

// Every rank uses it at different moments: the sum depends on how often and where it ran.
static void add_and_count(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  static int times = 0;
  ++times;
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((const int*)in)[i] + times;
}

static void hole(int ranks) {
  const long page = sysconf(_SC_PAGESIZE);
  gap = 2 * page;
  char* buffers[2];
  for (int i = 0; i < 2; ++i) {
    buffers[i] = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(buffers[i] != MAP_FAILED && mprotect(buffers[i] + page, page, PROT_NONE) == 0);
  }
  int lengths[] = {1, 1};
  MPI_Aint places[] = {0, gap};
  MPI_Datatype type;
  MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Op op;
  MPI_Op_create(add_both_ends, 1, &op);
  for (int i = 0; i < calls; ++i) {
    *(int*)buffers[0] = i;
    *(int*)(buffers[0] + gap) = 2;
    const void* from = i % 2 == 0 ? buffers[0] : MPI_IN_PLACE;
    char* to = buffers[i % 2 == 0];
    CHECK(COUNTED(MPI_Allreduce, from, to, 1, type, op, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(*(int*)to == i * ranks && *(int*)(to + gap) == 2 * ranks);
    CHECK(COUNTED(MPI_Bcast, to, 1, type, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

static void cancel(int rank, int ranks, int own) {
  static double mine[count], sums[count], rest[count];
  MPI_Datatype type = MPI_DOUBLE;
  MPI_Op op = MPI_SUM;
  int elements = count;
  if (own) {
    elements = count / 2;
    MPI_Type_contiguous(2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add_pairs, 1, &op);
  }
  srand((unsigned)rank + 1);
  for (int i = 0; i < calls; ++i) {
    for (int j = 0; j < count; ++j) mine[j] = rand() / (double)RAND_MAX - 0.5;
    CHECK(COUNTED(MPI_Allreduce, mine, sums, elements, type, op, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int j = 0; j < count; ++j) mine[j] -= sums[j] / ranks;
    CHECK(COUNTED(MPI_Allreduce, mine, rest, elements, type, op, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int j = 0; j < count; ++j) CHECK(rest[j] < 1e-12 && rest[j] > -1e-12);
  }
}

static void wrong(void) {
  MPI_Op op;
  MPI_Op_create(add_and_count, 1, &op);
  for (int i = 0; i < calls; ++i) {
    int value = 1, sum;
    CHECK(COUNTED(MPI_Allreduce, &value, &sum, 1, MPI_INT, op, MPI_COMM_WORLD) == MPI_SUCCESS);
  }
  MPI_Op_free(&op);
}

// Of `elements` ints; every rank's are its number, and what stands there moves on with each call.
enum { elements = 8, most_ranks = 8 };
static int mine[most_ranks * elements], all[most_ranks * elements];

static void broadcast_all(MPI_Comm comm, int rank, int times) {
  for (int i = 0; i < times; ++i) {
    for (int j = 0; j < elements; ++j) all[j] = rank == 0 ? i + j : -1;
    CHECK(COUNTED(MPI_Bcast, all, elements, MPI_INT, 0, comm) == MPI_SUCCESS);
    for (int j = 0; j < elements; ++j) CHECK(all[j] == i + j);
  }
}

static void reduce_all(MPI_Comm comm, int rank, int ranks, int times, int to_one) {
  for (int i = 0; i < times; ++i) {
    for (int j = 0; j < elements; ++j) mine[j] = rank + i + j;
    if (to_one)
      CHECK(COUNTED(MPI_Reduce, mine, all, elements, MPI_INT, MPI_SUM, 1, comm) == MPI_SUCCESS);
    else
      CHECK(COUNTED(MPI_Allreduce, mine, all, elements, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    if (to_one && rank != 1) continue;
    for (int j = 0; j < elements; ++j) CHECK(all[j] == ranks * (i + j) + ranks * (ranks - 1) / 2);
  }
}

static void exchange_all(MPI_Comm comm, int rank, int ranks, int times, int gathers) {
  for (int i = 0; i < times; ++i) {
    for (int j = 0; j < ranks * elements; ++j) mine[j] = rank * 100 + i;
    if (gathers)
      CHECK(COUNTED(MPI_Allgather, mine, elements, MPI_INT, all, elements, MPI_INT, comm) == MPI_SUCCESS);
    else
      CHECK(COUNTED(MPI_Alltoall, mine, elements, MPI_INT, all, elements, MPI_INT, comm) == MPI_SUCCESS);
    for (int j = 0; j < ranks * elements; ++j) CHECK(all[j] == j / elements * 100 + i);
  }
}

static void give_and_take_all(MPI_Comm comm, int rank, int ranks) {
  for (int j = 0; j < elements; ++j) mine[j] = rank * 100 + j;
  CHECK(COUNTED(MPI_Gather, mine, elements, MPI_INT, all, elements, MPI_INT, 1, comm) == MPI_SUCCESS);
  for (int j = 0; j < ranks * elements && rank == 1; ++j) CHECK(all[j] == j / elements * 100 + j % elements);
  for (int j = 0; j < ranks * elements; ++j) mine[j] = j;
  CHECK(COUNTED(MPI_Scatter, mine, elements, MPI_INT, all, elements, MPI_INT, 0, comm) == MPI_SUCCESS);
  for (int j = 0; j < elements; ++j) CHECK(all[j] == rank * elements + j);
}

static void reduce_blocks(MPI_Comm comm, int rank, int ranks) {
  int counts[most_ranks];
  for (int i = 0; i < ranks; ++i) counts[i] = elements;
  for (int by_counts = 0; by_counts < 2; ++by_counts) {
    for (int j = 0; j < ranks * elements; ++j) mine[j] = rank + j;
    if (by_counts)
      CHECK(COUNTED(MPI_Reduce_scatter, mine, all, counts, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    else
      CHECK(COUNTED(MPI_Reduce_scatter_block, mine, all, elements, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    for (int j = 0; j < elements; ++j) CHECK(all[j] == ranks * (rank * elements + j) + ranks * (ranks - 1) / 2);
  }
}

static void planted(int rank, int ranks) {
  enum { times = 6, times_rooted = 12 };  // those are set up on the way
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_name(other, "other");
  exchange_all(MPI_COMM_WORLD, rank, ranks, times, 0);
  exchange_all(MPI_COMM_WORLD, rank, ranks, times, 1);
  for (int i = 0; i < times_rooted; ++i) {
    broadcast_all(MPI_COMM_WORLD, rank, 1);
    reduce_all(MPI_COMM_WORLD, rank, ranks, 1, 1);
    reduce_all(MPI_COMM_WORLD, rank, ranks, 1, 0);
  }
  for (int i = 0; i < times_rooted; ++i) {
    give_and_take_all(MPI_COMM_WORLD, rank, ranks);
    reduce_blocks(MPI_COMM_WORLD, rank, ranks);
  }
  reduce_all(other, rank, ranks, 2, 0);
  MPI_Comm_free(&other);
}

// By messages the root knows that all have been in the call: it is set up once they have.
static void only(int rank, int ranks) {
  for (int i = 0; i < 12; ++i) {
    broadcast_all(MPI_COMM_WORLD, rank, 1);
    if (rank != 0) MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
    for (int other = 1; rank == 0 && other < ranks; ++other)
      MPI_Recv(NULL, 0, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (strcmp(mode, "hole") == 0) hole(ranks);
  if (strcmp(mode, "cancel") == 0) cancel(rank, ranks, 0);
  if (strcmp(mode, "own") == 0) cancel(rank, ranks, 1);
  if (strcmp(mode, "wrong") == 0) wrong();
  if (strcmp(mode, "planted") == 0) planted(rank, ranks);
  if (strcmp(mode, "only") == 0) only(rank, ranks);
  const int code = finish();
  MPI_Finalize();
  return code;
}
