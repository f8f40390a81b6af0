// Who does not come. A thread of each node's first rank looks now and then at what the ranks of its node are inside, in
// their records. If a rank has been in one call for PAPAYA_STALL_SECONDS, or a process got SIGUSR1 that the program has
// not claimed, it reads what the folder has of all ranks and says who waits, who is missing and what those did last:
// once on standard error, and in a file of the output folder, with the call stacks of the ranks. Those of other nodes
// are asked for theirs by their node's watch, where the nodes share the folder. It never ends the job.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_identity.hpp"
#include "interpose/reports.hpp"
#include "profiler/record/live.hpp"
#include "profiler/record/stack_requests.hpp"

namespace papaya {

class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // `folder`: open as `/proc/self/fd/N` or by its name; `ranks` of this node, whose files may appear a little later, of
  // `all_ranks` of the job. `stall_s` 0: only when asked. `is_first_node`: others let it speak first.
  void start(const std::string& folder, const std::vector<int>& ranks, int all_ranks, double stall_s,
             bool is_first_node) noexcept;
  void stop() noexcept;

  // On every rank that records: SIGUSR1 asks for a report, if the program lets it. `asked` is the record's counter.
  // Before MPI_Init, where MPI may put a handler of its own before the program's.
  static void note_signal() noexcept;
  static void claim_signal(std::uint64_t& asked) noexcept;
  static void stop_counting() noexcept;  // `asked` is no longer touched; the signal does nothing until it is given back
  static void
  give_signal_back() noexcept;  // once MPI_Finalize has ended: whoever asks cannot know that a rank is inside it

 private:
  struct Rank {
    int rank;
    std::string path;
    LiveRecord record;
    bool is_open = false;
    std::uint64_t asked = 0;
  };
  void run() noexcept;
  bool sleep(std::chrono::milliseconds time);
  bool is_asked();
  void look_for_stalls();
  // `now_unix_ns` on the records' clock. False: there was nothing to report.
  bool report(std::int64_t now_unix_ns, bool asked);
  bool may_speak(const std::string& file);
  reports::Stacks stacks(bool& all_answer);

  std::string folder_;
  int descriptor_ = -1;
  FileIdentity identity_;
  std::vector<Rank> ranks_;
  int all_ranks_ = 0;
  StackWishes wishes_;
  double stall_s_ = 0;
  bool is_first_node_ = true;

  bool running_ = false;
  pthread_t thread_{};
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ends_ = false;  // guarded by mutex_
};

}  // namespace papaya
