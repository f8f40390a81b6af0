// An MPI program that starts other programs, in three ways, between its collectives.
//   children          (under mpirun)
//   children child    what it executes: no MPI; says whether papaya came along
#include <mpi.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void exit_code_is(int status, int code) {
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

static void some_calls(int ranks) {
  for (int i = 0; i < 50; ++i) {
    int sum = 1;
    CHECK(COUNTED(MPI_Allreduce, MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum == ranks);
  }
}

static void leave_quietly(void) {}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "child") == 0) {
    const char* preload = getenv("LD_PRELOAD");
    printf("executed child: papaya in LD_PRELOAD: %s\n",
           preload != NULL && strstr(preload, "papaya") != NULL ? "yes" : "no");
    return 5;
  }
  MPI_Init(&argc, &argv);
  int ranks, status = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  some_calls(ranks);

  // A child that runs on in this program, and leaves by exit: its handlers and destructors run a second time.
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    atexit(leave_quietly);
    char* memory = malloc(1 << 20);
    memset(memory, 1, 1 << 20);
    const int code = memory[12345] == 1 ? 4 : 1;
    free(memory);
    exit(code);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  exit_code_is(status, 4);
  some_calls(ranks);

  // A shell, and a program from the shell.
  status = system("echo \"shell says: ${LD_PRELOAD:-no preload}\"; env | grep -c '^PATH=' > /dev/null; exit 6");
  exit_code_is(status, 6);
  some_calls(ranks);

  // Another program, without a shell.
  child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "child", (char*)NULL);
    _exit(1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  exit_code_is(status, 5);
  some_calls(ranks);

  const int code = finish();
  MPI_Finalize();
  return code;
}
