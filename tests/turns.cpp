// usage: turns MICROSECONDS [COMMAND...]
// More ranks than cores, each waiting in a loop for the next, as MPICH's do: the kernel lets one run until its clock
// ticks, 4 ms later, and an allreduce of 8 bytes takes 32 ms. This program interrupts every core every so often, at
// real-time priority and for nothing. The kernel then chooses anew, and takes another rank if this one has had its time
// slice. COMMAND runs with as short a slice, and turns ends with it, as it does; 0 microseconds change nothing. Without
// COMMAND the caller shortens slices (cluster/box). Before Linux 6.12 slices cannot be shortened, and without the
// permission for real-time priority nobody interrupts: then all is as without turns.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

namespace {

void interrupt(int core, long nanoseconds) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_param priority{};
  priority.sched_priority = 1;
  if (pthread_setaffinity_np(pthread_self(), sizeof cores, &cores) != 0 ||
      pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) != 0)
    return;  // at no higher priority it would only wait for its turn
  const timespec pause = {0, nanoseconds};
  while (true) clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
}

bool interrupt_all(long nanoseconds) {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return false;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) std::thread(interrupt, core, nanoseconds).detach();
  return true;
}

// Of many jobs at once one is enough: the next takes over when it ends.
void interrupt_alone(long nanoseconds) {
  const std::string path = "/tmp/papaya-turns-" + std::to_string(geteuid());
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  interrupt_all(nanoseconds);
}

// Of this process and of those it starts. Keeps its policy and its niceness.
void set_slice(long nanoseconds) {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attributes{};
  constexpr std::uint64_t keep_policy = 0x08;
  attributes.size = sizeof attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.flags = keep_policy;
  attributes.runtime = static_cast<std::uint64_t>(nanoseconds);
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

volatile pid_t command_pid = 0;

// Starts the command, interrupts until it ends, and ends as it did.
int run(char** command, long nanoseconds) {
  command_pid = fork();
  if (command_pid < 0) return 126;
  if (command_pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_slice(nanoseconds);
    execvp(command[0], command);
    std::perror(command[0]);
    _exit(127);
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    std::signal(signal, [](int received) { kill(command_pid, received); });
  std::thread(interrupt_alone, nanoseconds).detach();
  int status = 0;
  while (waitpid(command_pid, &status, 0) < 0)
    if (errno != EINTR) return 126;
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  std::signal(WTERMSIG(status), SIG_DFL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  const long microseconds = argc >= 2 ? std::atol(argv[1]) : 0;
  if (argc < 2 || microseconds < 0 || microseconds > 999'999 || (microseconds == 0 && argc == 2)) {
    std::fprintf(stderr, "usage: turns MICROSECONDS [COMMAND...]\n");
    return 2;
  }
  if (argc == 2) {
    if (!interrupt_all(microseconds * 1000)) return 1;
    pthread_exit(nullptr);
  }
  if (microseconds == 0) {
    execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    return 127;
  }
  return run(argv + 2, microseconds * 1000);
}
