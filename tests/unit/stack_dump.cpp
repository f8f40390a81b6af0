// The call stacks of a process's threads, as its record has them and as they are told.
#include "profiler/record/stack_dump.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "profiler/read/read_stacks.hpp"
#include "profiler/record/blocked_stack.hpp"
#include "profiler/record/stack_request.hpp"
#include "profiler/record/stack_requests.hpp"
#include "profiler/report/stacks.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

std::atomic<bool> over{false};

__attribute__((noinline)) void compute() {
  while (!over) {
  }
}

struct Process {
  Process() {
    std::string error;
    REQUIRE(recorder.open(path, 1024, {}, error));
    recorder.header().process = getpid();
    call_sites.open(recorder, 1, nullptr);
    REQUIRE(dump.start(recorder, call_sites));
    while (!report::read_stacks(path).answers) std::this_thread::yield();
  }
  ~Process() { dump.stop(); }
  report::RankStacks ask() const {
    const StackRequest request(path);
    REQUIRE(request.is_sent());
    while (!request.is_answered()) std::this_thread::yield();
    return report::read_stacks(path);
  }

  const support::Folder folder;
  const std::string path = folder.path() + "/rank-00000.pap";
  Recorder recorder;
  CallSites call_sites;
  StackDump dump;
};

// Near the beginning of the function.
bool has_function(const report::Stack& stack, std::uintptr_t begin) {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&compute), &here);
  return std::any_of(stack.frames.begin(), stack.frames.end(), [&](const report::NamedFrame& frame) {
    const std::uintptr_t address = frame.offset + reinterpret_cast<std::uintptr_t>(here.dli_fbase);
    return address > begin && address < begin + 128;
  });
}

bool has_compute(const report::Stack& stack) {
  return has_function(stack, reinterpret_cast<std::uintptr_t>(&compute));
}

TEST_CASE("stack_dump: a thread that has had a call recorded, where it computes now, and the first") {
  Process process;
  over = false;
  std::atomic<bool> is_there{false};
  std::thread thread([&] {
    process.recorder.begin({1, 1, 0, 8, -1, Collective::allreduce, Form::blocking}, 0);
    is_there = true;
    compute();
  });
  while (!is_there) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const report::RankStacks stacks = process.ask();
  over = true;
  thread.join();
  REQUIRE(stacks.threads.size() >= 2);
  CHECK(stacks.threads[0].is_first);
  CHECK(stacks.threads[0].state == trace::StackState::taken);
  CHECK_FALSE(has_compute(stacks.threads[0]));
  CHECK(std::any_of(stacks.threads.begin() + 1, stacks.threads.end(), has_compute));
}

// A function that sleeps for so long that somebody asks meanwhile; 0: nobody has woken it.
using Sleeps = int (*)();
__attribute__((noinline)) int sleep_by_clock() {
  const timespec long_enough{0, 300'000'000};
  return nanosleep(&long_enough, nullptr);
}
__attribute__((noinline)) int sleep_by_poll() {
  return poll(nullptr, 0, 300);
}

TEST_CASE("stack_dump: a thread that sleeps, and is not woken", "[kernel]") {
  Process process;
  for (const Sleeps sleeps : {Sleeps(sleep_by_clock), Sleeps(sleep_by_poll)}) {
    report::RankStacks stacks;
    std::thread asks([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      stacks = process.ask();
    });
    CHECK(sleeps() == 0);
    asks.join();
    // By libdw; without it, where in the C library.
    const bool unwinds = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
    CHECK(stacks.threads[0].state == (unwinds ? trace::StackState::taken : trace::StackState::blocked));
#ifndef __SANITIZE_ADDRESS__  // its wrappers' frames are found by registers that nobody saves
    CHECK(has_function(stacks.threads[0], reinterpret_cast<std::uintptr_t>(sleeps)) == unwinds);
#endif
  }
}

