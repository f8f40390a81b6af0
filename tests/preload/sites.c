// Collectives from several lines of the program, in an order that is given: phases, each a word
//   LETTERS[/LETTERS]:CALLS
// where a letter is a line, the letters are repeated, and the second ones are those of odd ranks. ? is a or b by lot,
// for each rank its own. Every result is checked. A phase of more than a few calls ends sooner once papaya has said of
// all of the last calls that arrival_tree serves those that rank 0 makes from line b, and no others; not one with x.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "include/papaya.h"

// Else the compiler makes one call of those that are alike.
#define STAYS(text) __asm__ volatile("# " text)

enum { count = 4, asked = 120 };

static int rank, ranks;

static void check_sum(const double* sum, int call) {
  for (int i = 0; i < count; ++i) CHECK(sum[i] == ranks * (ranks - 1) / 2.0 + (double)ranks * (call % 100 + i));
}

static void make(char letter, int call) {
  double mine[count], sum[count] = {0};
  for (int i = 0; i < count; ++i) mine[i] = rank + call % 100 + i;
  // Computing: papaya exchanges the more often the longer it takes.
  nanosleep(&(struct timespec){0, letter == 'c' && rank == ranks - 1 ? 300000 : 50000}, NULL);
  if (letter == '?') letter = rand() / 7 % 2 == 0 ? 'a' : 'b';
  switch (letter) {
    case 'a':
      COUNTED(MPI_Allreduce, mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* site a */
      STAYS("site a");
      break;
    case 'b':
      COUNTED(MPI_Allreduce, mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* site b */
      STAYS("site b");
      break;
    case 'c':
      COUNTED(MPI_Allreduce, mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* site c */
      STAYS("site c");
      break;
    case 'x':
      COUNTED(MPI_Bcast, mine, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* site x */
      STAYS("site x");
      break;
    default:
      COUNTED(MPI_Bcast, mine, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* site y */
      STAYS("site y");
  }
  if (letter == 'x' || letter == 'y')
    for (int i = 0; i < count; ++i) CHECK(mine[i] == call % 100 + i);
  else
    check_sum(sum, call);
}

static int is_served_by_tree(void) {
  char text[64];
  return papaya_get_algorithm("allreduce", MPI_COMM_WORLD, count * sizeof(double), text, sizeof text) == 0 &&
         strncmp(text, "arrival_tree", strlen("arrival_tree")) == 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  srand((unsigned)rank + 1);
  int call = 0;
  for (int phase = 1; phase < argc; ++phase) {
    char* letters = strtok(argv[phase], ":");
    const int calls = atoi(strtok(NULL, ":"));
    char* others = strchr(letters, '/');
    if (others != NULL) *others++ = '\0';
    if (others != NULL && rank % 2 == 1) letters = others;
    const int length = (int)strlen(letters);
    int tree = 0, right = 0, is_right = 0;
    for (int i = 0; i < calls && !is_right; ++i) {
      const char letter = letters[i % length];
      const int is_tree = is_served_by_tree();
      tree += is_tree;
      right = is_tree == (letter == 'b') ? right + 1 : 0;
      make(letter, call++);
      is_right = right >= asked && strchr(letters, 'x') == NULL;
      if (i % asked == asked - 1)
        COUNTED(MPI_Bcast, &is_right, 1, MPI_INT, 0, MPI_COMM_WORLD);
      else
        is_right = 0;
    }
    if (rank == 0) printf("phase %d: %s, %d calls by arrival_tree\n", phase, is_right ? "right" : "wrong", tree);
  }
  const int code = finish();
  MPI_Finalize();
  return code;
}
