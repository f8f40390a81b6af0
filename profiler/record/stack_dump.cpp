#include "profiler/record/stack_dump.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "profiler/record/blocked_stack.hpp"
#include "profiler/record/mapped_file.hpp"
#include "profiler/record/thread_state.hpp"

namespace papaya {

namespace {

constexpr std::size_t stack_bytes = 1 << 20;  // libdw puts much there
constexpr int handler_frames = 16;            // papaya's and the system's, above those of the interrupted code
constexpr int most_python_frames = 32;
constexpr std::size_t handler_bytes = 24 << 10;  // of stack, to unwind in the handler
constexpr long answer_within_ms = 300;
constexpr int most_attempts = 8;  // with a thread that sleeps and wakes

// What the handler of a signal leaves. One thread is asked at a time.
enum class Step : std::uint32_t { idle, wanted, taking, taken };
struct Sample {
  std::atomic<Step> step{Step::idle};
  // Written before `wanted`:
  CallSites::Backtrace backtrace;
  const PythonFrames* python;
  // And before `taken`:
  const void* address;  // of the instruction that was to be next
  void* frames[handler_frames + trace::most_stack_frames];
  int depth;
  PythonFrames::Line python_lines[most_python_frames];
  int python_depth;
};
Sample sample;  // the handler can be given nothing else

const void* address_in(const void* context) noexcept {
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(machine.pc);
#else
  return nullptr;
#endif
}

// A handler on a stack that the program has set apart for signals may have little room.
bool has_room() noexcept {
  stack_t alternative{};
  if (sigaltstack(nullptr, &alternative) != 0 || (alternative.ss_flags & SS_ONSTACK) == 0) return true;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here - reinterpret_cast<std::uintptr_t>(alternative.ss_sp) >= handler_bytes;
}

void on_signal(int, siginfo_t* information, void* context) {
  if (information->si_code != SI_QUEUE || information->si_value.sival_ptr != &sample) return;
  Step wanted = Step::wanted;
  // Acquire, partner of interrupt(); who comes too late finds it idle.
  if (!sample.step.compare_exchange_strong(wanted, Step::taking, std::memory_order_acquire)) return;
  const int error = errno;
  sample.address = address_in(context);
  sample.depth = sample.backtrace != nullptr && has_room()
                     ? sample.backtrace(sample.frames, static_cast<int>(std::size(sample.frames)))
                     : 0;
  sample.python_depth = sample.python->walk_interrupted(sample.python_lines, most_python_frames);
  errno = error;
  sample.step.store(Step::taken, std::memory_order_release);
}

// System calls that fail with EINTR once a handler has run, or end early, also with SA_RESTART.
constexpr long ended_by_signals[] = {
    SYS_clock_nanosleep, SYS_nanosleep,    SYS_epoll_pwait,    SYS_epoll_pwait2,    SYS_ppoll,
    SYS_pselect6,        SYS_io_getevents, SYS_io_uring_enter, SYS_msgrcv,          SYS_msgsnd,
    SYS_semop,           SYS_semtimedop,   SYS_rt_sigsuspend,  SYS_rt_sigtimedwait,
#if defined(__x86_64__)
    SYS_epoll_wait,      SYS_pause,        SYS_poll,           SYS_select,
#endif
};

// A signal that nobody uses; 0: there is none.
int free_signal() noexcept {
  for (int number = SIGRTMAX - 4; number > SIGRTMIN + 4; --number) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL)
      return number;
  }
  return 0;
}

bool is_taken_within(long milliseconds) noexcept {
  for (long i = 0; i < milliseconds * 4; ++i) {
    if (sample.step.load(std::memory_order_acquire) == Step::taken) return true;
    timespec quarter{0, 250'000};
    nanosleep(&quarter, nullptr);
  }
  return sample.step.load(std::memory_order_acquire) == Step::taken;
}

}  // namespace

