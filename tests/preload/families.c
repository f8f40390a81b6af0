// Communicators that come from elsewhere than from a parent in one blocking call: copies that are there when a request
// completes, inter-communicators and what they are merged to, in MPI 4 also from the groups of a session. Ranks use
// them in another order than they were made in.

#include "check.h"
#include "mpi4.h"

static int rank, ranks;
static MPI_Status statuses[4];  // not ignored: MPICH declares the constant so that GCC warns

static void sum_on(MPI_Comm comm, int calls) {
  int one = 1, sum = 0, size = 0, inter = 0;
  MPI_Comm_test_inter(comm, &inter);
  MPI_Comm_size(comm, &size);
  if (inter) MPI_Comm_remote_size(comm, &size);
  for (int i = 0; i < calls; ++i) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size);
  }
}

// Calls that a root may leave, or others may, before everybody has come.
static void rooted_on(MPI_Comm comm, int calls) {
  int size, mine, one = 1, sum = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &mine);
  for (int i = 0; i < calls; ++i) {
    const int root = i % size;
    int value = mine == root ? i : -1;
    MPI_Bcast(&value, 1, MPI_INT, root, comm);
    CHECK(value == i);
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, root, comm);
    CHECK(mine != root || sum == size);
  }
}

static void copies(void) {
  MPI_Comm copy[3];
  MPI_Request request[3];
  for (int i = 0; i < 2; ++i) MPI_Comm_idup(MPI_COMM_WORLD, &copy[i], &request[i]);
#if HAS_MPI_4
  MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &copy[2], &request[2]);
#else
  MPI_Comm_idup(MPI_COMM_WORLD, &copy[2], &request[2]);
#endif
  MPI_Waitall(3, request, statuses);
  MPI_Comm_set_name(copy[0], "copy 0");
  MPI_Comm_set_name(copy[1], "copy 1");
  MPI_Comm_set_name(copy[2], "copy 2");
  // Started in this order on some ranks, in the other on the others.
  MPI_Request barriers[3];
  for (int i = 0; i < 3; ++i) {
    const int which = rank % 2 == 0 ? i : 2 - i;
    MPI_Ibarrier(copy[which], &barriers[which]);
  }
  MPI_Waitall(3, barriers, statuses);
  for (int i = 0; i < 3; ++i) {
    sum_on(copy[i], 40 + i);
    rooted_on(copy[i], 20);
    MPI_Comm_free(&copy[i]);
  }
}

static void merged(void) {
  MPI_Comm half, inter[2], whole[2];
  const int is_high = rank >= ranks / 2;
  MPI_Comm_split(MPI_COMM_WORLD, is_high, 0, &half);
  for (int i = 0; i < 2; ++i) {
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_high ? 0 : ranks / 2, 20 + i, &inter[i]);
    MPI_Intercomm_merge(inter[i], is_high, &whole[i]);
  }
  MPI_Comm_set_name(inter[0], "between");
  MPI_Comm_set_name(whole[0], "merged 0");
  MPI_Comm_set_name(whole[1], "merged 1");
  MPI_Request barriers[2];
  for (int i = 0; i < 2; ++i) {
    const int which = rank % 2 == 0 ? i : 1 - i;
    MPI_Ibarrier(whole[which], &barriers[which]);
  }
  MPI_Waitall(2, barriers, statuses);
  sum_on(inter[0], 3);
  sum_on(whole[0], 50);
  sum_on(whole[1], 51);
  rooted_on(whole[0], 20);
  rooted_on(whole[1], 20);
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_free(&inter[i]);
    MPI_Comm_free(&whole[i]);
  }
  MPI_Comm_free(&half);
}

#if HAS_MPI_4
static void from_groups(void) {
  MPI_Session session;
  MPI_Group all;
  MPI_Comm comm[2];
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Comm_create_from_group(all, "papaya.test.0", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm[0]);
  MPI_Comm_create_from_group(all, "papaya.test.1", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm[1]);
  MPI_Group_free(&all);
  MPI_Comm_set_name(comm[0], "session 0");
  MPI_Comm_set_name(comm[1], "session 1");
  MPI_Request barriers[2];
  for (int i = 0; i < 2; ++i) {
    const int which = rank % 2 == 0 ? i : 1 - i;
    MPI_Ibarrier(comm[which], &barriers[which]);
  }
  MPI_Waitall(2, barriers, statuses);
  sum_on(comm[0], 30);
  sum_on(comm[1], 31);
  rooted_on(comm[0], 20);
  rooted_on(comm[1], 20);
  MPI_Comm_free(&comm[0]);
  MPI_Comm_free(&comm[1]);
  MPI_Session_finalize(&session);
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  copies();
  merged();
#if HAS_MPI_4
  for (int i = 0; i < 2; ++i) from_groups();
#endif
  MPI_Finalize();
  return finish();
}
