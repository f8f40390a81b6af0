// Selections of single communicators by info keys: hints (with papaya), or hints native (without). hints key and hints
// call select one algorithm that way, or for the job.
#include <mpi.h>
#include <stdlib.h>

#include "check.h"
#include "include/papaya.h"

static int is_native;

// "": the key is not there.
static void check_key(MPI_Comm comm, const char* key, const char* expected) {
  MPI_Info info;
  CHECK(MPI_Comm_get_info(comm, &info) == MPI_SUCCESS);
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
  CHECK(is_native || strcmp(value, expected) == 0);
  CHECK(is_native || found == (expected[0] != '\0'));
  MPI_Info_free(&info);
}

static MPI_Info info_of(const char* key, const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  return info;
}

static void set(MPI_Comm comm, const char* key, const char* value) {
  MPI_Info info = info_of(key, value);
  CHECK(MPI_Comm_set_info(comm, info) == MPI_SUCCESS);
  MPI_Info_free(&info);
}

static void sum(MPI_Comm comm, int times) {
  int ranks;
  MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < times; ++i) {
    int one = 1, all = 0;
    CHECK(COUNTED(MPI_Allreduce, &one, &all, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(all == ranks);
  }
}

// Where an allreduce of an int goes; natively that is not known.
static void check_algorithm(MPI_Comm comm, const char* expected) {
  char text[64] = "before", start[8];
  CHECK(papaya_get_algorithm("allreduce", comm, sizeof(int), text, sizeof text) == is_native);
  CHECK(is_native ? text[0] == '\0' : strncmp(text, expected, strlen(expected)) == 0);
  papaya_get_algorithm("allreduce", comm, sizeof(int), start, sizeof start);
  CHECK(strncmp(start, text, 7) == 0 && strlen(start) <= 7);
}

// All selections were native in MPI_Init, and a key or the program selects an algorithm.
static void select_too_late(const char* way) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (strcmp(way, "key") == 0)
    set(comm, "papaya_allreduce", "arrival_tree");
  else
    CHECK(papaya_set_algorithm("allreduce", "arrival_tree") == 0);
  sum(comm, 5);
  check_algorithm(comm, "native: all selections were native in MPI_Init");
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  is_native = argc > 1 && strcmp(argv[1], "native") == 0;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1 && !is_native) {
    select_too_late(argv[1]);
    const int code = finish();
    MPI_Finalize();
    return code;
  }

  // Given when it is made. A copy has it where the MPI is of version 3, as MPI's own hints.
  MPI_Comm made, copied, split, set_later, differing;
  MPI_Info info = info_of("papaya_allreduce", "arrival_tree");
  MPI_Info_set(info, "papaya_barrier", "native");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, info, &split);
  MPI_Info_free(&info);
  sum(made, 3);
  check_key(made, "papaya_allreduce", "arrival_tree");
  check_key(made, "papaya_barrier", "native");
  check_key(made, "papaya_reduce", "");
  check_algorithm(made, "arrival_tree");
  check_algorithm(MPI_COMM_WORLD, "arrival_leader");
  char text[8];
  CHECK(papaya_get_algorithm("allreduce", MPI_COMM_NULL, 4, text, sizeof text) == 1);
  CHECK(papaya_get_algorithm("allgathervv", MPI_COMM_WORLD, 4, text, sizeof text) == 1 && text[0] == '\0');
  check_key(split, "papaya_allreduce", "arrival_tree");
  MPI_Comm_dup(made, &copied);
  check_key(copied, "papaya_allreduce", MPI_VERSION < 4 ? "arrival_tree" : "");
  MPI_Comm_free(&copied);
  MPI_Comm_dup_with_info(made, MPI_INFO_NULL, &copied);
  check_key(copied, "papaya_allreduce", "");

  // Set, changed, and others left as they are.
  MPI_Comm_dup(MPI_COMM_WORLD, &set_later);
  sum(set_later, 5);
  set(set_later, "papaya_allreduce", "dissemination");
  sum(set_later, 4);
  set(set_later, "papaya_bcast", "native");
  check_key(set_later, "papaya_allreduce", "dissemination");
  check_algorithm(set_later, "dissemination");
  sum(set_later, 1);
  set(set_later, "papaya_allreduce", "native");
  check_key(set_later, "papaya_allreduce", "native");
  check_algorithm(set_later, "native: native selected by the user");
  sum(set_later, 2);

  // Not the same on all ranks, and not to be used: without effect.
  MPI_Comm_dup(MPI_COMM_WORLD, &differing);
  set(differing, "papaya_allreduce", rank == 0 ? "arrival_tree" : "dissemination");
  check_key(differing, "papaya_allreduce", "");
  set(differing, "papaya_allreduce", "arrival_three");
  set(differing, "papaya_allreduc", "arrival_tree");
  set(differing, "papaya_allreduc", "dissemination");
  check_key(differing, "papaya_allreduce", "");
  sum(differing, 6);

  // Of the whole job.
  CHECK(papaya_set_algorithm("allreduce", "arrival_tree") == is_native);
  check_algorithm(MPI_COMM_WORLD, "arrival_tree");
  sum(MPI_COMM_WORLD, 2);
  CHECK(papaya_set_algorithm("allreduce", "arrival_three") == 1);
  CHECK(papaya_set_algorithm("allreduce", NULL) == 1);
  check_algorithm(MPI_COMM_WORLD, "arrival_tree");

  MPI_Comm* const all[] = {&made, &copied, &split, &set_later, &differing};
  for (int i = 0; i < 5; ++i) MPI_Comm_free(all[i]);
  const int code = finish();
  MPI_Finalize();
  return code;
}
