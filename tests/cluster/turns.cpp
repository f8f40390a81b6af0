// usage: turns MICROSECONDS
// More ranks than cores, each waiting in a loop for the next, as MPICH's do: the kernel lets one run until
// its clock ticks, 4 ms later, and an allreduce of 8 bytes takes 32 ms. This program interrupts every core
// every so often, at real-time priority and for nothing. The kernel then chooses anew, and takes another rank
// if this one has had its time slice (which ./box shortens; before Linux 6.12 it cannot be, and nothing
// changes).
#include <pthread.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
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

}  // namespace

int main(int argc, char** argv) {
  const long microseconds = argc == 2 ? std::atol(argv[1]) : 0;
  if (microseconds < 1 || microseconds > 999'999) {
    std::fprintf(stderr, "usage: turns MICROSECONDS\n");
    return 2;
  }
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) std::thread(interrupt, core, microseconds * 1000).detach();
  pthread_exit(nullptr);
}
