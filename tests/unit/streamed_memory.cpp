// What is held of a run while it is read.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "profiler/analysis/event_stream.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using support::Record;

constexpr int calls = 200'000;
constexpr long most_kib = 24 << 10;  // the events of both ranks are 24 MiB, and twice as much with what is made of them

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// By how much it raises the peak of a process of its own; negative: it failed.
template <class Body>
long raised_kib(Body&& body) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return -1;
  malloc_trim(0);  // what other tests have freed would be taken again unseen
  const pid_t child = fork();
  if (child == 0) {
    const long before = peak_kib();
    const bool good = body();
    const long raised = good ? peak_kib() - before : -1;
    _exit(write(pipe_ends[1], &raised, sizeof raised) == sizeof raised ? 0 : 1);
  }
  long raised = -1;
  close(pipe_ends[1]);
  if (read(pipe_ends[0], &raised, sizeof raised) != sizeof raised) raised = -1;
  close(pipe_ends[0]);
  waitpid(child, nullptr, 0);
  return raised;
}

TEST_CASE("a trace is reported and given event by event in bounded memory") {
  const support::Folder folder;
  {
    std::vector<Record> all = support::records(2);
    for (Record& one : all) {
      one.capacity = 4096;
      for (int call = 0; call < calls; ++call)
        one.add_call(Collective::allreduce, call, 1000.0 * call + 5 * one.header.rank, 1000.0 * call + 500);
      one.finalize(1000.0 * calls + 1000);
      folder.write(Record::file_name(one.header.rank) + "z", one.spilled(calls - 2048, 2048));
    }
    folder.write(all);
  }
  const auto load = [&](report::Extent extent) { return report::load_run(folder.path(), {}, extent); };
  const long loaded = raised_kib([&] { return load(report::Extent::all).files.size() == 2; });
  CHECK(loaded > most_kib);  // so that what follows can fail
  const long reported = raised_kib(
      [&] { return report::report_on(load(report::Extent::streamed_all)).compared_calls == std::uint64_t{calls}; });
  CHECK(reported > 0);
  CHECK(reported < most_kib / 2);
  const long given = raised_kib([&] {
    const report::Run run = load(report::Extent::streamed_all);
    int events = 0;
    report::read_events(run, report::Clocks(run), [&](std::size_t, const trace::Event&, const report::InCall& its) {
      events += its.is_matched ? 1 : 0;
    });
    return events == 2 * calls;
  });
  CHECK(given > 0);
  CHECK(given < most_kib / 2);
}

TEST_CASE("ranks share what is equal in their records") {
  std::vector<Record> all = support::records(3);
  for (Record& one : all) {
    one.add_call_site({{"/bin/app", 0x10}});
    one.modules[0].bias = 0x1000 * static_cast<std::uint64_t>(one.header.rank);  // wherever it was loaded
    std::strcpy(one.header.host, one.header.rank == 0 ? "node0" : "node1");
  }
  all[2].add_call_site({{"/bin/app", 0x20}});
  std::strcpy(all[2].header.phase_names[1], "solve");
  const report::Run run = support::load(all);
  REQUIRE(run.files.size() == 3);
  CHECK(run.files[0].call_sites == run.files[1].call_sites);  // the same, not only equal
  CHECK(run.files[0].texts == run.files[1].texts);
  CHECK(run.files[0].algorithms == run.files[2].algorithms);
  CHECK(run.files[2].call_sites->size() == 2);
  CHECK(run.files[2].texts != run.files[0].texts);
  CHECK(run.files[1].header.host == "node1");
}

TEST_CASE("calls of small communicators take no room for all ranks") {
  constexpr int ranks = 1024;
  constexpr std::uint64_t calls_of_rank = 256;
  constexpr std::uint64_t pair_id = 100;
  std::vector<Record> all = support::records(ranks);
  for (Record& one : all) {
    const int rank = one.header.rank;
    const std::uint64_t pair = pair_id + static_cast<std::uint64_t>(rank / 2);
    one.add_communicator(pair, 2, rank % 2, "pair");
    one.capacity = 2 * calls_of_rank;
    double at_ns = 0;
    for (std::uint64_t call = 0; call < calls_of_rank; ++call) {
      one.add_call(Collective::allreduce, call, at_ns, at_ns + 500, 8, -1, pair);
      one.add_call(Collective::allreduce, call, at_ns + 1000, at_ns + 1500);
      at_ns += 2000;
    }
    one.finalize(at_ns);
  }
  report::Run run;
  for (const Record& one : all)
    report::add_record(run, Record::file_name(one.header.rank), report::MemorySource(one.bytes(true)));
  report::finish_run(run);
  constexpr std::uint64_t compared = calls_of_rank * (1 + ranks / 2);
  const long raised = raised_kib([&] { return report::report_on(run).compared_calls == compared; });
  CHECK(raised > 0);
  CHECK(raised < 30 << 10);
}

}  // namespace
}  // namespace papaya
