#include "guard.hpp"

#include <mpi.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace kmeans {

// MPICH's Hydra kills the ranks of a node when it sees that a signal has ended one of them, with -disable-auto-cleanup
// too (4.0: pmip.c). So it does not see it. It also sends SIGUSR1 to those that are left, whose default is to end.
std::optional<int> guard([[maybe_unused]] char** argv) {
#ifdef MPICH_VERSION
  constexpr const char* mark = "KMEANS_IS_GUARDED";
  std::signal(SIGUSR1, SIG_IGN);
  if (std::getenv(mark) != nullptr || std::getenv("PMI_RANK") == nullptr) return std::nullopt;
  const pid_t guarding = getpid();
  const pid_t rank = fork();
  if (rank < 0) return std::nullopt;
  if (rank == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guarding) _exit(0);
    setenv(mark, "1", 1);
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  int status = 0;
  while (waitpid(rank, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
#else
  return std::nullopt;
#endif
}

}  // namespace kmeans
