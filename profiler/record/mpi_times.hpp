// The time a rank spends in MPI's other functions than blocking collectives: a row for each function, summed over the
// run; and for each collective call what its thread did since the one before (trace::Interval). Two readings of the
// clock and some ten stores a call, none for most polls in quick succession (QuickPolls); no lock, no system call.
// What polls the rank mostly looks at this thread's memory alone: where ranks share cores, each poll gives its core to
// another process, after which every page that it touches costs a walk through the page tables.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "profiler/record/call_sites.hpp"
#include "profiler/record/format.hpp"
#include "profiler/record/quick_polls.hpp"
#include "profiler/record/recorder.hpp"

namespace papaya {

// Of one thread, since its last collective call.
struct ThreadTimes {
  std::uint64_t left_ticks = 0;  // when it last left MPI; 0: not known
  std::uint64_t mpi_ticks = 0;   // in timed calls
  std::uint64_t longest_ticks = 0;
  std::uint32_t longest_site = 0;  // of the call that ended the longest time outside MPI
  std::uint32_t calls = 0;
  std::uint32_t waits = 0;         // rows in use of
  std::uint64_t polled = 0;        // what it has asked for again and again without success, 0: nothing,
  std::uint64_t polled_ticks = 0;  // so long, inside the calls
};

// What it has waited for one rank in messages, since then.
struct MessageWait {
  std::int32_t rank;  // in MPI_COMM_WORLD
  std::uint64_t ticks;
};

// Its polls, and a copy of what they need.
class MpiTimes;
struct ThreadPolls {
  std::uint32_t unchecked = 0;  // until MpiTimes::start_polls() is to be called
  bool may_be_unchecked = false;
  bool reads_counter = false;
  std::uint64_t quick_ticks = 0;
  MpiTimes* times = nullptr;
  QuickPolls quick;
};

// All that is kept of a thread, in one variable: what a poll touches is few cache lines, found by one entry of the
// library's tables.
struct alignas(64) OfThread {
  static constexpr std::uint32_t most_waits = 4;
  const void* frame = nullptr;  // of the call that has not returned
  ThreadTimes times;
  ThreadPolls polls;
  const void* site = nullptr;  // where the program made that call
  bool is_left_out = false;    // it does not count
  MessageWait waits[most_waits]{};
};

class MpiTimes {
 public:
  void open(Recorder& recorder, CallSites& call_sites) noexcept {
    recorder_ = &recorder;
    call_sites_ = &call_sites;
    if (gettid() == getpid()) {
      main_thread_ = &here_.polls;
      here_.polls.may_be_unchecked = true;
    }
    noticeable_ticks_ = static_cast<std::uint64_t>(noticeable_ns / recorder.header().ns_per_tick);
    long_ticks_ = static_cast<std::uint64_t>(long_ns / recorder.header().ns_per_tick);
    quick_ticks_ = static_cast<std::uint64_t>(quick_ns / recorder.header().ns_per_tick);
  }

  // One call of the function of this number, from here to the end of the scope. `site` is the return address, and
  // `frame` the stack frame, of the function that the program called.
  class Call {
   public:
    Call(MpiTimes& times, std::size_t function, const void* site, const void* frame) noexcept
        : times_(times), function_(function), begin_ticks_(clock::ticks()) {
      here_.frame = frame;
      here_.site = site;
      times.enter(begin_ticks_, site);
    }
    ~Call() {
      if (!has_ended_) end();
    }
    // Before its scope does. Returns the ticks inside.
    std::uint64_t end() noexcept {
      has_ended_ = true;
      here_.frame = nullptr;
      if (here_.is_left_out) {
        here_.is_left_out = false;
        return 0;
      }
      const std::uint64_t end_ticks = clock::ticks();
      const std::uint64_t inside = end_ticks - begin_ticks_;
      times_.leave_call(function_, inside, end_ticks);
      ++here_.times.calls;
      return inside;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // The one that this thread is inside, if any, is recorded as a collective call and does not count. Where the
    // program made it; `site` if there is none.
    static const void* leave_out(const void* site) noexcept {
      here_.is_left_out = here_.frame != nullptr;
      return here_.is_left_out ? here_.site : site;
    }

    // Whether MPI makes this call from inside another one of this thread. What an error handler has left for good was
    // deeper on the stack than the next call.
    static bool is_nested(const void* frame) noexcept { return here_.frame != nullptr && frame < here_.frame; }

   private:
    MpiTimes& times_;
    const std::size_t function_;
    const std::uint64_t begin_ticks_;
    bool has_ended_ = false;
  };

