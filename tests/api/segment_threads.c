// Two threads of each rank, each with a segment of its own, write round a ring at the same time. usage: segment_threads
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "papaya.h"

enum { threads = 2, most = 20000, rounds = 200 };
enum { filled, emptied, notifications };

struct Ring {
  papaya_segment segment;
  int number, rank, ranks, failures;
};

static size_t length_of(int number, int round) {
  return (size_t)((round * 7919 + number * 31) % most) + 1;
}
static unsigned char byte_of(int number, int rank, int round) {
  return (unsigned char)(number * 101 + rank * 7 + round);
}

static void good(struct Ring* self, int is_right) {
  if (!is_right && self->failures++ < 5) printf("rank %d, thread %d: wrong\n", self->rank, self->number);
}

static void* run(void* argument) {
  struct Ring* const self = argument;
  const int before = (self->rank + self->ranks - 1) % self->ranks, next = (self->rank + 1) % self->ranks;
  unsigned char* const source = malloc(most);
  unsigned char* memory = NULL;
  int id = -1, flag = 0;
  unsigned value = 0;
  good(self, papaya_segment_address(self->segment, (void**)&memory) == MPI_SUCCESS);
  for (int round = 0; round < rounds && self->failures == 0; ++round) {
    const size_t bytes = length_of(self->number, round);
    if (round > 0) {
      good(self, papaya_notify_wait(self->segment, emptied, 1, -1, &id) == MPI_SUCCESS);
      papaya_notify_reset(self->segment, emptied, &value);
      papaya_write_wait(self->segment, -1, &flag);
    }
    for (size_t i = 0; i < bytes; ++i) source[i] = byte_of(self->number, self->rank, round);
    good(self, papaya_write_notify(self->segment, next, 0, source, bytes, filled, (unsigned)round + 1) == MPI_SUCCESS);
    good(self, papaya_notify_wait(self->segment, filled, 1, -1, &id) == MPI_SUCCESS);
    papaya_notify_reset(self->segment, filled, &value);
    good(self, value == (unsigned)round + 1);
    for (size_t i = 0; i < bytes; ++i) good(self, memory[i] == byte_of(self->number, before, round));
    good(self, papaya_notify(self->segment, before, emptied, 1) == MPI_SUCCESS);
  }
  papaya_write_wait(self->segment, -1, &flag);
  free(source);
  return NULL;
}

int main(int argc, char** argv) {
  struct Ring rings[threads] = {{0}};
  pthread_t running[threads];
  int level = 0, failures = 0, all = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level != MPI_THREAD_MULTIPLE) return 77;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < threads; ++i) {
    rings[i].number = i;
    rings[i].rank = rank;
    MPI_Comm_size(MPI_COMM_WORLD, &rings[i].ranks);
    papaya_segment_create(MPI_COMM_WORLD, most, notifications, &rings[i].segment);
  }
  for (int i = 0; i < threads; ++i) pthread_create(&running[i], NULL, run, &rings[i]);
  for (int i = 0; i < threads; ++i) pthread_join(running[i], NULL);
  for (int i = 0; i < threads; ++i) {
    failures += rings[i].failures;
    papaya_segment_free(&rings[i].segment);
  }
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0 && all == 0) printf("all right\n");
  return all == 0 ? 0 : 1;
}
