// Notified communication of papaya_segment.h: what is written arrives before its notification and in order, and what is
// wrong in a use gives an error of the right class and a sentence. On any number of ranks. The argument is where the
// data have to go: "shared memory", "MPI's messages" or "UCX".
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "papaya.h"

#define GOOD(call) CHECK((call) == MPI_SUCCESS)
#define EXPECT(call, class, words) CHECK(is_error(call, class, words))

static int is_error(int code, int wanted, const char* words) {
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  const int is_right = class == wanted && strstr(papaya_error(), words) != NULL;
  if (!is_right) printf("class %d instead of %d, '%s' instead of '%s'\n", class, wanted, papaya_error(), words);
  return is_right;
}

enum { piece = 40000, rounds = 60 };  // pieces that MPI copies and pieces that it does not
enum { filled, emptied };             // notifications of each peer

static size_t length_of(int from, int to, int round) {
  return (size_t)((from * 31 + to * 17 + round * 7919) % (round % 5 == 0 ? piece : 300)) + 1;
}
static unsigned char byte_of(int from, int to, int round, size_t i) {
  return (unsigned char)(from * 3 + to * 5 + round * 11 + (int)i * 13);
}

// Everybody streams pieces to everybody, also to itself, through one buffer for each pair that its reader empties.
static void stream(papaya_segment segment, const unsigned char* memory) {
  unsigned char* const source = malloc((size_t)ranks * piece);
  int* const sent = calloc((size_t)ranks, sizeof(int));
  int* const received = calloc((size_t)ranks, sizeof(int));
  int* const may_send = calloc((size_t)ranks, sizeof(int));
  for (int peer = 0; peer < ranks; ++peer) may_send[peer] = 1;
  for (int left = 2 * ranks * rounds; left > 0;) {
    for (int peer = 0; peer < ranks; ++peer) {
      int flag = 0;
      if (!may_send[peer] || sent[peer] == rounds) continue;
      GOOD(papaya_write_wait(segment, 0, &flag));
      if (!flag) continue;
      const size_t bytes = length_of(rank, peer, sent[peer]);
      unsigned char* const from = source + (size_t)peer * piece;
      for (size_t i = 0; i < bytes; ++i) from[i] = byte_of(rank, peer, sent[peer], i);
      // The same value again and again, as a program with one buffer would.
      GOOD(papaya_write_notify(segment, peer, (size_t)rank * piece, from, bytes, 2 * rank + filled, 1));
      may_send[peer] = 0;
      ++sent[peer], --left;
    }
    int id = -1;
    unsigned value = 0;
    GOOD(papaya_notify_wait(segment, 0, 2 * ranks, left % 3 == 0 ? 0 : 0.001, &id));
    if (id < 0) continue;
    GOOD(papaya_notify_reset(segment, id, &value));
    CHECK(value == 1);
    const int peer = id / 2;
    if (id % 2 == emptied) {
      may_send[peer] = 1;
      continue;
    }
    const size_t bytes = length_of(peer, rank, received[peer]);
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; ++i)
      wrong += memory[(size_t)peer * piece + i] != byte_of(peer, rank, received[peer], i);
    CHECK(wrong == 0);
    ++received[peer], --left;
    GOOD(papaya_notify(segment, peer, 2 * rank + emptied, 1));
  }
  free(source), free(sent), free(received), free(may_send);
}

static void use(const char* place) {
  papaya_segment segment;
  void* memory = NULL;
  char info[64] = "";
  GOOD(papaya_segment_create(MPI_COMM_WORLD, (size_t)ranks * piece, 2 * ranks, &segment));
  GOOD(papaya_segment_get_info(segment, info, sizeof info));
  CHECK(strcmp(info, place) == 0);
  GOOD(papaya_segment_address(segment, &memory));
  CHECK((size_t)memory % 64 == 0);
  stream(segment, memory);
  GOOD(papaya_segment_free(&segment));
  CHECK(segment == PAPAYA_SEGMENT_NULL);
}

