// The call stacks of this process's threads, written into its record when somebody asks there (trace::Stacks): the
// watch of the node, about a job that does not go on, or another process. A thread of its own waits for that without
// using any time. It asks each thread by a real-time signal whose handler is there for just that moment, and only if
// the program has none of its own. Of a thread that sleeps in a system call that a signal would end early it reads the
// stack from outside.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "profiler/record/call_sites.hpp"
#include "profiler/record/recorder.hpp"
#include "profiler/record/thread_state.hpp"

namespace papaya {

class StackDump {
 public:
  StackDump() = default;
  StackDump(const StackDump&) = delete;
  StackDump& operator=(const StackDump&) = delete;

  // Both are to stay until stop(). False: no thread could be started.
  bool start(Recorder& recorder, CallSites& call_sites) noexcept;
  void stop() noexcept;

 private:
  void run() noexcept;
  void dump();
  void show() noexcept;
  void dump_thread(std::int32_t thread, trace::ThreadStack& stack);
  void warm_up() noexcept;
  trace::StackState interrupt(std::int32_t thread);
  void dump_running(std::int32_t thread, trace::ThreadStack& stack);
  bool dump_blocked(std::int32_t thread, const Sleep& sleep, trace::ThreadStack& stack);
  void write_frames(const void* address, std::span<const void* const> outer, std::span<const PythonFrames::Line> python,
                    trace::ThreadStack& stack);

  Recorder* recorder_ = nullptr;
  trace::Header* header_ = nullptr;
  trace::Stacks* stacks_ = nullptr;
  CallSites* call_sites_ = nullptr;
  pthread_t thread_{};
  bool running_ = false;
  std::atomic<bool> ends_{false};
  bool is_warm_ = false;
  bool is_broken_ = false;  // a handler has not come to its end: no signal is sent any more
};

}  // namespace papaya
