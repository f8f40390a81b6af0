#include "interpose/watch.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <new>

#include "base/clock.hpp"
#include "base/folder_mode.hpp"
#include "base/log.hpp"
#include "interpose/output.hpp"
#include "profiler/record/mapped_file.hpp"
#include "profiler/record/stack_requests.hpp"

namespace papaya {

namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 1s;
constexpr auto first_node_speaks_within = 2s;
constexpr auto between_looks_at_stacks = 20ms;
constexpr std::size_t stack_bytes = 1 << 20;

// ---- SIGUSR1

// Null from MPI_Finalize on: the record, which holds the counter, is about to be unmapped.
std::atomic<std::uint64_t*> asked_counter{nullptr};
std::atomic<int> counting{0};      // handlers, on whatever thread, that may have read the pointer
struct sigaction before_claim {};  // written before the handler is there
bool was_claimed_before_mpi = false;

void on_signal(int number, siginfo_t* information, void* context) {
  // Sequentially consistent, partner of stop_counting(): it sees this handler, or this handler its null.
  counting.fetch_add(1);
  if (std::uint64_t* const asked = asked_counter.load(); asked != nullptr)
    __atomic_fetch_add(asked, 1, __ATOMIC_RELAXED);  // LiveRecord::asked() looks at it
  counting.fetch_sub(1);
  if ((before_claim.sa_flags & SA_SIGINFO) != 0)
    before_claim.sa_sigaction(number, information, context);
  else if (before_claim.sa_handler != SIG_DFL && before_claim.sa_handler != SIG_IGN)
    before_claim.sa_handler(number);
}

// MPICH takes the signal for news of failed processes. It gets it still.
// (PMPI_Init, or any other that papaya intercepts, would be that of libpapaya.so.)
bool is_of_mpi(const struct sigaction& action) noexcept {
  const void* const handler = (action.sa_flags & SA_SIGINFO) != 0 ? reinterpret_cast<const void*>(action.sa_sigaction)
                                                                  : reinterpret_cast<const void*>(action.sa_handler);
  Dl_info of_handler{};
  Dl_info of_mpi{};
  return dladdr(handler, &of_handler) != 0 &&
         dladdr(reinterpret_cast<const void*>(&PMPI_Get_library_version), &of_mpi) != 0 &&
         of_handler.dli_fbase == of_mpi.dli_fbase;
}

bool is_unclaimed(const struct sigaction& action) noexcept {
  if ((action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL) return true;
  return ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_IGN) && is_of_mpi(action);
}

// Whole, in a few writes: it is longer than a line.
void write_all(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// What the process that has the record mapped has put there, too.
void write_out(const std::string& record) noexcept {
  const int file = open(record.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

}  // namespace

void Watch::note_signal() noexcept {
  struct sigaction now {};
  was_claimed_before_mpi =
      sigaction(SIGUSR1, nullptr, &now) == 0 && ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL);
}

void Watch::claim_signal(std::uint64_t& asked) noexcept {
  struct sigaction now {};
  if (was_claimed_before_mpi || sigaction(SIGUSR1, nullptr, &now) != 0 || !is_unclaimed(now)) return;
  asked_counter.store(&asked, std::memory_order_relaxed);
  before_claim = now;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

void Watch::stop_counting() noexcept {
  asked_counter.store(nullptr);
  while (counting.load() != 0) sched_yield();
}

void Watch::give_signal_back() noexcept {
  struct sigaction now {};
  if (sigaction(SIGUSR1, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_signal)
    sigaction(SIGUSR1, &before_claim, nullptr);
  asked_counter.store(nullptr, std::memory_order_relaxed);
}

// ---- the thread

void Watch::start(const std::string& folder, const std::vector<int>& ranks, int all_ranks, double stall_s,
                  bool is_first_node) noexcept try {
  // A descriptor of its own: the folder may get another name.
  descriptor_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0 || !identity_.note(descriptor_)) return;
  folder_ = fmt::format("/proc/self/fd/{}", descriptor_);
  for (const int rank : ranks) ranks_.push_back({rank, output::rank_file(folder_, rank), {}, false, 0});
  all_ranks_ = all_ranks;
  stall_s_ = stall_s;
  is_first_node_ = is_first_node;
  // Signals are the program's: none is delivered to this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);  // of the record's own pages (failed_pages.hpp)
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  running_ = pthread_create(
                 &thread_, &attributes,
                 [](void* self) -> void* {
                   static_cast<Watch*>(self)->run();
                   return nullptr;
                 },
                 this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (!running_) log::info("no thread can be started, so stalls are not reported.");
} catch (const std::bad_alloc&) {
}

void Watch::stop() noexcept {
  if (running_) {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    ending_.notify_one();
    pthread_join(thread_, nullptr);
    running_ = false;
  }
  ranks_.clear();
  if (identity_.is_of(descriptor_)) close(descriptor_);
  descriptor_ = -1;
}

// False if the thread is to end.
bool Watch::sleep(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !ending_.wait_for(lock, time, [this] { return ends_; });
}

void Watch::run() noexcept try {
  pthread_setname_np(pthread_self(), "papaya-watch");
  const double stall_looks_s = std::max(1.0, stall_s_ / 8);
  double since_look_s = 0;
  while (sleep(between_looks)) {
    if (!identity_.is_of(descriptor_)) return;
    if (wishes_.is_new(descriptor_)) {
      for (const Rank& rank : ranks_) write_out(rank.path);
      for (const Rank& rank : ranks_) const StackRequest request(rank.path);
    }
    if (is_asked()) {
      // Those asked by the same signal, if it went to all.
      if (!sleep(is_first_node_ ? 300ms : first_node_speaks_within)) return;
      is_asked();
      report(clock::unix_ns(), true);
    }
    since_look_s += std::chrono::duration<double>(between_looks).count();
    if (stall_s_ <= 0 || since_look_s < stall_looks_s) continue;
    since_look_s = 0;
    look_for_stalls();
  }
} catch (...) {  // out of memory: the job goes on without
}

bool Watch::is_asked() {
  bool asked = false;
  for (Rank& rank : ranks_) {
    if (!rank.is_open) rank.is_open = rank.record.open(rank.path);
    if (!rank.is_open) continue;
    const std::uint64_t now = rank.record.asked();
    asked = asked || now != rank.asked;
    rank.asked = now;
  }
  return asked;
}

void Watch::look_for_stalls() {
  const std::uint64_t now = clock::ticks();
  const auto latest = [&](const LiveRecord& record) {  // arrival of a call that is stalled now
    const auto ticks = static_cast<std::uint64_t>(stall_s_ * 1e9 / record.ns_per_tick());
    return now - std::min(ticks, now);
  };
  std::int64_t now_unix_ns = 0;
  for (Rank& rank : ranks_) {
    const std::uint64_t since = rank.is_open ? rank.record.look() : 0;
    if (since != 0 && since <= latest(rank.record)) now_unix_ns = rank.record.unix_ns(now);
  }
  // What was not reported has gone on meanwhile, or is not yet to be seen in the records: the next look has it.
  if (now_unix_ns == 0 || !report(now_unix_ns, false)) return;
  for (Rank& rank : ranks_)
    if (rank.is_open) rank.record.pass_over(latest(rank.record));
}

// Whether nobody else has: the nodes share the folder, or each has its own and speaks for itself.
bool Watch::may_speak(const std::string& file) {
  const int made = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (made < 0) return false;
  set_mode_by_folder(made, file, 0644);
  close(made);
  return true;
}

// Of the node's ranks, by then, and of those of other nodes whose records are here.
// `all_answer`: those of other nodes have written out their records, too.
reports::Stacks Watch::stacks(bool& all_answer) {
  StackRequests requests(folder_);
  std::vector<reports::AskedRank> asked;
  for (const Rank& rank : ranks_) {
    requests.add_near(rank.path);
    asked.push_back({rank.path, rank.rank, false, false});
  }
  const auto is_ours = [&](int number) {
    return std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& rank) { return rank.rank == number; });
  };
  for (int rank = 0; rank < all_ranks_; ++rank)
    if (std::string record = output::rank_file(folder_, rank); !is_ours(rank) && requests.add_far(record))
      asked.push_back({std::move(record), rank, false, false});
  requests.send();
  for (auto waited = 0ms; !requests.are_over(waited); waited += between_looks_at_stacks)
    if (!sleep(between_looks_at_stacks)) break;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i].is_sent = requests.is_sent(i);
    asked[i].has_answered = requests.is_answered(i);
    if (i >= ranks_.size()) all_answer = all_answer && asked[i].has_answered;
  }
  return reports::find_stacks(asked);
}