// A notification says that all writes of its rank before have arrived, large and small, under other notifications, too.
static void order(void) {
  enum { large = 1 << 20, small = 64 };
  papaya_segment segment;
  void* address = NULL;
  unsigned char* const source = malloc(large);
  const int next = (rank + 1) % ranks, id_large = 0, id_small = 1, id_last = 2;
  unsigned value = 0;
  int id = -1, flag = 0;
  memset(source, rank + 1, large);
  GOOD(papaya_segment_create(MPI_COMM_WORLD, large + small, 3, &segment));
  GOOD(papaya_segment_address(segment, &address));
  GOOD(papaya_notify_wait(segment, id_last, 1, 0.01, &id));
  CHECK(id == -1 || ranks > 1);  // nobody has written, or the rank before is faster
  GOOD(papaya_write_notify(segment, next, 0, source, large, id_large, 0xffffffffu));
  GOOD(papaya_write_notify(segment, next, large, source, small, id_small, 7));
  GOOD(papaya_notify(segment, next, id_last, 9));
  GOOD(papaya_notify_wait(segment, id_last, 1, -1, &id));
  CHECK(id == id_last);
  const unsigned char* const memory = address;
  const int before = (rank + ranks - 1) % ranks + 1;
  CHECK(memory[0] == before && memory[large - 1] == before && memory[large] == before);
  GOOD(papaya_notify_reset(segment, id_large, &value));
  CHECK(value == 0xffffffffu);
  GOOD(papaya_notify_reset(segment, id_large, &value));
  CHECK(value == 0);
  GOOD(papaya_notify_wait(segment, 0, 3, -1, &id));
  CHECK(id == id_small);
  GOOD(papaya_write_wait(segment, -1, &flag));
  CHECK(flag == 1);
  MPI_Barrier(MPI_COMM_WORLD);
  // Nobody looks at the last ones: they arrive before their memory is given back.
  for (int i = 0; i < 5; ++i) GOOD(papaya_write_notify(segment, next, 0, source, large / 2, id_large, 3));
  GOOD(papaya_segment_free(&segment));
  free(source);
}

