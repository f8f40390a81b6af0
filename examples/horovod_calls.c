// The MPI calls of Horovod, without the deep learning: what PyTorch with Horovod asks of MPI when it trains ResNet-18,
// with results that are checked. examples/training.py does the same around a network that learns.
//
//   mpirun -n 2 examples/horovod_calls [--steps N] [--shrink N] [--cycle-us US] [--layer-us US] [--half] [--slow-rank
//   R] [--compute]
//
// A background thread makes all calls, MPI_Init_thread and MPI_Finalize too. It has two communicators like
// MPI_COMM_WORLD, one of the ranks of its node and one across nodes. Once a cycle the ranks agree which gradients are
// ready on all of them, a bit each (MPI_Allreduce of 2 LONG_LONG_INT in place, BAND); gradients that have no bit yet
// are agreed on by name (Gather, Gatherv, Bcast). What is ready goes into a fusion buffer and is summed by one
// MPI_Allreduce in place. The other thread "computes": it sleeps, and marks one gradient after the other as ready. With
// --compute it does compute, for so much of a core's time, and the steps it makes in a second tell what the other
// thread leaves it.
#include <getopt.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Elements of the gradients in the order in which they become ready, the last layer's first: 44.6 MiB in floats.
static const int sizes[] = {
    1000, 512000, 512, 512, 2359296, 512, 512, 2359296, 512, 512, 131072, 512, 512, 2359296, 512, 512, 1179648, 256,
    256,  589824, 256, 256, 589824,  256, 256, 32768,   256, 256, 589824, 256, 256, 294912,  128, 128, 147456,  128,
    128,  147456, 128, 128, 8192,    128, 128, 147456,  128, 128, 73728,  64,  64,  36864,   64,  64,  36864,   64,
    64,   36864,  64,  64,  36864,   64,  64,  9408};
enum {
  gradients = sizeof sizes / sizeof *sizes,
  leaving = 1,          // the bits of the status: this rank has nothing more to do,
  nothing_new = 2,      // no gradient without a bit,
  nothing_invalid = 4,  // no bit that has lost its meaning (always so here)
  status_bits = 3,
  words = (status_bits + gradients + 63) / 64,
  fusion_bytes = 16 << 20,
  start_bcasts = 102,  // parameters and what the optimiser keeps
};

static int steps = 20, shrink = 1, cycle_us = 1000, layer_us = 6000, half, slow_rank = -1, computes;
static int rank, ranks;

// Between the two threads.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int started, ended;
static int step_of[gradients];  // the step whose gradient is ready here
static int summed[gradients];   // the last step whose gradient has been summed

// The background thread's own.
static MPI_Comm context, all, local, cross;
static MPI_Datatype half_type;
static MPI_Op half_sum;
static void* fusion_buffer;
static unsigned char has_bit[gradients];
static long negotiations, sums, wrong;

static int elements_of(int gradient) {
  return sizes[gradient] / shrink > 0 ? sizes[gradient] / shrink : 1;
}
static int element_bytes(void) {
  return half ? 2 : (int)sizeof(float);
}

static void sleep_us(long us) {
  const struct timespec duration = {us / 1000000, us % 1000000 * 1000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &duration, NULL);
}

// Small whole numbers, which 16 bits and floats hold exactly: as 16-bit floats, and back.
static uint16_t to_half(int value) {
  if (value == 0) return 0;
  int exponent = 0;
  while (value >> (exponent + 1)) ++exponent;
  return (uint16_t)((exponent + 15) << 10 | (((value << 10) >> exponent) & 0x3ff));
}
static int from_half(uint16_t bits) {
  return bits == 0 ? 0 : ((bits & 0x3ff) | 0x400) << ((bits >> 10) - 15) >> 10;
}

// MPI has no 16-bit floats: a type of two bytes and an operation of one's own.
static void add_half(void* source, void* target, int* count, MPI_Datatype* type) {
  (void)type;
  const uint16_t* const from = source;
  uint16_t* const to = target;
  for (int i = 0; i < *count; ++i) to[i] = to_half(from_half(from[i]) + from_half(to[i]));
}

// What a rank contributes, and what the sum must be.
static int value_of(int gradient, int step, int of_rank) {
  return (gradient + step) % 7 + of_rank;
}
static int sum_of(int gradient, int step) {
  return ranks * ((gradient + step) % 7) + ranks * (ranks - 1) / 2;
}