TEST_CASE("blocked_stack: what a thread that has woken meanwhile has had is not believed", "[kernel]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::atomic<std::int32_t> number{0};
  std::atomic<int> rounds{0};
  std::thread thread([&] {
    number = gettid();
    for (char byte = 0; byte != 'e'; ++rounds) {
      pollfd one{ends[0], POLLIN, 0};
      ppoll(&one, 1, nullptr, nullptr);
      if (read(ends[0], &byte, 1) != 1) break;
    }
  });
  const auto wake = [&](char byte) { return write(ends[1], &byte, 1) == 1; };
  const auto sleep_of_it = [&] {
    std::optional<Sleep> sleep;
    while (number == 0 || !(sleep = sleep_of(number)) || sleep->system_call != SYS_ppoll) std::this_thread::yield();
    return *sleep;
  };
  const Sleep sleep = sleep_of_it();
  bool is_called = false;
  const auto places = blocked_stack(number, sleep, [&] { is_called = true; });
  CHECK(is_called);
  REQUIRE(places);
  CHECK(places->empty() == (dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr));
  CHECK_FALSE(blocked_stack(number, sleep, [&] {
    CHECK(wake('w'));
    while (rounds == 0 || sleep_of_it() != sleep) std::this_thread::yield();
  }));
  is_called = false;
  CHECK_FALSE(blocked_stack(number, {sleep.system_call, sleep.stack + 8, sleep.address}, [&] { is_called = true; }));
  CHECK_FALSE(is_called);
  CHECK(wake('e'));
  thread.join();
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("stack_dump: no thread that takes no signals") {
  Process process;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  CHECK(process.ask().threads[0].state == trace::StackState::masked);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("stack_dump: no handler stays, and those of the program are left alone") {
  Process process;
  struct sigaction action {};
  struct sigaction old[65] = {};
  process.ask();
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) {
    sigaction(number, nullptr, &old[number]);
    CHECK(old[number].sa_handler == SIG_DFL);
  }
  action.sa_handler = [](int) { over = true; };
  over = false;
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigaction(number, &action, nullptr);
  CHECK(process.ask().threads[0].state == trace::StackState::no_signal);
  CHECK_FALSE(over);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigaction(number, &old[number], nullptr);
}

TEST_CASE("stack_dump: who does not answer any more is not asked") {
  Process process;
  process.dump.stop();
  CHECK_FALSE(StackRequest(process.path).is_sent());
}

report::AskedRank rank_at(std::int32_t rank, std::vector<std::string> functions) {
  report::AskedRank asked;
  asked.stacks.rank = rank;
  asked.stacks.process = 100 + rank;
  asked.is_sent = true;
  asked.has_answered = true;
  report::Stack& stack = asked.stacks.threads.emplace_back();
  stack.is_first = true;
  for (std::string& function : functions) {
    report::NamedFrame& frame = stack.frames.emplace_back();
    frame.module = function.find("MPI_") != function.npos ? "/usr/lib/libmpi.so" : "/app";
    frame.function = std::move(function);
  }
  return asked;
}

report::StackGroups groups_of(const std::vector<report::AskedRank>& ranks) {
  report::StackGroups groups;
  for (const report::AskedRank& rank : ranks) groups.add(rank, [](report::NamedFrame&) {});
  return groups;
}

TEST_CASE("stacks: alike ones together, whatever MPI does inside, the rarest first") {
  std::vector<report::AskedRank> ranks;
  ranks.push_back(rank_at(0, {"opal_progress", "PMPI_Recv", "solve", "main", "_start"}));
  ranks.push_back(rank_at(1, {"poll", "opal_progress", "PMPI_Recv", "solve", "main", "_start"}));
  ranks.push_back(rank_at(2, {"forces", "step", "solve", "main", "_start"}));
  ranks.push_back({});
  ranks.back().stacks.rank = 3;
  ranks.back().is_stopped = true;
  const report::StackGroups groups = groups_of(ranks);
  CHECK(groups.whole() ==
        "Call stacks of the ranks, innermost function first, alike ones together:\n"
        "  rank 2:\n    forces (app)\n    step (app)\n    solve (app)\n    main (app)\n"
        "  rank 3: its process is stopped: no stack.\n"
        "  ranks 0-1:\n    MPI_Recv\n    solve (app)\n    main (app)\n");
  CHECK(groups.brief() ==
        "Where the ranks are:\n"
        "  rank 2: forces (app) < step (app) < solve (app) < ...\n"
        "  rank 3: its process is stopped: no stack.\n"
        "  ranks 0-1: MPI_Recv < solve (app) < main (app)\n");
}

TEST_CASE("stacks: of the C library its function that was called") {
  report::AskedRank rank = rank_at(0, {"clock_nanosleep", "nanosleep", "sleep", "wait", "main"});
  for (std::size_t frame = 0; frame < 3; ++frame) rank.stacks.threads[0].frames[frame].module = "/lib/libc.so.6";
  CHECK(groups_of({rank}).brief() == "Where the ranks are:\n  rank 0: sleep (libc.so.6) < wait (app) < main (app)\n");
}

TEST_CASE("stacks: over nodes, and of which where not all are known") {
  std::vector<report::AskedRank> ranks;
  for (const int rank : {0, 1, 2, 3}) {
    ranks.push_back(rank_at(rank, {"energy", "main"}));
    ranks.back().stacks.node = rank / 2;
    ranks.back().stacks.nodes = 2;
    ranks.back().stacks.host = "alpha";
  }
  CHECK(groups_of(ranks).brief() == "Where the ranks are:\n  ranks 0-3: energy (app) < main (app)\n");
  ranks.resize(2);
  CHECK(groups_of(ranks).brief() ==
        "Where the ranks of node 0 of 2 (alpha) are:\n  ranks 0-1: energy (app) < main (app)\n");
}

TEST_CASE("stack_requests: ranks of other nodes are asked by a file, once for each wish, and it is taken away") {
  Process process;
  const int folder = open(process.folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  StackWishes wishes;
  CHECK_FALSE(wishes.is_new(folder));
  for (int wish = 0; wish < 2; ++wish) {
    StackRequests requests(process.folder.path());
    REQUIRE(requests.add_far(process.path));
    CHECK_FALSE(requests.add_far(process.folder.path() + "/rank-00001.pap"));
    requests.send();
    CHECK(requests.is_sent(0));
    CHECK_FALSE(requests.are_over(std::chrono::milliseconds(0)));
    REQUIRE(wishes.is_new(folder));
    CHECK_FALSE(wishes.is_new(folder));
    process.ask();
    CHECK_FALSE(requests.are_over(std::chrono::seconds(1)));  // its node may write out more records
    CHECK(requests.are_over(std::chrono::seconds(2)));
    CHECK(requests.is_answered(0));
  }
  CHECK_FALSE(wishes.is_new(folder));
  CHECK_FALSE(wishes.is_new(folder));
  close(folder);
  CHECK(report::read_stacks(process.path).taken_unix_ns != 0);
  process.dump.stop();
  StackRequests requests(process.folder.path());
  requests.add_far(process.path);
  requests.send();
  CHECK_FALSE(requests.is_sent(0));  // it gives none; its node writes out the record
  CHECK_FALSE(requests.are_over(std::chrono::seconds(1)));
  CHECK(requests.are_over(std::chrono::seconds(2)));
}

TEST_CASE("stack_requests: a rank that is there has more time to answer than one that is stopped") {
  Process process;
  process.dump.stop();
  const int file = open(process.path.c_str(), O_WRONLY | O_CLOEXEC);
  const std::uint32_t answers = 1;
  REQUIRE(pwrite(file, &answers, sizeof answers,
                 static_cast<off_t>(process.recorder.header().stacks_offset + offsetof(trace::Stacks, answers))) ==
          sizeof answers);
  close(file);
  const auto are_over = [&](std::chrono::seconds waited) {
    StackRequests requests(process.folder.path());
    requests.add_near(process.path);
    requests.send();
    CHECK(requests.is_sent(0));
    return requests.are_over(waited);
  };
  CHECK_FALSE(are_over(std::chrono::seconds(9)));
  CHECK(are_over(std::chrono::seconds(10)));

  // Which maps the record, too.
  const pid_t stopped = fork();
  if (stopped == 0)
    for (;;) pause();
  REQUIRE(stopped > 0);
  process.recorder.header().process = stopped;
  kill(stopped, SIGSTOP);
  int status = 0;
  waitpid(stopped, &status, WUNTRACED);
  CHECK_FALSE(are_over(std::chrono::seconds(1)));
  CHECK(are_over(std::chrono::seconds(2)));
  kill(stopped, SIGKILL);
  waitpid(stopped, &status, 0);
  CHECK(are_over(std::chrono::seconds(2)));
}

TEST_CASE("stack_requests: of two who ask each takes away its own file") {
  Process process;
  const auto ask = [&](StackRequests& requests) {
    REQUIRE(requests.add_far(process.path));
    requests.send();
    CHECK(requests.is_sent(0));
  };
  std::optional<StackRequests> first(process.folder.path());
  ask(*first);
  std::optional<StackRequests> second(process.folder.path());
  ask(*second);
  first.reset();
  CHECK(process.folder.has("stacks-wanted"));
  second.reset();
  CHECK_FALSE(process.folder.has("stacks-wanted"));
}

TEST_CASE("read_stacks: a damaged header tells no time") {
  Process process;
  trace::Header& header = process.recorder.header();
  header.begin_unix_ns = 1'000'000'000;
  header.stacks_ticks = header.begin_ticks + 500;
  header.ns_per_tick = 2;
  const auto taken = [&] { return report::read_stacks(process.path).taken_unix_ns; };
  CHECK(taken() == 1'000'001'000);
  for (const double damaged : {std::nan(""), HUGE_VAL, -HUGE_VAL, -2.0, 1e300}) {
    header.ns_per_tick = damaged;
    CHECK(taken() == 0);
  }
  header.ns_per_tick = 2;
  header.begin_unix_ns = INT64_MAX;
  CHECK(taken() == 0);
  header.begin_unix_ns = INT64_MIN;
  CHECK(taken() == 0);
}

}  // namespace
}  // namespace papaya