bool Watch::report(std::int64_t now_unix_ns, bool asked) {
  const reports::Stall stall = reports::find_stall(folder_, now_unix_ns, asked ? 0 : stall_s_);
  const auto stalled = [this](const reports::Stall& found) {
    return fmt::format("no progress for {:.0f} s in {}.", stall_s_, found.headline);
  };
  std::string text = stall.text;
  std::string file;
  std::string heading;
  if (asked) {
    // One for all nodes that were asked together.
    file = folder_ + "/asked.txt";
    struct stat status {};
    if (!is_first_node_ && lstat(file.c_str(), &status) == 0 &&
        now_unix_ns / 1'000'000'000 - status.st_mtime <= 2 * first_node_speaks_within / 1s)
      return true;
    heading = "asked by SIGUSR1 what the ranks wait for:";
    if (text.empty()) text = "No rank is inside a collective.\n";
  } else {
    if (text.empty()) return false;
    file = folder_ + "/" + stall.file_name;
    if (!may_speak(file)) return true;
    heading = stalled(stall);
  }
  bool all_answer = true;
  const reports::Stacks stacks = this->stacks(all_answer);
  if (static_cast<int>(ranks_.size()) < all_ranks_) {
    // By now those of other nodes are written out, where somebody there answers.
    if (reports::Stall now = reports::find_stall(folder_, now_unix_ns, asked ? 0 : stall_s_); !now.text.empty()) {
      text = std::move(now.text);
      if (!asked) heading = stalled(now);
    }
    if (!all_answer && is_on_network(descriptor_))
      text += "  Of ranks that have not answered, what is known may be half a minute old.\n";
  }
  char name[4096];
  const ssize_t length = readlink(folder_.c_str(), name, sizeof name);
  const std::string folder(name, length > 0 ? static_cast<std::size_t>(length) : 0);
  // Where others may write, they may have put a link to one of the user's files here.
  const int out = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (out >= 0) {
    set_mode_by_folder(out, file, 0644);
    write_all(out, text + stacks.whole);
    close(out);
  }
  if (log::level() < log::Level::warn) return true;
  write_all(
      STDERR_FILENO,
      fmt::format("papaya: {}\n{}{}  {}`papaya report {}` tells more as long as this lasts. The job goes on.\n",
                  heading, text, stacks.brief,
                  out >= 0 ? fmt::format("This is also in {}{}; ", folder, file.substr(folder_.size())) : "", folder));
  return true;
}

}  // namespace papaya
