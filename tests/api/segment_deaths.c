// Segments of ranks that die, or are said to. usage: segment_deaths MODE PLACE, on at least three ranks
//   discard   one rank excludes another that lives; all discard the segment, and MPI_Finalize ends
//   death     the last rank ends without a word while data are on their way to it; the others go on, and end by _exit
//   stall     rank 0 waits for what nobody writes
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "papaya.h"

#define GOOD(call) CHECK((call) == MPI_SUCCESS)
#define EXPECT(call, class, words) CHECK(is_error(call, class, words))

enum { large = 1 << 20 };
enum { data, data_in_turn, bye, kinds };  // notifications of each peer
static const double long_enough = 20;     // seconds; nothing takes as long where all is well

static unsigned char source[large];
static MPI_Comm comm;

static int is_error(int code, int wanted, const char* words) {
  const int is_right = code == wanted && strstr(papaya_error(), words) != NULL;
  if (!is_right) printf("code %d instead of %d, '%s' instead of '%s'\n", code, wanted, papaya_error(), words);
  return is_right;
}

static papaya_segment new_segment(const char* place) {
  papaya_segment segment = PAPAYA_SEGMENT_NULL;
  char info[64] = "";
  GOOD(papaya_segment_create(comm, (size_t)ranks * large, kinds * ranks, &segment));
  GOOD(papaya_segment_get_info(segment, info, sizeof info));
  CHECK(strcmp(info, place) == 0);
  return segment;
}

static int state_of(papaya_segment segment, int peer) {
  int* const states = malloc((size_t)ranks * sizeof(int));
  GOOD(papaya_segment_state(segment, states));
  const int state = states[peer];
  free(states);
  return state;
}

// The data of `peer` come, or its farewell.
static void expect_from(papaya_segment segment, int peer, int kind) {
  int id = -1;
  unsigned value = 0;
  GOOD(papaya_notify_wait(segment, kinds * peer + kind, 1, long_enough, &id));
  CHECK(id == kinds * peer + kind);
  GOOD(papaya_notify_reset(segment, kinds * peer + kind, &value));
  CHECK(value == 7);
}

// With all ranks before `end`. Who is through may be in the next one already: that has the other `turn`.
static void exchange(papaya_segment segment, int end, int turn) {
  void* address = NULL;
  int flag = 0;
  memset(source, rank + 1, large);
  for (int peer = 0; peer < end; ++peer)
    GOOD(papaya_write_notify(segment, peer, (size_t)rank * large, source, large, kinds * rank + turn, 7));
  GOOD(papaya_segment_address(segment, &address));
  const unsigned char* const memory = address;
  for (int peer = 0; peer < end; ++peer) {
    expect_from(segment, peer, turn);
    CHECK(memory[(size_t)peer * large] == peer + 1 && memory[(size_t)(peer + 1) * large - 1] == peer + 1);
  }
  GOOD(papaya_write_wait(segment, long_enough, &flag));
  CHECK(flag == 1);
}

static void discard(const char* place) {
  papaya_segment segment = new_segment(place), copy;
  const int last = ranks - 1;
  int flag = -1, word = 0;
  EXPECT(papaya_segment_state(segment, NULL), MPI_ERR_ARG, "null pointer");
  EXPECT(papaya_segment_exclude(segment, ranks), MPI_ERR_RANK, "ranks 0 to");
  EXPECT(papaya_segment_exclude(segment, rank), MPI_ERR_RANK, "cannot exclude itself");
  EXPECT(papaya_segment_discard(NULL), MPI_ERR_ARG, "PAPAYA_SEGMENT_NULL");
  for (int peer = 0; peer < ranks; ++peer) CHECK(state_of(segment, peer) == PAPAYA_STATE_HEALTHY);
  exchange(segment, ranks, data);
  MPI_Barrier(comm);
  if (rank == last) {
    MPI_Recv(&word, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);  // no progress of papaya's meanwhile
    CHECK(state_of(segment, 0) == PAPAYA_STATE_HEALTHY);
  }
  if (rank == 0) {
    GOOD(papaya_write_notify(segment, last, 0, source, large, data, 7));
    if (strcmp(place, "MPI's messages") == 0) {
      GOOD(papaya_write_wait(segment, 0.02, &flag));
      CHECK(flag == 0);
    }
    GOOD(papaya_segment_exclude(segment, last));
    GOOD(papaya_write_wait(segment, -1, &flag));
    CHECK(flag == 1);
    CHECK(state_of(segment, last) == PAPAYA_STATE_CORRUPT && state_of(segment, 1) == PAPAYA_STATE_HEALTHY);
    EXPECT(papaya_notify(segment, last, bye, 1), MPI_ERR_OTHER, "papaya_segment_exclude has been called for it");
    EXPECT(papaya_segment_free(&segment), MPI_ERR_OTHER, "call papaya_segment_discard");
    CHECK(segment != PAPAYA_SEGMENT_NULL);
    MPI_Send(&word, 1, MPI_INT, last, 0, comm);
  }
  if (rank != last) exchange(segment, last, data_in_turn);
  copy = segment;
  GOOD(papaya_segment_discard(&segment));
  CHECK(segment == PAPAYA_SEGMENT_NULL);
  EXPECT(papaya_notify(copy, 0, 0, 1), MPI_ERR_ARG, "the segment has been freed");
  segment = new_segment(place);
  exchange(segment, ranks, data);
  GOOD(papaya_segment_free(&segment));
}