  // Whether a Poll may be made in this thread without start_polls(): nothing was recorded in it since then but polls.
  static bool may_poll() noexcept { return here_.polls.unchecked != 0 && here_.frame == nullptr; }
  // Before a Poll, otherwise: the caller has found that it is to be recorded. `without_check`: in the process's main
  // thread, if it has called open(), the next ones need not ask. Their numbers come to the record later, with its next
  // call of another kind or stop(); those of other threads, of whose end nobody tells, with each.
  void start_polls(bool without_check) noexcept {
    write_polls(here_.polls);
    here_.polls.times = this;
    here_.polls.quick_ticks = quick_ticks_;
    here_.polls.reads_counter = clock::is_counter();
    here_.polls.unchecked = without_check && here_.polls.may_be_unchecked ? most_unchecked : 1;
  }
  // This thread's next poll is to ask again.
  static void stop_polls() noexcept { here_.polls.unchecked = 0; }
  // No call is made any more, and no thread is inside one. From any thread: the main one's memory outlives it.
  void stop() noexcept {
    if (main_thread_ == nullptr) return;
    main_thread_->unchecked = 0;
    write_polls(*main_thread_);
  }

  // The same of a function that polls, the number `poll` of those: timed or not, as QuickPolls decides.
  class Poll {
   public:
    Poll(std::size_t function, std::size_t poll, const void* site, const void* frame) noexcept
        : function_(function), poll_(poll), is_timed_(!here_.polls.quick.may_skip(poll)) {
      here_.frame = frame;
      --here_.polls.unchecked;
      if (is_timed_) {
        begin_ticks_ = now();
        settled_ticks_ = enter_poll(begin_ticks_, site);
      } else {
        here_.polls.quick.skip(poll, function);
      }
    }
    ~Poll() {
      if (!has_ended_) end_found();
      // Of a thread that may end now nobody would take it.
      if (!here_.polls.may_be_unchecked) here_.polls.times->write_polls(here_.polls);
    }
    Poll(const Poll&) = delete;
    Poll& operator=(const Poll&) = delete;
    // It has found nothing. Returns the ticks inside it, and inside those of its function before that were not timed.
    std::uint64_t end() noexcept {
      leave();
      if (!is_timed_) return 0;
      const std::uint64_t end_ticks = now();
      const std::uint64_t inside = end_ticks - begin_ticks_;
      here_.polls.quick.timed(poll_, function_, inside, here_.polls.quick_ticks);
      left(inside, end_ticks);
      return inside + settled_ticks_;
    }
    // It has found something, or there was an error.
    std::uint64_t end_found() noexcept {
      if (is_timed_) return end();
      leave();
      const std::uint64_t end_ticks = now();
      const std::uint64_t inside =
          here_.polls.quick.found(poll_, end_ticks - here_.times.left_ticks, here_.polls.quick_ticks);
      const std::uint64_t settled = enter_poll(end_ticks - inside, nullptr);
      left(inside, end_ticks);
      return inside + settled;
    }

   private:
    static std::uint64_t now() noexcept { return here_.polls.reads_counter ? clock::counter() : clock::ticks(); }
    // Returns the ticks inside polls of its function that were not timed.
    std::uint64_t enter_poll(std::uint64_t begin_ticks, const void* site) const noexcept {
      if (here_.times.left_ticks == 0) return 0;
      const std::uint64_t elapsed = begin_ticks - here_.times.left_ticks;
      const QuickPolls::Settled settled = here_.polls.quick.settle(elapsed, here_.polls.quick_ticks, poll_);
      here_.times.mpi_ticks += settled.inside;
      if (const std::uint64_t outside = elapsed - settled.inside; outside > here_.times.longest_ticks)
        here_.polls.times->keep_longest(outside, site);
      return settled.of_poll;
    }
    static void left(std::uint64_t inside, std::uint64_t end_ticks) noexcept {
      here_.times.mpi_ticks += inside;
      here_.times.left_ticks = end_ticks;
    }
    void leave() noexcept {
      here_.frame = nullptr;
      ++here_.times.calls;
      has_ended_ = true;
    }

    const std::size_t function_;
    const std::size_t poll_;
    const bool is_timed_;
    bool has_ended_ = false;
    std::uint64_t begin_ticks_ = 0;
    std::uint64_t settled_ticks_ = 0;
  };