static void errors(void) {
  papaya_segment segment = PAPAYA_SEGMENT_NULL, copy;
  const int is_odd = rank == ranks - 1;
  int id = 0, flag = 0;
  unsigned value = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  EXPECT(papaya_segment_create(MPI_COMM_NULL, 8, 1, &segment), MPI_ERR_COMM, "MPI_COMM_NULL");
  EXPECT(papaya_segment_create(MPI_COMM_WORLD, 8, 0, &segment), MPI_ERR_ARG, "notifications is 0; it must be 1 to");
  EXPECT(papaya_segment_create(MPI_COMM_WORLD, 8, is_odd ? -1 : 1, &segment), MPI_ERR_ARG, "notifications is -1");
  EXPECT(papaya_segment_create(MPI_COMM_WORLD, (size_t)1 << 62, 1, &segment), MPI_ERR_NO_MEM, "create it for fewer");
  EXPECT(papaya_segment_create(MPI_COMM_WORLD, 8, 1, NULL), MPI_ERR_ARG, "null pointer");
  if (ranks > 1) {
    EXPECT(papaya_segment_create(MPI_COMM_WORLD, is_odd ? 8 : 16, 1, &segment), MPI_ERR_ARG, "bytes differs");
    EXPECT(papaya_segment_create(MPI_COMM_WORLD, 8, is_odd ? 2 : 3, &segment), MPI_ERR_ARG, "notifications differs");
  }
  EXPECT(papaya_notify(segment, 0, 0, 1), MPI_ERR_ARG, "PAPAYA_SEGMENT_NULL");
  EXPECT(papaya_segment_free(NULL), MPI_ERR_ARG, "PAPAYA_SEGMENT_NULL");
  GOOD(papaya_segment_create(MPI_COMM_WORLD, 100, 4, &segment));
  EXPECT(papaya_notify(segment, ranks, 0, 1), MPI_ERR_RANK, "ranks 0 to");
  EXPECT(papaya_notify(segment, -1, 0, 1), MPI_ERR_RANK, "rank is -1");
  EXPECT(papaya_notify(segment, 0, 4, 1), MPI_ERR_ARG, "the notification is 4; the segment has 0 to 3");
  EXPECT(papaya_notify(segment, 0, 0, 0), MPI_ERR_ARG, "value is 0");
  EXPECT(papaya_write_notify(segment, 0, 93, &id, 8, 0, 1), MPI_ERR_ARG, "do not fit into");
  EXPECT(papaya_write_notify(segment, 0, (size_t)-8, &id, 8, 0, 1), MPI_ERR_ARG, "do not fit into");
  EXPECT(papaya_write_notify(segment, 0, 0, NULL, 8, 0, 1), MPI_ERR_BUFFER, "null pointer");
  EXPECT(papaya_notify_wait(segment, 2, 3, 0, &id), MPI_ERR_ARG, "3 notifications from 2 on");
  EXPECT(papaya_notify_wait(segment, 0, 0, 0, &id), MPI_ERR_ARG, "0 notifications");
  EXPECT(papaya_notify_wait(segment, 0, 4, NAN, &id), MPI_ERR_ARG, "no number");
  EXPECT(papaya_notify_reset(segment, -1, &value), MPI_ERR_ARG, "the notification is -1");
  EXPECT(papaya_segment_address(segment, NULL), MPI_ERR_ARG, "null pointer");
  EXPECT(papaya_segment_get_info(segment, NULL, 1), MPI_ERR_ARG, "no room");
  EXPECT(papaya_write_wait(segment, 0, NULL), MPI_ERR_ARG, "null pointer");
  GOOD(papaya_write_wait(segment, 0, &flag));
  CHECK(flag == 1);
  GOOD(papaya_notify_wait(segment, 0, 4, 0.01, &id));
  CHECK(id == -1);
  copy = segment;
  GOOD(papaya_segment_free(&segment));
  EXPECT(papaya_notify(copy, 0, 0, 1), MPI_ERR_ARG, "the segment has been freed");
}

// Whoever waits moves all others on: rank 0 waits for a notification that the last rank sends after a call of a
// collective, whose other ranks need rank 0's started call.
static void beside_a_collective(void) {
  papaya_segment segment;
  papaya_weak sum;
  long one = 1, all = 0;
  int id = -1, flag = 0;
  GOOD(papaya_segment_create(MPI_COMM_WORLD, 0, 1, &segment));
  GOOD(papaya_ssp_allreduce_create(MPI_COMM_WORLD, 1, MPI_LONG, MPI_SUM, 0, NULL, &sum));
  if (rank == 0) {
    GOOD(papaya_weak_start(sum, &one, &all));
    GOOD(papaya_notify_wait(segment, 0, 1, -1, &id));
    GOOD(papaya_weak_wait(sum, -1, &flag, NULL));
  } else {
    GOOD(papaya_weak_call(sum, &one, &all, NULL));
    if (rank == ranks - 1) GOOD(papaya_notify(segment, 0, 0, 1));
  }
  CHECK(all == ranks);
  GOOD(papaya_weak_free(&sum));
  GOOD(papaya_segment_free(&segment));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  use(argc > 1 ? argv[1] : "");
  order();
  errors();
  if (ranks > 1) beside_a_collective();
  // MPI_Finalize frees it, and what has not been looked at arrives before.
  papaya_segment left;
  GOOD(papaya_segment_create(MPI_COMM_WORLD, 8, 1, &left));
  GOOD(papaya_notify(left, (rank + 1) % ranks, 0, 1));
  return end();
}