bool StackDump::start(Recorder& recorder, CallSites& call_sites) noexcept {
  recorder_ = &recorder;
  header_ = &recorder.header();
  stacks_ = &recorder.stacks();
  call_sites_ = &call_sites;
  ends_ = false;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);  // of the record's own pages (failed_pages.hpp)
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's: none is delivered to this thread
  running_ = pthread_create(
                 &thread_, &attributes,
                 [](void* self) -> void* {
                   static_cast<StackDump*>(self)->run();
                   return nullptr;
                 },
                 this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return running_;
}

void StackDump::stop() noexcept {
  if (!running_) return;
  std::atomic_ref(stacks_->answers).store(0, std::memory_order_relaxed);
  ends_ = true;
  // A change of the word, so that the thread does not go to sleep after this.
  std::atomic_ref(stacks_->asked).fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &stacks_->asked, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  pthread_join(thread_, nullptr);
  running_ = false;
}

void StackDump::run() noexcept try {
  pthread_setname_np(pthread_self(), "papaya-stacks");
  const std::atomic_ref asked(stacks_->asked);
  std::uint32_t seen = 0;
  std::atomic_ref(stacks_->answers).store(1, std::memory_order_release);
  recorder_->write_out_head();
  while (!ends_) {
    const std::uint32_t now = asked.load(std::memory_order_acquire);
    if (now == seen) {
      // With an end: a page that has failed meanwhile is not the one that stop() would wake this thread by.
      const timespec pause{5, 0};
      syscall(SYS_futex, &stacks_->asked, FUTEX_WAIT, seen, &pause, nullptr, 0);
      continue;
    }
    seen = now;
    if (ends_) break;
    dump();
    show();
    // Release: who reads this number finds the stacks.
    std::atomic_ref(stacks_->answered).store(seen, std::memory_order_release);
    show();
  }
} catch (...) {  // out of memory: nobody answers any more
  std::atomic_ref(stacks_->answers).store(0, std::memory_order_relaxed);
}

// The first thread, which computes whoever calls MPI, and those known to have called it.
void StackDump::dump() {
  std::int32_t threads[trace::most_stacks] = {getpid()};
  std::uint32_t count = 1;
  for (const std::atomic<std::int32_t>& recorded : recorded_threads) {
    const std::int32_t thread = recorded.load(std::memory_order_relaxed);
    if (thread != 0 && thread != threads[0] && count < trace::most_stacks) threads[count++] = thread;
  }
  std::uint32_t there = 0;
  for (const std::int32_t thread : std::span(threads, count)) {
    if (syscall(SYS_tgkill, getpid(), thread, 0) != 0) continue;  // it has ended
    dump_thread(thread, stacks_->thread[there++]);
  }
  stacks_->count = there;
  header_->stacks_ticks = clock::ticks();
}

// For readers on other nodes.
void StackDump::show() noexcept {
  if (header_->nodes <= 1) return;
  write_out(header_, sizeof *header_);
  write_out(stacks_, sizeof *stacks_);
}

void StackDump::dump_thread(std::int32_t thread, trace::ThreadStack& stack) {
  stack.thread = thread;
  stack.system_call = 0;
  stack.frames = 0;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const std::optional<Sleep> sleep = sleep_of(thread);
    stack.system_call = sleep ? static_cast<std::uint32_t>(sleep->system_call) + 1 : 0;
    if (!sleep || std::find(std::begin(ended_by_signals), std::end(ended_by_signals), sleep->system_call) ==
                      std::end(ended_by_signals)) {
      dump_running(thread, stack);
      return;
    }
    if (dump_blocked(thread, *sleep, stack)) return;
  }
  stack.state = static_cast<std::uint32_t>(trace::StackState::blocked);
}

void StackDump::dump_running(std::int32_t thread, trace::ThreadStack& stack) {
  const trace::StackState state = interrupt(thread);
  stack.state = static_cast<std::uint32_t>(state);
  if (state != trace::StackState::taken) return;
  const std::span frames(sample.frames, static_cast<std::size_t>(std::max(sample.depth, 0)));
  auto outer = std::find(frames.begin(), frames.end(), sample.address);
  if (outer != frames.end()) ++outer;
  write_frames(sample.address, {outer, frames.end()},
               {sample.python_lines, static_cast<std::size_t>(std::max(sample.python_depth, 0))}, stack);
}