  // A wait worth knowing for whom.
  bool is_long(std::uint64_t ticks) const noexcept { return ticks >= long_ticks_; }
  // The last call has waited for that rank; negative: not known. Of the ranks that were waited for since the last
  // collective call the four longest are kept.
  static void wait_for(std::int32_t rank, std::uint64_t ticks) noexcept {
    if (rank < 0) return;
    MessageWait* const end = here_.waits + here_.times.waits;
    MessageWait* row = std::find_if(here_.waits, end, [rank](const MessageWait& wait) { return wait.rank == rank; });
    if (row == end && here_.times.waits < OfThread::most_waits) {
      ++here_.times.waits;
      *row = {rank, 0};
    } else if (row == end) {
      row = std::min_element(here_.waits, end, is_shorter);
      if (row->ticks >= ticks) return;
      *row = {rank, 0};
    }
    row->ticks += ticks;
  }
  // A call has asked for what is told apart from other things by `key`, without success.
  static void poll(std::uint64_t key, std::uint64_t ticks) noexcept {
    if (here_.times.polled != key) here_.times.polled_ticks = 0;
    here_.times.polled = key;
    here_.times.polled_ticks += ticks;
  }
  // It is there. Returns the ticks inside the calls that asked for it before, and for nothing else in between.
  static std::uint64_t end_polling(std::uint64_t key) noexcept {
    const std::uint64_t ticks = here_.times.polled == key ? here_.times.polled_ticks : 0;
    here_.times.polled = 0;
    here_.times.polled_ticks = 0;
    return ticks;
  }

  // This thread's collective call of this event arrives: what it did before is written down, and counted anew.
  void arrive(std::uint64_t event, std::uint64_t arrival_ticks) noexcept {
    stop_polls();
    if (here_.times.calls == 0) return;
    const std::uint64_t outside = settle(arrival_ticks);
    recorder_->put_interval(event, {.mpi_ticks = here_.times.mpi_ticks,
                                    .longest_ticks = std::max(outside, here_.times.longest_ticks),
                                    .longest_site = outside > here_.times.longest_ticks ? 0 : here_.times.longest_site,
                                    .calls = here_.times.calls,
                                    .commit = 0,
                                    .waited_for = longest_wait()});
  }
  // This thread has switched recording on again: what was before is no more known to be computing than time in a call.
  void leave_out(std::uint64_t off_ticks, std::uint64_t now_ticks) noexcept {
    settle(now_ticks - off_ticks);
    here_.times.mpi_ticks += off_ticks;
    here_.times.left_ticks = now_ticks;
    ++here_.times.calls;
  }
  static void leave(std::uint64_t exit_ticks) noexcept { here_.times = {.left_ticks = exit_ticks}; }

 private:
  static constexpr double long_ns = 2e3;
  static constexpr double quick_ns = 1e3;  // what QuickPolls calls quick
  static constexpr std::uint32_t most_unchecked = 64;

  // The clock is read: what was not timed is added. Returns the ticks outside MPI since this thread left it last.
  std::uint64_t settle(std::uint64_t now_ticks) noexcept {
    std::uint64_t outside = 0;
    if (here_.times.left_ticks != 0) {
      const std::uint64_t elapsed = now_ticks - here_.times.left_ticks;
      const std::uint64_t inside = here_.polls.quick.settle(elapsed, quick_ticks_).inside;
      here_.times.mpi_ticks += inside;
      outside = elapsed - inside;
    }
    write_polls(here_.polls);
    return outside;
  }
  void write_polls(ThreadPolls& polls) noexcept {
    polls.quick.take([this](std::size_t function, std::uint64_t ticks, std::uint64_t calls) {
      recorder_->add_timed(function, ticks, calls);
    });
  }
  // A call begins that is no poll.
  void enter(std::uint64_t begin_ticks, const void* site) noexcept {
    stop_polls();
    if (const std::uint64_t outside = settle(begin_ticks); outside > here_.times.longest_ticks)
      keep_longest(outside, site);
  }
  void keep_longest(std::uint64_t outside, const void* site) noexcept {
    here_.times.longest_ticks = outside;
    here_.times.longest_site =
        outside < noticeable_ticks_ || site == nullptr ? 0 : static_cast<std::uint32_t>(call_sites_->number_of(site));
  }
  void leave_call(std::size_t function, std::uint64_t inside, std::uint64_t end_ticks) noexcept {
    recorder_->add_timed(function, inside);
    here_.times.mpi_ticks += inside;
    here_.times.left_ticks = end_ticks;
  }

  static bool is_shorter(const MessageWait& a, const MessageWait& b) noexcept { return a.ticks < b.ticks; }
  // As trace::Interval has it.
  static std::uint32_t longest_wait() noexcept {
    if (here_.times.waits == 0) return 0;
    const MessageWait& most = *std::max_element(here_.waits, here_.waits + here_.times.waits, is_shorter);
    return trace::waited_for(most.rank, most.ticks, here_.times.mpi_ticks);
  }

  static constexpr double noticeable_ns = 20e3;  // shorter times outside MPI are not worth a look at the stack

  static inline thread_local constinit OfThread here_{};

  Recorder* recorder_ = nullptr;
  CallSites* call_sites_ = nullptr;
  ThreadPolls* main_thread_ = nullptr;  // if it has called open()
  std::uint64_t noticeable_ticks_ = 0;
  std::uint64_t long_ticks_ = 0;
  std::uint64_t quick_ticks_ = 0;
};

}  // namespace papaya
