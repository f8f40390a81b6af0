// MPI_THREAD_MULTIPLE: several threads of each rank do collectives at once, each on its own communicator.
// Thread 0 calls on MPI_COMM_WORLD itself; one thread makes and frees communicators between its calls.
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

enum { threads = 4, iterations = 300, most_elements = 700 };

static int rank, ranks;
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;

struct work {
  int thread;
  MPI_Comm comm;
  int wrong;
};

static int allreduce(int thread, int i, MPI_Comm comm) {
  double in[most_elements], out[most_elements];
  const int elements = i % 3 == 0 ? 1 : i % 3 == 1 ? 32 : most_elements;
  for (int j = 0; j < elements; ++j) in[j] = rank + 3 * j + 5 * i + 7 * thread;
  int wrong = MPI_Allreduce(in, out, elements, MPI_DOUBLE, i % 2 == 0 ? MPI_SUM : MPI_MAX, comm) != MPI_SUCCESS;
  for (int j = 0; j < elements; ++j) {
    const double same = 3 * j + 5 * i + 7 * thread;
    const double expected = i % 2 == 0 ? ranks * same + 0.5 * ranks * (ranks - 1) : same + ranks - 1;
    wrong += out[j] != expected;
  }
  pthread_mutex_lock(&count_lock);
  count_call("MPI_Allreduce");
  pthread_mutex_unlock(&count_lock);
  return wrong;
}

static void* run(void* argument) {
  struct work* work = argument;
  for (int i = 0; i < iterations; ++i) {
    if (work->thread == threads - 1 && i % 10 == 0) {
      MPI_Comm copy;
      MPI_Comm_dup(work->comm, &copy);
      work->wrong += allreduce(work->thread, i, copy);
      work->wrong += allreduce(work->thread, i, copy);
      MPI_Comm_free(&copy);
    }
    work->wrong += allreduce(work->thread, i, work->comm);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(provided == MPI_THREAD_MULTIPLE);

  struct work work[threads];
  pthread_t thread[threads];
  for (int t = 0; t < threads; ++t) {
    work[t] = (struct work){t, MPI_COMM_WORLD, 0};
    if (t > 0) MPI_Comm_dup(MPI_COMM_WORLD, &work[t].comm);
  }
  for (int t = 0; t < threads; ++t)
    if (pthread_create(&thread[t], NULL, run, &work[t]) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int t = 0; t < threads; ++t) {
    pthread_join(thread[t], NULL);
    CHECK(work[t].wrong == 0);
    if (t > 0) MPI_Comm_free(&work[t].comm);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
