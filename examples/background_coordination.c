// What waiting inside MPI costs the rest of the process. One thread computes; a background thread sleeps 0.2
// to 2 ms, does an 8-byte MPI_Allreduce (in place, LONG_LONG_INT, BAND) and starts over: the way Horovod's
// background thread agrees on which gradients are ready. The background thread owns MPI from MPI_Init_thread
// to MPI_Finalize.
//
//   mpirun -n 2 examples/background_coordination [--seconds S] [--rounds N]
//
// Measures the speed of the computing thread first with the background thread asleep, then with it
// coordinating, in turn, and prints the share of the speed that is left. 1.00 means that coordination costs
// the computation nothing.
#include <getopt.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double phase_seconds = 1;
static int rounds = 2;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// The two threads of a rank take turns: the background thread opens a phase, the computing thread ends it.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int phase = 0;            // of 2 * rounds, from 1; even phases have coordination
static int phases_measured = 0;  // by the computing thread
static double speed[2];          // iterations a second, summed over rounds: alone, coordinated

static void open_phase(int number) {
  pthread_mutex_lock(&mutex);
  phase = number;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static int is_measured(int number) {
  pthread_mutex_lock(&mutex);
  const int measured = phases_measured >= number;
  pthread_mutex_unlock(&mutex);
  return measured;
}

static void wait_until_measured(int number) {
  pthread_mutex_lock(&mutex);
  while (phases_measured < number) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

// A few microseconds of arithmetic in the first-level cache.
static double kernel(double* values, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    values[i] = 0.999 * values[i] + 0.001;
    sum += values[i];
  }
  return sum;
}

static volatile double sink;

static void compute(void) {
  double values[2048] = {0};
  for (int number = 1; number <= 2 * rounds; ++number) {
    pthread_mutex_lock(&mutex);
    while (phase < number) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);

    long iterations = 0;
    const double begin = now();
    double end = begin;
    while (end - begin < phase_seconds) {
      for (int i = 0; i < 16; ++i) sink = kernel(values, 2048);
      iterations += 16;
      end = now();
    }

    pthread_mutex_lock(&mutex);
    speed[(number + 1) % 2] += (double)iterations / (end - begin);
    phases_measured = number;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
}

static void sleep_us(unsigned us) {
  const struct timespec duration = {0, (long)us * 1000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &duration, NULL);
}

static void* coordinate(void* unused) {
  (void)unused;
  int provided;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (provided < MPI_THREAD_MULTIPLE && rank == 0) fprintf(stderr, "this MPI has no MPI_THREAD_MULTIPLE\n");

  uint64_t random = 88172645463325252ull + (uint64_t)rank * 7919;
  long calls = 0;
  double inside = 0;
  int wrong = 0;
  for (int number = 1; number <= 2 * rounds; ++number) {
    MPI_Barrier(MPI_COMM_WORLD);
    open_phase(number);
    if (number % 2 == 1) {
      wait_until_measured(number);
      continue;
    }
    // Bit 0 asks for the end of the phase; it is set once every rank has asked, as Horovod's shutdown is
    // agreed on.
    for (int all_done = 0; !all_done;) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      sleep_us(200 + (unsigned)(random % 1800));
      long long bits = ~1ll | is_measured(number);
      const double begin = now();
      MPI_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_LONG_LONG_INT, MPI_BAND, MPI_COMM_WORLD);
      inside += now() - begin;
      ++calls;
      if ((bits | 1) != -1ll) ++wrong;
      all_done = (int)(bits & 1);
    }
  }

  const double left = speed[1] / speed[0];
  double left_sum = 0;
  int wrong_sum = 0;
  MPI_Reduce(&left, &left_sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&wrong, &wrong_sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d ranks, %ld calls a rank, %.0f us inside each\n", ranks, calls, 1e6 * inside / (double)calls);
    if (wrong_sum > 0) printf("wrong results: %d\n", wrong_sum);
    printf("computing speed left: %.2f\n", left_sum / ranks);
    fflush(stdout);
  }
  MPI_Finalize();
  return NULL;
}

int main(int argc, char** argv) {
  static const struct option known[] = {
      {"seconds", required_argument, NULL, 's'}, {"rounds", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0}};
  int letter;
  while ((letter = getopt_long(argc, argv, "s:r:", known, NULL)) != -1) {
    if (letter == 's') phase_seconds = atof(optarg);
    if (letter == 'r') rounds = atoi(optarg);
    if (letter == '?' || !(phase_seconds > 0) || rounds < 1) {
      fprintf(stderr, "usage: background_coordination [--seconds S] [--rounds N]\n");
      return 2;
    }
  }
  pthread_t background;
  if (pthread_create(&background, NULL, coordinate, NULL) != 0) return 1;
  compute();
  pthread_join(background, NULL);
  return 0;
}
