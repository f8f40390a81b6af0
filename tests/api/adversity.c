// Weakly consistent collectives where something goes wrong around them, or goes on for long.
//
//   adversity killed FOLDER    the last rank is killed inside a call; the launcher has to let the others live. Each of
//                              them makes a file there if all was right
//   adversity device LIBRARY   buffers on a device, whose runtime is a fake
//   adversity full             /dev/shm, which has to be small and of this job alone, is full
//   adversity stalls           the last rank does not come for 1.5 s
//   adversity growth ROUNDS    a collective is created, called and freed over and over
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "check.h"
#include "papaya.h"

enum { count = 3000, most = 16 };

static const char* const ssp[] = {"ssp_hypercube", "ssp_ring", "ssp_sharded", "ssp_sharded:thread=1"};
enum { ssps = sizeof ssp / sizeof *ssp };

// One of every kind that waits for all ranks or, from `*consistent` on, for some. All of doubles.
static int create_all(papaya_weak* all, int* consistent) {
  int made = 0;
  for (; made < ssps; ++made)
    CHECK(papaya_ssp_allreduce_create(MPI_COMM_WORLD, count, MPI_DOUBLE, MPI_SUM, 0, ssp[made], &all[made]) ==
          MPI_SUCCESS);
  CHECK(papaya_sparse_allreduce_create(MPI_COMM_WORLD, count, MPI_DOUBLE, 1, &all[made++]) == MPI_SUCCESS);
  *consistent = made;
  CHECK(papaya_threshold_bcast_create(MPI_COMM_WORLD, count, MPI_DOUBLE, 1, PAPAYA_OF_DATA, ranks - 1, &all[made++]) ==
        MPI_SUCCESS);
  CHECK(papaya_threshold_reduce_create(MPI_COMM_WORLD, count, MPI_DOUBLE, MPI_SUM, 1, PAPAYA_OF_DATA, 0,
                                       &all[made++]) == MPI_SUCCESS);
  return made;
}

static void* kill_soon(void* nothing) {
  usleep(100000);
  kill(getpid(), SIGKILL);
  return nothing;
}

// The others get an error within their limit, which names the dead rank, and stay in control.
static void killed(const char* folder) {
  static double mine[count], result[count];
  papaya_weak all[most];
  int consistent, named = 0;
  const int made = create_all(all, &consistent);
  for (int i = 0; i < made; ++i) CHECK(papaya_weak_call(all[i], mine, result, NULL) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) {
    pthread_t killer;
    pthread_create(&killer, NULL, kill_soon, NULL);
    papaya_weak_call(all[0], mine, result, NULL);
    printf("rank %d has left a call that the others are not in\n", rank);
    for (;;) pause();
  }
  usleep(300000);
  char dead[24];
  snprintf(dead, sizeof dead, "rank %d", (ranks - 1) % 100);
  for (int i = 0; i < made; ++i) {
    const double begin_time = MPI_Wtime();
    papaya_weak_set_limit(all[i], 0.1);
    int code = papaya_weak_call(all[i], mine, result, NULL);
    // What the dead rank brought to its last call may have come; to the next it brings nothing.
    if (i == 0 && code == MPI_SUCCESS) code = papaya_weak_call(all[i], mine, result, NULL);
    CHECK(MPI_Wtime() - begin_time < 5);
    // Of those that wait for some ranks, the receivers of the dead root and the root that lacks its part.
    CHECK(code == MPI_ERR_PENDING || (code == MPI_SUCCESS && i == consistent + 1 && rank != 0));
    if (code == MPI_SUCCESS) continue;
    named += strstr(papaya_error(), dead) != NULL;
    int flag = 1;
    CHECK(papaya_weak_wait(all[i], 0.02, &flag, NULL) == MPI_SUCCESS && flag == 0);
    CHECK(papaya_weak_free(&all[i]) == MPI_ERR_REQUEST);
  }
  // Who waits for a rank that waits for the dead one names that one.
  CHECK(named > 0);
  fflush(stdout);
  // A launcher may lose what is printed when a rank has died.
  char name[200];
  snprintf(name, sizeof name, "%s/rank-%d", folder, rank);
  if (failures == 0) close(open(name, O_CREAT | O_WRONLY, 0600));
  _exit(failures != 0);  // MPI_Finalize would wait for the dead
}

struct buffer {
  double *memory, *contents;
};