static void die_with(int word) {
  for (int peer = 0; peer < ranks - 1; ++peer) MPI_Recv(&word, 1, MPI_INT, peer, 0, comm, MPI_STATUS_IGNORE);
  _exit(0);
}

static void death(const char* place) {
  papaya_segment segment = new_segment(place);
  const int last = ranks - 1;
  int flag = 0, id = -1, code = MPI_SUCCESS;
  exchange(segment, ranks, data);
  MPI_Barrier(comm);
  if (rank == last) die_with(0);
  GOOD(papaya_write_notify(segment, last, (size_t)rank * large, source, large, kinds * rank + data, 7));
  MPI_Send(&flag, 1, MPI_INT, last, 0, comm);
  const double start = MPI_Wtime();
  while (state_of(segment, last) == PAPAYA_STATE_HEALTHY && MPI_Wtime() - start < long_enough) {
    code = papaya_notify(segment, last, kinds * rank + bye, 7);
    CHECK(code == MPI_SUCCESS || code == MPI_ERR_OTHER);
    GOOD(papaya_notify_wait(segment, kinds * last + bye, 1, 0.01, &id));
    CHECK(id == -1);
  }
  CHECK(state_of(segment, last) == PAPAYA_STATE_CORRUPT);
  EXPECT(papaya_write_notify(segment, last, 0, source, 1, 0, 1), MPI_ERR_OTHER, "is lost");
  GOOD(papaya_write_wait(segment, -1, &flag));
  CHECK(flag == 1);
  for (int i = 0; i < 3; ++i) exchange(segment, last, i % 2 == 0 ? data_in_turn : data);
  EXPECT(papaya_segment_free(&segment), MPI_ERR_OTHER, "call papaya_segment_discard");
  // Nobody ends before the others have seen it live.
  for (int peer = 0; peer < last; ++peer) GOOD(papaya_notify(segment, peer, kinds * rank + bye, 7));
  for (int peer = 0; peer < last; ++peer) expect_from(segment, peer, bye);
  GOOD(papaya_notify_wait(segment, kinds * last + bye, 1, 0.1, &id));
  GOOD(papaya_segment_discard(&segment));
  printf("rank %d %s\n", rank, failures == 0 ? "goes on" : "has failed");
  fflush(stdout);
  _exit(failures == 0 ? 0 : 1);
}

static void stall(const char* place) {
  papaya_segment segment = new_segment(place);
  int id = 0;
  if (rank == 0) GOOD(papaya_notify_wait(segment, 1, 2, 1.6, &id));
  CHECK(rank != 0 || id == -1);
  GOOD(papaya_segment_free(&segment));
}

int main(int argc, char** argv) {
  signal(SIGUSR1, SIG_IGN);  // which MPICH's launcher sends
  begin(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // of handles that are none
  const char* const mode = argc > 2 ? argv[1] : "";
  if (strcmp(mode, "discard") == 0)
    discard(argv[2]);
  else if (strcmp(mode, "death") == 0)
    death(argv[2]);
  else if (strcmp(mode, "stall") == 0)
    stall(argv[2]);
  else
    CHECK(!"usage: segment_deaths discard|death|stall PLACE");
  return end();
}
