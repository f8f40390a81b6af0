// A buffer on a device on one rank only, from the middle of the run on: its runtime is loaded late, as by an import in
// Python.
//   device LIBRARY                   calls that go to MPI on all ranks. The buffers are host memory in truth, so that
//   MPI can
//                                    reduce them: what counts is that every rank takes the same way.
//   device LIBRARY copied NUMBER     MPI_Bcast and MPI_Reduce, which have no native call left to go to: nothing but the
//                                    runtime's own copies can read the buffers. NUMBER: the fake's mode
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { longest = 40000 };

static int rank, ranks;

static void reduce(double* buffer, int count) {
  for (int i = 0; i < count; ++i) buffer[i] = rank + i;
  COUNTED(MPI_Allreduce, MPI_IN_PLACE, buffer, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) CHECK(buffer[i] == ranks * (ranks - 1) / 2.0 + ranks * i);
}

// From one rank's device, or to it.
static void exchange(double* buffer, double* other, int sends, int call) {
  int counts[2][8], places[8];
  for (int peer = 0; peer < ranks; ++peer) {
    places[peer] = peer * 100;
    counts[0][peer] = (rank + 2 * peer + call) % 100;
    counts[1][peer] = (peer + 2 * rank + call) % 100;
  }
  double* const send = sends ? buffer : other;
  double* const receive = sends ? other : buffer;
  for (int i = 0; i < ranks * 100; ++i) send[i] = rank * 1000 + i;
  COUNTED(MPI_Alltoallv, send, counts[0], places, MPI_DOUBLE, receive, counts[1], places, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int peer = 0; peer < ranks; ++peer)
    for (int i = 0; i < counts[1][peer]; ++i) CHECK(receive[places[peer] + i] == peer * 1000 + rank * 100 + i);
}

// Memory for a call, and where its contents can be seen.
struct buffer {
  int* memory;
  int* contents;
};

static void broadcast(struct buffer buffer, int count, MPI_Datatype type, int stride, int call) {
  const int root = call % ranks;
  for (int i = 0; i < count * stride; ++i) buffer.contents[i] = -1 - (rank == root ? i + call : 0);
  COUNTED(MPI_Bcast, buffer.memory, count, type, root, MPI_COMM_WORLD);
  for (int i = 0; i < count * stride; ++i)
    CHECK(buffer.contents[i] == (rank == root || i % stride == 0 ? -1 - i - call : -1));
}

static void reduce_to_root(struct buffer in, struct buffer out, int count, int call) {
  const int root = call % ranks;
  const int in_place = rank == root && call % 3 == 0;
  int* const operand = in_place ? out.contents : in.contents;
  for (int i = 0; i < count; ++i) operand[i] = rank * i + call;
  COUNTED(MPI_Reduce, in_place ? MPI_IN_PLACE : in.memory, out.memory, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) CHECK(rank != root || out.contents[i] == ranks * (ranks - 1) / 2 * i + ranks * call);
}

static struct buffer host_memory(size_t bytes) {
  int* const memory = malloc(bytes);
  return (struct buffer){memory, memory};
}

int main(int argc, char** argv) {
  static double host[5000], other[5000], device[5000];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < 10; ++i) reduce(host, 1 + i * 500);
  void* const runtime = dlopen(argv[1], RTLD_NOW);
  CHECK(runtime != NULL);
  if (runtime == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  void (*const declare)(void*, uint64_t, void*, int) =
      (void (*)(void*, uint64_t, void*, int))(uintptr_t)dlsym(runtime, "fake_register");
  int (*const misuses)(void) = (int (*)(void))(uintptr_t)dlsym(runtime, "fake_misuses");
  // Loaded, and started later. A real one takes longer for either.
  usleep(20000);
  reduce(host, 3);
  if (argc == 2) {
    declare(device, sizeof device, device, 0);
    usleep(50000);
    for (int i = 0; i < 10; ++i) {
      reduce(rank == i % ranks ? device : host, 1 + i * 500);
      reduce(host, 3);
      reduce(device, 4000);
      exchange(rank == i % ranks ? device : host, other, i % 2, i);
      exchange(host, other, i % 2, i);
    }
  } else {
    const size_t bytes = 3 * longest * sizeof(int);
    const int file = memfd_create("device", 0);
    CHECK(ftruncate(file, 2 * (off_t)bytes) == 0);
    char* const memory = mmap(NULL, 2 * bytes, PROT_NONE, MAP_SHARED, file, 0);
    char* const contents = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    struct buffer buffers[2][2] = {
        {host_memory(bytes), host_memory(bytes)},
        {{(int*)memory, (int*)contents}, {(int*)(memory + bytes), (int*)(contents + bytes)}}};
    declare(memory, 2 * bytes, contents, atoi(argv[3]));
    usleep(50000);
    MPI_Datatype sparse;
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &sparse);
    MPI_Type_commit(&sparse);
    static const int counts[] = {1, 1000, longest};
    // What is set up without waiting goes to MPI at first.
    for (int call = 0; call < 24; ++call) {
      broadcast(buffers[0][0], counts[call % 3], MPI_INT, 1, call);
      reduce_to_root(buffers[0][0], buffers[0][1], counts[call % 3], call);
      COUNTED(MPI_Barrier, MPI_COMM_WORLD);
    }
    for (int call = 0; call < 24; ++call) {
      const int count = counts[call % 3], is_device = (call + rank) / 2 % 2;
      broadcast(buffers[is_device][0], count, MPI_INT, 1, call);
      broadcast(buffers[is_device][1], count, sparse, 3, call);
      reduce_to_root(buffers[is_device][0], buffers[call % 2][1], count, call);
    }
    MPI_Type_free(&sparse);
  }
  CHECK(misuses() == 0);
  const int code = finish();
  MPI_Finalize();
  return code;
}
