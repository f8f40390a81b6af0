#include "profiler/record/failed_pages.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

namespace papaya::failed_pages {

namespace {

// Free if `bytes` is 0. `begin` is written before and not after.
struct Mapping {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> bytes{0};
};
constexpr int capacity = 4096;  // a record, and the boards of the node's other ranks
Mapping mappings[capacity];
std::atomic<int> used{0};  // all in use are below
std::atomic<std::uint64_t> failed{0};
std::uintptr_t page_bytes = 0;
std::mutex changing;  // guards who is in `mappings`
// left: another handler is there, which may call on ours. To set ours before that one would make a circle.
enum class Signal { of_the_program, ours, left };
Signal signal_is = Signal::of_the_program;
struct sigaction before {};  // written before the handler is there

bool is_watched(std::uintptr_t address) noexcept {
  const int end = used.load(std::memory_order_acquire);
  for (int i = 0; i < end; ++i) {
    const std::size_t bytes = mappings[i].bytes.load(std::memory_order_acquire);
    if (address - mappings[i].begin.load(std::memory_order_relaxed) < bytes) return true;
  }
  return false;
}

// Not by mmap(), for which UCX has a hook with locks.
bool replace(std::uintptr_t page) noexcept {
  return syscall(SYS_mmap, page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
         static_cast<long>(page);
}

void pass_on(int number, siginfo_t* information, void* context) noexcept {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(number, information, context);
  if (before.sa_handler == SIG_IGN && information->si_code <= 0) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(number);
  // The system's own way to end. A fault comes again when this returns, a signal that was sent does not.
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &usual, nullptr);
  if (information->si_code <= 0) raise(SIGBUS);
}

void on_bus_error(int number, siginfo_t* information, void* context) noexcept {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
  const bool is_replaced =
      information->si_code == BUS_ADRERR && is_watched(address) && replace(address / page_bytes * page_bytes);
  errno = error;
  if (is_replaced)
    failed.fetch_add(1, std::memory_order_relaxed);
  else
    pass_on(number, information, context);
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_bus_error;
}

void set_handler() noexcept {
  page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  if (sigaction(SIGBUS, nullptr, &before) != 0) return;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_mask = before.sa_mask;
  action.sa_flags = (before.sa_flags & (SA_RESTART | SA_NODEFER)) | SA_SIGINFO | SA_ONSTACK;
  if (sigaction(SIGBUS, &action, nullptr) == 0) signal_is = Signal::ours;
}

}  // namespace

void watch(void* begin, std::size_t bytes) noexcept {
  const std::lock_guard lock(changing);
  if (signal_is == Signal::of_the_program) set_handler();
  int place = 0;
  while (place < capacity && mappings[place].bytes.load(std::memory_order_relaxed) != 0) ++place;
  if (place == capacity) return;
  mappings[place].begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_relaxed);
  // Release: the handler that finds it finds the beginning.
  mappings[place].bytes.store(bytes, std::memory_order_release);
  if (place >= used.load(std::memory_order_relaxed)) used.store(place + 1, std::memory_order_release);
}

void forget(void* begin) noexcept {
  const std::lock_guard lock(changing);
  for (Mapping& mapping : mappings)
    if (mapping.begin.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(begin))
      mapping.bytes.store(0, std::memory_order_release);
}

std::uint64_t count() noexcept {
  return failed.load(std::memory_order_relaxed);
}

void give_signal_back() noexcept {
  const std::lock_guard lock(changing);
  if (signal_is != Signal::ours) return;
  struct sigaction now {};
  const bool is_there = sigaction(SIGBUS, nullptr, &now) == 0 && is_ours(now);
  if (is_there) sigaction(SIGBUS, &before, nullptr);
  signal_is = is_there ? Signal::of_the_program : Signal::left;
}

}  // namespace papaya::failed_pages