void initialize(void) {
  int provided;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "horovod_calls: this MPI has no MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &context);
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &ranks);
  // Horovod comes here twice: for itself, and for the set of all its processes.
  for (int i = 0; i < 2; ++i) {
    if (i > 0) {
      MPI_Comm_free(&local);
      MPI_Comm_free(&cross);
    }
    int local_rank;
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    MPI_Comm_rank(local, &local_rank);
    MPI_Comm_split(all, local_rank, rank, &cross);
  }
  MPI_Type_contiguous(2, MPI_BYTE, &half_type);
  MPI_Type_commit(&half_type);
  MPI_Op_create(add_half, 1, &half_sum);
  fusion_buffer = malloc(fusion_bytes);
}

void broadcast(void) {
  for (int i = 0; i < start_bcasts; ++i) {
    const int count = elements_of(i % gradients);
    float* const values = fusion_buffer;
    for (int k = 0; k < count; ++k) values[k] = rank == 0 ? (float)(k % 100 + i) : -1;
    MPI_Bcast(values, count * (int)sizeof(float), MPI_BYTE, 0, all);
    for (int k = 0; k < count; ++k) wrong += values[k] != (float)(k % 100 + i);
  }
}

void agree_on_bits(long long* bits) {
  MPI_Allreduce(MPI_IN_PLACE, bits, words, MPI_LONG_LONG_INT, MPI_BAND, all);
  ++negotiations;
}

// Rank 0 counts which ranks have which new gradients, and tells all of them what everybody has.
static int count_names(int* names, int count) {
  int own = count;
  int* const counts = calloc((size_t)ranks, sizeof(int));
  int* const places = calloc((size_t)ranks, sizeof(int));
  MPI_Gather(&own, 1, MPI_INT, counts, 1, MPI_INT, 0, all);
  for (int i = 1; i < ranks; ++i) places[i] = places[i - 1] + counts[i - 1];
  const int total = rank == 0 ? places[ranks - 1] + counts[ranks - 1] : 0;
  int* const gathered = malloc((size_t)(total + 1) * sizeof(int));
  MPI_Gatherv(names, own, MPI_INT, gathered, counts, places, MPI_INT, 0, all);
  int times[gradients] = {0};
  for (int i = 0; i < total; ++i) ++times[gathered[i]];
  int common = 0;
  for (int i = 0; i < gradients; ++i)
    if (rank == 0 && times[i] == ranks) names[common++] = i;
  free(gathered);
  free(places);
  free(counts);
  return common;
}

int agree_by_name(int* names, int count) {
  int common = count_names(names, count);
  MPI_Bcast(&common, 1, MPI_INT, 0, all);
  MPI_Bcast(names, common, MPI_INT, 0, all);
  for (int i = 0; i < common; ++i) has_bit[names[i]] = 1;
  return common;
}

void sum_fused(int elements) {
  MPI_Allreduce(MPI_IN_PLACE, fusion_buffer, elements, half ? half_type : MPI_FLOAT, half ? half_sum : MPI_SUM, all);
  ++sums;
}

static void put(int at, int elements, int value) {
  uint16_t* const halves = (uint16_t*)fusion_buffer + at;
  float* const floats = (float*)fusion_buffer + at;
  const uint16_t bits = to_half(value);
  for (int i = 0; i < elements; ++i) {
    if (half)
      halves[i] = bits;
    else
      floats[i] = (float)value;
  }
}

static void check(int at, int elements, int value) {
  const uint16_t* const halves = (uint16_t*)fusion_buffer + at;
  const float* const floats = (float*)fusion_buffer + at;
  const uint16_t bits = to_half(value);
  for (int i = 0; i < elements; ++i) wrong += half ? halves[i] != bits : floats[i] != (float)value;
}

// Gradients that all ranks have, as many at a time as fit the buffer.
static void sum_gradients(const int* ready, const int* step, int count) {
  for (int first = 0; first < count;) {
    int end = first, used = 0;
    while (end < count && (end == first || (used + elements_of(ready[end])) * element_bytes() <= fusion_bytes)) {
      put(used, elements_of(ready[end]), value_of(ready[end], step[ready[end]], rank));
      used += elements_of(ready[end++]);
    }
    sum_fused(used);
    for (int i = first, at = 0; i < end; at += elements_of(ready[i++]))
      check(at, elements_of(ready[i]), sum_of(ready[i], step[ready[i]]));
    pthread_mutex_lock(&mutex);
    for (int i = first; i < end; ++i) summed[ready[i]] = step[ready[i]];
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    first = end;
  }
}

