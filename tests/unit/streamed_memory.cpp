// A trace is read in a small part of the memory that its events have.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace
}  // namespace papaya