// False: it has woken.
bool StackDump::dump_blocked(std::int32_t thread, const Sleep& sleep, trace::ThreadStack& stack) {
  std::vector<PythonFrames::Line> lines(most_python_frames);
  std::size_t count = 0;
  const std::optional<std::vector<const void*>> places = blocked_stack(thread, sleep, [&] {
    count = static_cast<std::size_t>(call_sites_->python().walk_asleep(thread, lines.data(), most_python_frames));
  });
  if (!places) return false;
  stack.state = static_cast<std::uint32_t>(places->empty() ? trace::StackState::blocked : trace::StackState::taken);
  if (places->empty())
    stack.frame[stack.frames++] = call_sites_->frame_at(reinterpret_cast<const void*>(sleep.address));
  else
    write_frames(places->front(), std::span(*places).subspan(1), std::span(lines).first(count), stack);
  return true;
}

// The first time libunwind sets itself up, which a handler should not. Not sooner than it is needed: a thread that is
// stuck in the dynamic linker, whose lock libunwind takes, is asleep in most cases and not asked.
void StackDump::warm_up() noexcept {
  void* frames[4];
  if (!is_warm_ && call_sites_->backtrace() != nullptr)
    call_sites_->backtrace()(frames, static_cast<int>(std::size(frames)));
  is_warm_ = true;
}

trace::StackState StackDump::interrupt(std::int32_t thread) {
  using enum trace::StackState;
  if (is_broken_) return silent;
  const int number = free_signal();
  if (number == 0) return no_signal;
  if ((blocked_signals(thread) >> (number - 1) & 1) != 0) return masked;
  sample.backtrace = call_sites_->backtrace();
  warm_up();
  sample.python = &call_sites_->python();
  sample.step.store(Step::wanted, std::memory_order_release);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigaction(number, &action, &before);
  siginfo_t information{};
  information.si_signo = number;
  information.si_code = SI_QUEUE;
  information.si_pid = getpid();
  information.si_uid = getuid();
  information.si_value.sival_ptr = &sample;
  const bool is_sent = syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, number, &information) == 0;
  bool is_taken = is_sent && is_taken_within(answer_within_ms);
  // To ignore a signal drops those that are still to be delivered: none comes once the old action is back, which ends
  // the process.
  action.sa_handler = SIG_IGN;
  action.sa_flags = 0;
  sigaction(number, &action, nullptr);
  sigaction(number, &before, nullptr);
  Step step = Step::wanted;
  if (!is_taken && !sample.step.compare_exchange_strong(step, Step::idle, std::memory_order_acquire)) {
    is_taken = is_taken_within(answer_within_ms);
    is_broken_ = !is_taken;
  }
  if (is_taken) sample.step.store(Step::idle, std::memory_order_relaxed);
  return is_taken ? taken : silent;
}

// Of a thread that runs Python the frames of machine code above the interpreter's, and then those of the interpreter.
// `address`: of the instruction that is next.
void StackDump::write_frames(const void* address, std::span<const void* const> outer,
                             std::span<const PythonFrames::Line> python, trace::ThreadStack& stack) {
  const auto put = [&](const auto& place) {
    if (stack.frames < trace::most_stack_frames) stack.frame[stack.frames++] = call_sites_->frame_at(place);
  };
  const auto is_interpreter = [&](const void* place) {
    return !python.empty() && call_sites_->python().is_interpreter(place);
  };
  if (!is_interpreter(address)) {
    // Other frames are where calls return to, and their readers look at the instruction before.
    put(static_cast<const void*>(static_cast<const char*>(address) + 1));
    for (auto frame = outer.begin(); frame != outer.end() && !is_interpreter(*frame); ++frame) put(*frame);
  }
  for (const PythonFrames::Line& line : python) put(line);
}

}  // namespace papaya
