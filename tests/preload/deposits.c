// Many communicators, each with calls of all sizes: COMMS of them, half of all ranks and half of every second one,
// CALLS of each collective and size on each, ROOTED of those with a root. THREADS of every rank do so at once, each
// with communicators of its own. At last some communicators are freed and others made.
//   deposits COMMS CALLS [THREADS [ROOTED]]
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

enum { most_bytes = 1 << 20, most_threads = 8 };
static const int sizes[] = {8, 4096, 65536, most_bytes};

static int comms, calls, rooted;
static MPI_Comm* all[most_threads];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void count(const char* name) {
  pthread_mutex_lock(&mutex);
  count_call(name);
  pthread_mutex_unlock(&mutex);
}

static void fail_unless(int right) {
  if (right) return;
  pthread_mutex_lock(&mutex);
  CHECK(right);
  pthread_mutex_unlock(&mutex);
}

static MPI_Comm make(int number, int rank) {
  MPI_Comm comm;
  if (number % 2 == 0)
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  else
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
  return comm;
}

// The root waits in each reduce, the others in each bcast.
static void use_rooted(MPI_Comm comm, int number, int n, double* in, double* out) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const int last = n - 1;
  for (int call = 0; call < rooted; ++call) {
    const int root = (call / 4 + number) % ranks;
    for (int i = 0; i < n; ++i) out[i] = rank == root ? number + call + 2.0 * i : -1;
    count("MPI_Bcast");
    MPI_Bcast(out, n, MPI_DOUBLE, root, comm);
    for (int i = 0; i < n; i += 61) fail_unless(out[i] == number + call + 2.0 * i);
    fail_unless(out[last] == number + call + 2.0 * last);
    for (int i = 0; i < n; ++i) in[i] = rank + call + i;
    count("MPI_Reduce");
    MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, root, comm);
    if (rank != root) continue;
    const double sum = (double)ranks * call + ranks * (ranks - 1) / 2;
    for (int i = 0; i < n; i += 61) fail_unless(out[i] == sum + (double)ranks * i);
    fail_unless(out[last] == sum + (double)ranks * last);
  }
}

static void use(MPI_Comm comm, int number, double* in, double* out) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  // Communicators of one rank are MPI's.
  if (ranks == 1) return;
  for (unsigned size = 0; size < sizeof sizes / sizeof *sizes; ++size) {
    const int n = sizes[size] / (int)sizeof(double), last = n - 1;
    use_rooted(comm, number, n, in, out);
    for (int call = 0; call < calls; ++call) {
      for (int i = 0; i < n; ++i) in[i] = rank + number + call + i;
      count("MPI_Allreduce");
      MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
      const double sum = ranks * (number + call) + ranks * (ranks - 1) / 2;
      fail_unless(out[0] == sum && out[n / 2] == sum + (double)ranks * (n / 2) &&
                  out[last] == sum + (double)ranks * last);
      count("MPI_Allgather");
      MPI_Allgather(in, n, MPI_DOUBLE, out, n, MPI_DOUBLE, comm);
      for (int other = 0; other < ranks; ++other)
        fail_unless(out[other * n] == other + number + call && out[other * n + last] == other + number + call + last);
      // Of the larger ones a part for each rank.
      const int part = n >= ranks ? n / ranks : 1;
      for (int other = 0; other < ranks; ++other) in[other * part] = rank * 1000 + other + number;
      count("MPI_Alltoall");
      MPI_Alltoall(in, part, MPI_DOUBLE, out, part, MPI_DOUBLE, comm);
      for (int other = 0; other < ranks; ++other) fail_unless(out[other * part] == other * 1000 + rank + number);
    }
  }
}

static void* run(void* argument) {
  const int thread = *(int*)argument;
  double* in = malloc(most_bytes + 64);
  double* out = malloc(8 * (size_t)most_bytes);
  for (int i = 0; i < comms; ++i) use(all[thread][i], i + thread, in, out);
  // Again, in another order.
  for (int i = comms - 1; i >= 0; i -= 7) use(all[thread][i], i + thread, in, out);
  free(in);
  free(out);
  return NULL;
}

int main(int argc, char** argv) {
  comms = argc > 1 ? atoi(argv[1]) : 100;
  calls = argc > 2 ? atoi(argv[2]) : 1;
  const int threads = argc > 3 ? atoi(argv[3]) : 1;
  rooted = argc > 4 ? atoi(argv[4]) : 0;
  int provided, rank;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (threads > 1 && provided != MPI_THREAD_MULTIPLE) {
    printf("no MPI_THREAD_MULTIPLE here\n");
    MPI_Finalize();
    return 77;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int numbers[most_threads];
  for (int t = 0; t < threads; ++t) {
    numbers[t] = t;
    all[t] = malloc((size_t)comms * sizeof(MPI_Comm));
    for (int i = 0; i < comms; ++i) all[t][i] = make(i, rank);
  }
  pthread_t others[most_threads];
  for (int t = 1; t < threads; ++t) CHECK(pthread_create(&others[t], NULL, run, &numbers[t]) == 0);
  run(&numbers[0]);
  for (int t = 1; t < threads; ++t) pthread_join(others[t], NULL);
  for (int t = 0; t < threads; ++t)
    for (int i = 0; i < comms; i += 2) {
      MPI_Comm_free(&all[t][i]);
      all[t][i] = make(i, rank);
    }
  run(&numbers[0]);
  for (int t = 0; t < threads; ++t) {
    for (int i = 0; i < comms; ++i) MPI_Comm_free(&all[t][i]);
    free(all[t]);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