// One cycle; 0 when all ranks are leaving.
static int run_cycle(void) {
  int step[gradients], is_ready[gradients], new_ones[gradients], ready[gradients];
  int count = 0, new_count = 0, ready_count = 0;
  pthread_mutex_lock(&mutex);
  const int leaves = ended;
  for (int i = 0; i < gradients; ++i) {
    step[i] = step_of[i];
    is_ready[i] = step_of[i] > summed[i];
  }
  pthread_mutex_unlock(&mutex);
  long long bits[words] = {0};
  for (int i = 0; i < gradients; ++i) {
    if (!is_ready[i]) continue;
    ++count;
    if (has_bit[i])
      bits[(status_bits + i) / 64] |= (long long)(1ull << ((status_bits + i) % 64));
    else
      new_ones[new_count++] = i;
  }
  bits[0] |= (leaves && count == 0 ? leaving : 0) | (new_count == 0 ? nothing_new : 0) | nothing_invalid;
  agree_on_bits(bits);
  for (int i = 0; i < gradients; ++i)
    if ((unsigned long long)bits[(status_bits + i) / 64] >> ((status_bits + i) % 64) & 1) ready[ready_count++] = i;
  if (!(bits[0] & nothing_new)) {
    const int common = agree_by_name(new_ones, new_count);
    memcpy(ready + ready_count, new_ones, (size_t)common * sizeof(int));
    ready_count += common;
  }
  sum_gradients(ready, step, ready_count);
  return !(bits[0] & leaving);
}

void* background_thread(void* unused) {
  (void)unused;
  initialize();
  broadcast();
  pthread_mutex_lock(&mutex);
  started = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  while (run_cycle()) sleep_us(cycle_us);
  printf("horovod_calls: rank %d of %d, %ld negotiations, %ld sums of gradients%s\n", rank, ranks, negotiations, sums,
         wrong > 0 ? ": wrong results" : "");
  fflush(stdout);
  MPI_Comm* const used[] = {&cross, &local, &all, &context};
  for (int i = 0; i < 4; ++i) MPI_Comm_free(used[i]);
  MPI_Op_free(&half_sum);
  MPI_Type_free(&half_type);
  free(fusion_buffer);
  MPI_Finalize();
  return NULL;
}

static double seconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Arithmetic on the second-level cache, until this thread has had so much of a core.
static void compute_us(long us) {
  static float values[1 << 16];
  const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + 1e-6 * (double)us;
  while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end)
    for (int i = 0; i < 1 << 16; ++i) values[i] = 0.999f * values[i] + 0.001f;
}

static void compute(void) {
  pthread_mutex_lock(&mutex);
  while (!started) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  const double begin = seconds_of(CLOCK_MONOTONIC);
  for (int step = 1; step <= steps; ++step) {
    if (rank == slow_rank) sleep_us(20000);
    for (int i = 0; i < gradients; ++i) {
      if (sizes[i] >= 1000) computes ? compute_us(layer_us) : sleep_us(layer_us);  // small ones come with their layer's
      pthread_mutex_lock(&mutex);
      step_of[i] = step;
      pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < gradients; ++i)
      while (summed[i] < step) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  if (computes && rank == 0)
    printf("horovod_calls: %.2f steps a second\n", steps / (seconds_of(CLOCK_MONOTONIC) - begin));
  pthread_mutex_lock(&mutex);
  ended = 1;
  pthread_mutex_unlock(&mutex);
}

int main(int argc, char** argv) {
  static const struct option known[] = {
      {"steps", required_argument, NULL, 's'},    {"shrink", required_argument, NULL, 'n'},
      {"cycle-us", required_argument, NULL, 'c'}, {"layer-us", required_argument, NULL, 'l'},
      {"half", no_argument, NULL, 'h'},           {"slow-rank", required_argument, NULL, 'r'},
      {"compute", no_argument, NULL, 'p'},        {NULL, 0, NULL, 0}};
  int letter;
  while ((letter = getopt_long(argc, argv, "s:n:c:l:hr:p", known, NULL)) != -1) {
    if (letter == 's') steps = atoi(optarg);
    if (letter == 'n') shrink = atoi(optarg);
    if (letter == 'c') cycle_us = atoi(optarg);
    if (letter == 'l') layer_us = atoi(optarg);
    if (letter == 'h') half = 1;
    if (letter == 'p') computes = 1;
    if (letter == 'r') slow_rank = atoi(optarg);
    if (letter == '?' || steps < 1 || shrink < 1 || cycle_us < 0 || layer_us < 0) {
      fprintf(stderr,
              "usage: horovod_calls [--steps N] [--shrink N: gradients of so much less] [--cycle-us US] [--layer-us "
              "US: computing] "
              "[--compute: not just sleeping] [--half: 16-bit floats] [--slow-rank R]\n");
      return 2;
    }
  }
  pthread_t background;
  if (pthread_create(&background, NULL, background_thread, NULL) != 0) return 1;
  compute();
  pthread_join(background, NULL);
  return wrong > 0 ? 1 : 0;
}
