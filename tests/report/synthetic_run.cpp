// The records of a job that never ran, for the page of `papaya report --html`:
//   synthetic_run FOLDER RANKS NODES CALLS [KEPT [stalled]]
// KEPT, a power of two: the calls that the ring of each rank holds still. stalled: ranks 2 and 5 never come to a last
// call, for which the others wait a fifth of a second.
// With other than 16 ranks, every fourth has recording switched off for a tenth of the run; efficiencies of phases are
// then not known. Five call sites in turn, one of each kind of pattern, with messages of 8 B to 4 MiB, and names that
// would break out of a page.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "profiler/record/weak_recorder.hpp"
#include "tests/unit/support/record.hpp"

namespace {

using papaya::Collective;
using papaya::support::Record;

constexpr int sites = 5;
constexpr double jitter_ns = 900;
constexpr const char* program = "</script><script>document.title='broken'</script><!--\xff";
constexpr const char* module = "/nowhere/<img src=x onerror=alert(1)>&amp;.so";

// How late `rank` is at round `round` of a site.
double late_ns(int site, int round, int rank, int ranks, std::minstd_rand& random) {
  int last = -1;
  if (site == 0) last = round % 3 == 0 ? 3 % ranks : -1;
  if (site == 1) last = round % ranks;
  if (site == 2) last = static_cast<int>(random() % static_cast<unsigned>(ranks));
  if (site == 3) last = round / 12 * 7 % ranks;
  return rank == last ? 400e3 * (1 + round % 4) : 0;
}

// Calls of a weakly consistent collective, where rank 3 is late at every call, and results grow old by rank.
void write_weak_calls(const std::string& folder, const Record& record, std::uint32_t call_site, bool can_be_old) {
  papaya::WeakRecorder recorder;
  const papaya::trace::Header& header = record.header;
  const papaya::WeakDescription description{
      nullptr, can_be_old ? "ssp_allreduce" : "sparse_allreduce", "<b>ssp", can_be_old ? "slack=40" : "", 1 << 16, -1};
  const auto* const collective =
      recorder.add(folder + "/" + Record::file_name(header.rank) + "w", header, description,
                   {papaya::support::world_id, true, header.ranks, header.rank, "<b>world</b>"});
  for (std::uint64_t clock = 1; clock <= 120; ++clock) {
    const double arrival = 1e6 * static_cast<double>(clock) + (header.rank == 3 ? 400e3 : 0);
    const std::uint64_t age = std::min(clock - 1, clock % 7 + static_cast<std::uint64_t>(header.rank) * (clock % 3));
    const std::uint64_t waited_ns = header.rank == 3 ? 0 : clock % 10 * 5000;
    const std::uint64_t number =
        recorder.begin(*collective, clock, Record::ticks(arrival), {call_site, static_cast<std::uint16_t>(clock % 2)});
    recorder.finish(*collective, number, Record::ticks(arrival + 60e3), 0,
                    {.clock = clock,
                     .oldest = can_be_old ? clock - age : 0,
                     .own = clock,
                     .updated_bytes = 1 << 16,
                     .inside_ns = 60'000,
                     .waited_ns = waited_ns,
                     .share = can_be_old ? 1 : 0.1,
                     .ranks = header.ranks});
  }
}

// Of the first site's allreduce; at two fifths of a second something else began to serve, as the ranks arrived in
// another pattern.
void add_trials(Record& record) {
  papaya::trace::TrialRow row{};
  row.communicator = papaya::support::world_id;
  row.collective = static_cast<std::uint8_t>(Collective::allreduce);
  row.size_class = 10;
  row.call_site = 1;
  row.calls = 120;
  row.spent_ns = 1'500'000;
  row.trials = 2;
  row.in_use = 1;
  row.tried_count = 2;
  row.tried[0] = {0, static_cast<std::uint32_t>(papaya::trace::TriedState::slower), 2400, 30, 0};
  row.tried[1] = {1, static_cast<std::uint32_t>(papaya::trace::TriedState::kept), 600, 30, 0};
  row.changes = 1;
  row.change[0] = {Record::ticks(0.4e9), 80, 1, 0};
  row.arrivals_changes = 2;
  row.arrivals[0] = {Record::ticks(0.2e9), 40, -1, 5};
  row.arrivals[1] = {Record::ticks(0.35e9), 72, 3, 2};
  record.trials.push_back(row);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || argc > 7) return 2;
  const int ranks = std::atoi(argv[2]);
  const int nodes = std::atoi(argv[3]);
  const int calls = std::atoi(argv[4]);
  constexpr Collective collectives[sites] = {Collective::allreduce, Collective::alltoall, Collective::allgather,
                                             Collective::allreduce, Collective::barrier};
  constexpr std::uint64_t bytes[] = {8, 4096, 1 << 22};
  for (int rank = 0; rank < ranks; ++rank) {
    Record record(rank, ranks, rank * nodes / ranks, nodes);
    std::snprintf(record.header.program, sizeof(record.header.program), "%s", program);
    if (nodes > 1) {
      for (auto& clock : record.header.clock) {
        clock.error_ns = clock.reference_error_ns = clock.bound_ns = 2500;
        clock.at_ticks = Record::ticks(0);
        clock.measured = 1;
      }
    }
    record.header.clock[1].at_ticks = Record::ticks(1e9);
    record.add_communicator(papaya::support::world_id, ranks, rank, "<b>world</b>");
    while (record.capacity < static_cast<std::uint64_t>(calls)) record.capacity *= 2;
    if (argc > 5) record.capacity = static_cast<std::uint64_t>(std::atoi(argv[5]));
    std::uint64_t numbers[sites];
    for (int site = 0; site < sites; ++site)
      numbers[site] = record.add_call_site({{module, 0x100u + 16u * static_cast<unsigned>(site)}, {"/bin/app", 0x40}});
    std::minstd_rand jitter(static_cast<unsigned>(rank) + 1);
    std::minstd_rand shared(1);  // the same choice on all ranks
    for (int call = 0; call < calls; ++call) {
      const int site = call % sites;
      const int round = call / sites;
      const double begin = 5e6 * call + jitter_ns * static_cast<double>(jitter() % 1000) / 1000;
      const double arrival = begin + late_ns(site, round, rank, ranks, shared);
      auto& event = record.add_call(collectives[site], static_cast<std::uint64_t>(call), arrival, 5e6 * call + 2e6,
                                    site == 4 ? 0 : bytes[site == 0 ? round % 3 : 1]);
      event.call_site = numbers[site];
      event.phase = static_cast<std::uint16_t>(site % 2);
      event.algorithm = site == 0 ? 1 : 0;
    }
    record.algorithms[0].calls[papaya::index_of(Collective::alltoall)] = static_cast<std::uint64_t>(calls / sites);
    record.totals.native_calls_by_reason[papaya::index_of(Collective::alltoall)][1] =
        static_cast<std::uint64_t>(calls / sites);
    record.algorithms[1].calls[papaya::index_of(Collective::allreduce)] = static_cast<std::uint64_t>(2 * calls / sites);
    // Who was waited for at the first site, and how long, grows with the rank.
    papaya::trace::NodeCalls row{};
    row.communicator = papaya::support::world_id;
    row.rank = rank;
    row.call_site = static_cast<std::uint32_t>(numbers[0]);
    row.collective = static_cast<std::uint8_t>(Collective::allreduce);
    row.used = 1;
    row.calls = 100;
    row.times_last = static_cast<std::uint64_t>(rank);
    row.imbalance_ticks = 100 * 2000 * static_cast<std::uint64_t>(rank + 1);
    row.most_ticks = 4000 * static_cast<std::uint64_t>(rank + 1);
    row.caused_ticks = 2 * row.imbalance_ticks;
    record.node_calls.push_back(row);
    record.add_timed("MPI_Wait", papaya::MpiKind::completion, 10, 1e4 * calls * (1 + rank % 10));
    if (ranks != 16 && rank % 4 == 1) record.header.unrecorded_ticks = Record::ticks(0.5e6 * calls) - Record::ticks(0);
    if (argc == 7) {
      if (rank != 2 && rank != 5)
        record.add_call(collectives[0], static_cast<std::uint64_t>(calls), 5e6 * calls + 1e3 * rank, -1).call_site =
            numbers[0];
      record.header.end_ticks = Record::ticks(5e6 * calls + 200e6);
    } else {
      record.finalize(5e6 * calls + 1e6);
    }
    std::snprintf(record.header.phase_names[1], papaya::trace::name_bytes, "%s", "<b>training");
    record.header.phase_count = 2;
    if (rank == 0 && ranks == 16) add_trials(record);
    const auto file = record.bytes(true);
    std::ofstream(std::string(argv[1]) + "/" + Record::file_name(rank), std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    if (ranks == 16) write_weak_calls(argv[1], record, static_cast<std::uint32_t>(numbers[0]), nodes > 1);
  }
}
