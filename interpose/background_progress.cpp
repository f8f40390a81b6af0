#include "interpose/background_progress.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#include "interpose/next.hpp"

namespace papaya::background_progress {

namespace {

bool (*outstanding)() noexcept = nullptr;
void (*move)() noexcept = nullptr;

#if defined(OPEN_MPI)

using Callback = int (*)();
Callback registered = nullptr;

int on_progress() {
  if (outstanding()) move();
  return 0;  // MPI counts its own events by this, and yields after none
}

// libopen-pal may have come in through a plugin opened RTLD_LOCAL: it is looked for among the dependencies of libmpi,
// which is known by a function that libpapaya.so does not export.
template <class Function>
Function in_open_mpi(const char* name) noexcept {
  Dl_info mpi;
  if (dladdr(reinterpret_cast<const void*>(&PMPI_Get_library_version), &mpi) == 0 || mpi.dli_fname == nullptr)
    return nullptr;
  void* const handle = dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* const found = dlsym(handle, name);
  dlclose(handle);
  return reinterpret_cast<Function>(found);
}

#else

// The level the program has got, by what it has asked for; below zero: what MPI says.
int level_of_program = -1;

// Rank 0's settings hold, which are not known before MPI is initialised; a rank that has none finds that out in
// start().
bool is_needed() noexcept {
  if (const char* const disabled = std::getenv("PAPAYA_DISABLE");
      disabled != nullptr && std::string_view(disabled) == "1")
    return false;
  for (const char* name : {"PAPAYA_IALLREDUCE", "PAPAYA_IBCAST", "PAPAYA_IBARRIER"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0' && std::string_view(value) != "native") return true;
  }
  return false;
}

// What MPI_Init gives natively.
int default_level() noexcept {
  const char* const value = std::getenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL");
  const std::string_view level = value == nullptr ? "" : value;
  return level.ends_with("MULTIPLE")     ? MPI_THREAD_MULTIPLE
         : level.ends_with("SERIALIZED") ? MPI_THREAD_SERIALIZED
         : level.ends_with("FUNNELED")   ? MPI_THREAD_FUNNELED
                                         : MPI_THREAD_SINGLE;
}

int init_at_most(int* argc, char*** argv, int required) {
  int provided = MPI_THREAD_SINGLE;
  const int code = PAPAYA_NEXT(Init_thread)(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  // An MPI that has all levels gives what is asked for; one that has not keeps to the highest it has.
  if (code == MPI_SUCCESS) level_of_program = std::min(required, provided);
  return code;
}

constexpr auto shortest_pause = std::chrono::microseconds(20);
constexpr auto longest_pause_inside = std::chrono::microseconds(500);
constexpr auto pause_elsewhere = std::chrono::microseconds(1000);
constexpr auto longest_pause = std::chrono::microseconds(10000);  // nothing is outstanding

class Mover {
 public:
  bool start() noexcept {
    stopping_ = false;
    // No signal of the program's is to be handled here.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
    bool good = true;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      good = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return good;
  }

  void stop() noexcept {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void enter() noexcept {
    inside_.fetch_add(1, std::memory_order_relaxed);
    if (!outstanding()) return;
    {
      const std::lock_guard lock(mutex_);
      pause_ = shortest_pause;
    }
    changed_.notify_one();
  }
  void leave() noexcept { inside_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  void run() noexcept {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      changed_.wait_for(lock, pause_);
      if (!outstanding()) {
        pause_ = std::min(pause_ * 2, longest_pause);
        continue;
      }
      pause_ =
          inside_.load(std::memory_order_relaxed) != 0 ? std::min(pause_ * 2, longest_pause_inside) : pause_elsewhere;
      lock.unlock();
      move();
      lock.lock();
    }
  }

  std::thread thread_;
  std::mutex mutex_;  // guards `pause_` and `stopping_`
  std::condition_variable changed_;
  std::chrono::microseconds pause_ = longest_pause;
  bool stopping_ = false;
  std::atomic<int> inside_{0};  // threads in a call that may block inside MPI; relaxed: seen at the next look
};

// Never destroyed: MPI_Finalize may be called by an exit handler.
Mover& mover = *new Mover;

#endif

}  // namespace

#if defined(OPEN_MPI)

int init(int* argc, char*** argv) {
  return PAPAYA_NEXT(Init)(argc, argv);
}
int init_thread(int* argc, char*** argv, int required, int* provided) {
  return PAPAYA_NEXT(Init_thread)(argc, argv, required, provided);
}
int query_thread(int* provided) {
  return PAPAYA_NEXT(Query_thread)(provided);
}
#if PAPAYA_HAS_MPI_4
int session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  return PAPAYA_NEXT(Session_init)(info, errhandler, session);
}
#endif

bool start(bool (*are_outstanding)() noexcept, void (*move_on)() noexcept) noexcept {
  outstanding = are_outstanding;
  move = move_on;
  const auto add = in_open_mpi<int (*)(Callback)>("opal_progress_register");
  if (add == nullptr || in_open_mpi<int (*)(Callback)>("opal_progress_unregister") == nullptr || add(on_progress) != 0)
    return false;
  registered = on_progress;
  return true;
}

void stop() noexcept {
  if (registered == nullptr) return;
  if (const auto remove = in_open_mpi<int (*)(Callback)>("opal_progress_unregister")) remove(registered);
  registered = nullptr;
}

void enter() noexcept {}
void leave() noexcept {}

#else

int init(int* argc, char*** argv) {
  return is_needed() ? init_at_most(argc, argv, default_level()) : PAPAYA_NEXT(Init)(argc, argv);
}

int init_thread(int* argc, char*** argv, int required, int* provided) {
  const bool is_level = required >= MPI_THREAD_SINGLE && required < MPI_THREAD_MULTIPLE;
  if (!is_level || !is_needed()) return PAPAYA_NEXT(Init_thread)(argc, argv, required, provided);
  const int code = init_at_most(argc, argv, required);
  if (code == MPI_SUCCESS && provided != nullptr) *provided = level_of_program;
  return code;
}

int query_thread(int* provided) {
  const int code = PAPAYA_NEXT(Query_thread)(provided);
  if (code == MPI_SUCCESS && level_of_program >= 0 && provided != nullptr) *provided = level_of_program;
  return code;
}

#if PAPAYA_HAS_MPI_4
int session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  MPI_Info raised = MPI_INFO_NULL;
  if (!is_needed() || (info == MPI_INFO_NULL ? PMPI_Info_create(&raised) : PMPI_Info_dup(info, &raised)) != MPI_SUCCESS)
    return PAPAYA_NEXT(Session_init)(info, errhandler, session);
  PMPI_Info_set(raised, "thread_level", "MPI_THREAD_MULTIPLE");
  const int code = PAPAYA_NEXT(Session_init)(raised, errhandler, session);
  PMPI_Info_free(&raised);
  return code;
}
#endif

bool start(bool (*are_outstanding)() noexcept, void (*move_on)() noexcept) noexcept {
  outstanding = are_outstanding;
  move = move_on;
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE && mover.start();
}

void stop() noexcept {
  mover.stop();
}
void enter() noexcept {
  mover.enter();
}
void leave() noexcept {
  mover.leave();
}

#endif

}  // namespace papaya::background_progress
