// Nodes' leaders that read a run together, each MPI rank one of them: messages of all sizes arrive as they were sent,
// and the figures are those of a run that one process reads alone; also where one of them does not see the folder.
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "interpose/mpi_readers.hpp"
#include "profiler/analysis/in_order.hpp"
#include "profiler/read/event_reader.hpp"
#include "profiler/report/report.hpp"
#include "tests/unit/support/record.hpp"

namespace {

using namespace papaya;

int failures = 0;

void check(bool good, const char* what) {
  if (good) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

// Each gets from the one before and sends on.
void pass_around(report::Readers& readers) {
  const std::size_t next = (readers.number() + 1) % readers.all();
  const std::size_t before = (readers.number() + readers.all() - 1) % readers.all();
  for (const std::size_t size : {1u, 0u, 1000u, 5'000'000u}) {
    std::vector<std::byte> sent(size);
    for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<std::byte>(i * 7 + size);
    if (readers.number() == 0) readers.send(next, sent);
    const std::vector<std::byte> received = readers.receive(before);
    check(received == sent, "a message arrives as it was sent");
    if (readers.number() != 0) readers.send(next, received);
  }
}

// Rank 2 is late.
std::vector<support::Record> run_of(int ranks, int calls) {
  std::vector<support::Record> all;
  for (int rank = 0; rank < ranks; ++rank) {
    support::Record& one = all.emplace_back(rank, ranks);
    one.capacity = 1 << 13;
    one.add_communicator(support::world_id, ranks, rank, "MPI_COMM_WORLD");
    const std::uint32_t site = one.add_call_site({{"/bin/app", 1}});
    for (int call = 0; call < calls; ++call) {
      const double begin = 1e4 * (call + 1);
      one.add_call(Collective::allreduce, call, begin + (rank == 2 ? 5000 : 10 * (rank + call % 3)), begin + 6000)
          .call_site = site;
    }
    one.finalize(1e4 * (calls + 2));
  }
  return all;
}

void read_together(const std::string& folder, bool is_seen_by_all) {
  const auto load = [&](const std::string& from) { return report::load_run(from, {}, report::Extent::streamed_rings); };
  MpiReaders readers(MPI_COMM_WORLD);
  const std::size_t parts = readers.all() * report::threads_for_reading(5);
  const std::size_t events = report::events_of(load(folder)) / parts;
  if (readers.number() == 0) {
    const report::Run run = load(folder);
    const report::Analysis alone = report::analyse(run, {}, {}, events);
    const report::Analysis shared = report::analyse(run, readers, events);
    check(alone.compared_calls == 3000 && shared.compared_calls == 3000, "all calls are compared");
    check(std::abs(shared.waiting_ns - alone.waiting_ns) <= 1e-9 * alone.waiting_ns, "waiting is the same");
    check(shared.late_ranks.at(0).rank == 2 && shared.late_ranks.at(0).times_last == 3000, "rank 2 is late");
    check(std::abs(shared.what_if.all_ns - alone.what_if.all_ns) <= 1e-9 * std::abs(alone.what_if.all_ns),
          "the estimate is the same");
  } else {
    const bool sees_it = is_seen_by_all || readers.number() != 1;
    report::help_to_analyse(
        readers, [&] { return load(sees_it ? folder : folder + "/elsewhere"); }, events);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    MpiReaders readers(MPI_COMM_WORLD);
    if (rank == 0)
      readers.ask(2);
    else
      check(readers.asked() == 2, "the others hear how many are asked");
    pass_around(readers);
  }
  {
    MpiReaders readers(MPI_COMM_WORLD);  // whom number 0 leaves without a word
    if (rank != 0) check(readers.asked() == 0, "nobody is asked");
  }
  std::optional<support::Folder> folder;
  char path[4096] = "";
  if (rank == 0) {
    folder.emplace();
    folder->write(run_of(5, 3000));
    std::snprintf(path, sizeof path, "%s", folder->path().c_str());
  }
  MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  read_together(path, true);
  read_together(path, false);
  MPI_Barrier(MPI_COMM_WORLD);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) std::puts("readers: all checks passed");
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