// Ranks by turns have what they bring, and what they get, on the device.
static void device(const char* library) {
  void* const runtime = dlopen(library, RTLD_NOW);
  CHECK(runtime != NULL);
  if (runtime == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  void (*const declare)(void*, uint64_t, void*, int) =
      (void (*)(void*, uint64_t, void*, int))(uintptr_t)dlsym(runtime, "fake_register");
  int (*const misuses)(void) = (int (*)(void))(uintptr_t)dlsym(runtime, "fake_misuses");
  const size_t bytes = (count * sizeof(double) + 4095) / 4096 * 4096;
  const int file = memfd_create("device", 0);
  CHECK(ftruncate(file, 2 * (off_t)bytes) == 0);
  char* const memory = mmap(NULL, 2 * bytes, PROT_NONE, MAP_SHARED, file, 0);
  char* const contents = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  declare(memory, 2 * bytes, contents, 0);
  usleep(50000);
  static double host[2][count];
  const struct buffer buffers[2][2] = {
      {{host[0], host[0]}, {host[1], host[1]}},
      {{(double*)memory, (double*)contents}, {(double*)(memory + bytes), (double*)(contents + bytes)}}};
  papaya_weak all[most];
  int consistent;
  const int made = create_all(all, &consistent);
  for (int call = 1; call <= 8; ++call)
    for (int i = 0; i < made; ++i) {
      const struct buffer in = buffers[(call + rank) / 2 % 2][0], out = buffers[call % 2][1];
      const int in_place = i <= ssps && call % 3 == 0;
      for (int j = 0; j < count; ++j) in.contents[j] = out.contents[j] = rank * 100 + call + j;
      CHECK(papaya_weak_call(all[i], in_place ? MPI_IN_PLACE : in.memory, out.memory, NULL) == MPI_SUCCESS);
      for (int j = 0; j < count; ++j) {
        const double own = rank * 100 + call + j, sum = ranks * (call + j) + 100. * ranks * (ranks - 1) / 2;
        const double of_bcast = rank == ranks - 1 ? own : (ranks - 1) * 100 + call + j;
        CHECK(out.contents[j] == (i == consistent ? of_bcast : i > consistent && rank != 0 ? own : sum));
      }
    }
  for (int i = 0; i < made; ++i) CHECK(papaya_weak_free(&all[i]) == MPI_SUCCESS);
  CHECK(misuses() == 0);
}

static const char filler[] = "/dev/shm/papaya-test-filler";

static void fill(void) {
  static char zeros[1 << 16];
  const int file = open(filler, O_CREAT | O_WRONLY, 0600);
  for (size_t bytes = sizeof zeros; bytes > 0;)
    if (write(file, zeros, bytes) <= 0) bytes /= 2;  // to the last byte
  close(file);
}

// A sum that is right, or an error that all ranks have.
static void sum_or_error(MPI_Comm comm, const char* algorithm, int is_full) {
  enum { large = 300000 };
  papaya_weak sum;
  const int code = papaya_ssp_allreduce_create(comm, large, MPI_DOUBLE, MPI_SUM, 1, algorithm, &sum);
  int class = MPI_SUCCESS, bounds[2];
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  const int both[2] = {class, -class};
  PMPI_Allreduce(both, bounds, 2, MPI_INT, MPI_MAX, comm);
  CHECK(bounds[0] == -bounds[1]);
  CHECK(class == MPI_SUCCESS || (is_full && class == MPI_ERR_NO_MEM && strstr(papaya_error(), "/dev/shm") != NULL));
  if (class != MPI_SUCCESS) return;
  double* const data = calloc(large, sizeof(double));
  for (int call = 0; call < 5; ++call) {
    for (int i = 0; i < large; ++i) data[i] = i;
    CHECK(papaya_weak_call(sum, MPI_IN_PLACE, data, NULL) == MPI_SUCCESS);
    for (int i = 0; i < large; i += 1000) CHECK(data[i] == (double)ranks * i);
  }
  CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
  free(data);
}

static void full(void) {
  struct statvfs shm;
  if (statvfs("/dev/shm", &shm) != 0 || shm.f_blocks * shm.f_frsize > 128 << 20) {
    CHECK(!"/dev/shm is this job's alone");
    return;
  }
  static double in[8192], out[8192];  // what MPI allocates on demand, it has
  PMPI_Allreduce(in, out, 8192, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) fill();
  PMPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < ssps; ++i) sum_or_error(MPI_COMM_WORLD, ssp[i], 1);
  PMPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) unlink(filler);
  PMPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < ssps; ++i) sum_or_error(MPI_COMM_WORLD, ssp[i], 0);
}

static long resident_kib(void) {
  long kib = 0;
  char line[256];
  FILE* const file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != NULL) sscanf(line, "VmRSS: %ld", &kib);
  fclose(file);
  return kib;
}

static int entries(const char* folder) {
  int found = 0;
  DIR* const opened = opendir(folder);
  while (readdir(opened) != NULL) ++found;
  closedir(opened);
  return found;
}

static void growth(int rounds) {
  long kib = 0;
  int descriptors = 0, threads = 0;
  for (int round = 0; round < rounds; ++round) {
    papaya_weak sum;
    long one = 1;
    CHECK(papaya_ssp_allreduce_create(MPI_COMM_WORLD, 1, MPI_LONG, MPI_SUM, 0, ssp[round % ssps], &sum) == MPI_SUCCESS);
    CHECK(papaya_weak_call(sum, MPI_IN_PLACE, &one, NULL) == MPI_SUCCESS && one == ranks);
    CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
    if (round != rounds / 4) continue;
    kib = resident_kib();
    descriptors = entries("/proc/self/fd");
    threads = entries("/proc/self/task");
  }
  if (rank == 0) printf("grown by %ld KiB\n", resident_kib() - kib);
  CHECK(resident_kib() - kib < 2048 && entries("/proc/self/fd") <= descriptors &&
        entries("/proc/self/task") <= threads);
}

// Who waits reports it, if PAPAYA_STALL_SECONDS is 1.
static void stalls(void) {
  papaya_weak sum = PAPAYA_WEAK_NULL;
  CHECK(papaya_ssp_allreduce_create(MPI_COMM_WORLD, 1, MPI_DOUBLE, MPI_SUM, 0, "ssp_hypercube", &sum) == MPI_SUCCESS);
  for (int call = 1; call <= 3; ++call) {
    if (call == 2 && rank == ranks - 1) usleep(1500000);
    double one = 1;
    CHECK(papaya_weak_call(sum, MPI_IN_PLACE, &one, PAPAYA_WEAK_STATUS_IGNORE) == MPI_SUCCESS && one == ranks);
  }
  CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(argv[1], "killed") == 0 && argc > 2) killed(argv[2]);
  if (strcmp(argv[1], "device") == 0 && argc > 2) device(argv[2]);
  if (strcmp(argv[1], "full") == 0) full();
  if (strcmp(argv[1], "stalls") == 0) stalls();
  if (strcmp(argv[1], "growth") == 0 && argc > 2) growth(atoi(argv[2]));
  return end();
}
