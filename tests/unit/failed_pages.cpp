// Pages that a file loses while they are mapped, in processes of their own.
#include "profiler/record/failed_pages.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/catch.hpp"

namespace papaya {

namespace {

constexpr std::size_t page = 65536;  // a multiple of any system's
constexpr int passed_on = 40;        // exit code of the program's own handler

// A file of two such pages, of which the second is cut away.
struct CutFile {
  int file = memfd_create("cut", MFD_CLOEXEC);
  char* base = nullptr;
  CutFile() {
    if (ftruncate(file, 2 * page) != 0) _exit(90);
    base = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    base[0] = base[page] = 7;
  }
  void cut() const {
    if (ftruncate(file, page) != 0) _exit(91);
  }
};

// The wait status of a child that runs it with this handler of SIGBUS and ends with its result.
int status_of(int (*child)(), void (*handler)(int) = SIG_DFL) {
  const pid_t process = fork();
  if (process == 0) {
    failed_pages::give_signal_back();  // records of other tests have it
    signal(SIGBUS, handler);
    _exit(child());
  }
  int status = 0;
  waitpid(process, &status, 0);
  return status;
}

void own_handler(int) {
  _exit(passed_on);
}

int touch_watched() {
  const CutFile cut;
  failed_pages::watch(cut.base, 2 * page);
  cut.cut();
  const bool is_empty = cut.base[page] == 0 && failed_pages::count() == 1;
  cut.base[page] = 9;
  // The next touch is an ordinary one, and other pages keep what they hold.
  return is_empty && cut.base[page] == 9 && failed_pages::count() == 1 && cut.base[0] == 7 ? 0 : 1;
}

int touch_with_signals_blocked() {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  return touch_watched();
}

int touch_forgotten() {
  const CutFile cut;
  failed_pages::watch(cut.base, 2 * page);
  failed_pages::forget(cut.base);
  cut.cut();
  return cut.base[page];
}

int touch_other() {
  const CutFile watched;
  const CutFile other;
  failed_pages::watch(watched.base, 2 * page);
  other.cut();
  return other.base[page];
}

int is_sent() {
  const CutFile cut;
  failed_pages::watch(cut.base, 2 * page);
  raise(SIGBUS);
  return 0;
}

struct sigaction of_papaya {};
void calls_on(int number, siginfo_t* information, void* context) {
  of_papaya.sa_sigaction(number, information, context);
}

// The program's handler calls on the one it has found.
int in_front() {
  const CutFile first;
  failed_pages::watch(first.base, 2 * page);
  struct sigaction action {};
  action.sa_sigaction = calls_on;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &of_papaya);
  failed_pages::give_signal_back();
  const CutFile second;
  failed_pages::watch(second.base, 2 * page);
  second.cut();
  if (second.base[page] != 0) return 1;
  const CutFile other;
  other.cut();
  return other.base[page];
}

int handlers_afterwards() {
  const CutFile cut;
  failed_pages::watch(cut.base, 2 * page);
  failed_pages::give_signal_back();
  const bool is_back = signal(SIGBUS, SIG_IGN) == own_handler;
  // What the program has set meanwhile stays.
  failed_pages::watch(cut.base, 2 * page);
  signal(SIGBUS, own_handler);
  failed_pages::give_signal_back();
  return is_back && signal(SIGBUS, SIG_DFL) == own_handler ? 0 : 1;
}

}  // namespace

TEST_CASE("a page that its file has lost is replaced by an empty one") {
  CHECK(status_of(touch_watched) == 0);
  CHECK(status_of(touch_with_signals_blocked) == 0);
}

TEST_CASE("any other bus error is the program's") {
  for (int (*child)() : {touch_forgotten, touch_other, is_sent}) {
    const int status = status_of(child);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS));
  }
  for (int (*child)() : {touch_other, is_sent, in_front}) CHECK(status_of(child, own_handler) == passed_on << 8);
  CHECK(status_of(is_sent, SIG_IGN) == 0);
  CHECK(status_of(handlers_afterwards, own_handler) == 0);
}

}  // namespace papaya
