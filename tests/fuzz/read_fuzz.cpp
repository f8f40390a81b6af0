// Any bytes as the records of a run: loading, analysing and rendering must not crash, throw or give invalid
// JSON.
//
// With libFuzzer:
//   clang++ -fsanitize=fuzzer,address,undefined ... read_fuzz.cpp
// With any compiler -DPAPAYA_FUZZ_STANDALONE adds a main that needs no corpus; it takes synthetic runs and
// the FILES given, and changes them at random but in the same way each time:
//   read_fuzz [ROUNDS [FILES...]]
//   read_fuzz --write-seeds FOLDER     the synthetic runs, as a corpus for libFuzzer
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "profiler/analysis/event_stream.hpp"
#include "profiler/report/pictures.hpp"
#include "profiler/report/report.hpp"

namespace {

constexpr std::size_t records_per_input = 3;
// Of each part, at its end: calls of weakly consistent collectives, what has become of PAPAYA_APPROX, what was spilled.
constexpr std::size_t weak_events = 4;
constexpr std::size_t weak_bytes =
    sizeof(papaya::trace::WeakHeader) + sizeof(papaya::trace::WeakRow) + weak_events * sizeof(papaya::trace::WeakEvent);
constexpr std::size_t approx_bytes = sizeof(papaya::trace::ApproxHeader) + sizeof(papaya::trace::ApproxRow);
constexpr std::size_t spilled_bytes = 1024;
constexpr std::size_t beside_bytes = weak_bytes + approx_bytes + spilled_bytes;

// Makes the checksums right as far as the blocks can be followed: else no change would get past them.
std::vector<std::uint8_t> sealed(std::span<const std::uint8_t> data) {
  using namespace papaya::trace::spill;
  std::vector<std::uint8_t> bytes(data.begin(), data.end());
  const auto seal = [&](std::size_t at, auto header) {
    std::memcpy(&header, bytes.data() + at, sizeof header);
    if constexpr (sizeof header == sizeof(BlockHeader))
      if (header.bytes <= bytes.size() - at - sizeof header)
        header.payload_checksum = papaya::crc32c(bytes.data() + at + sizeof header, header.bytes);
    header.checksum = checksum_of(header);
    std::memcpy(bytes.data() + at, &header, sizeof header);
    return header;
  };
  if (bytes.size() < sizeof(FileHeader)) return bytes;
  seal(0, FileHeader{});
  for (std::size_t at = sizeof(FileHeader); at + sizeof(BlockHeader) <= bytes.size();)
    at += sizeof(BlockHeader) + seal(at, BlockHeader{}).bytes;
  return bytes;
}

// One input is the files of three ranks, each a third of it: a record and the files beside it.
papaya::report::Run run_of(const std::uint8_t* data, std::size_t size) {
  namespace report = papaya::report;
  const std::size_t part = size / records_per_input;
  report::Run run;
  for (std::size_t i = 0; i < records_per_input; ++i) {
    const std::span all(data + i * part, part);
    const std::size_t beside = std::min(part, beside_bytes);
    std::span rest = all.last(beside);
    const auto take = [&](std::size_t bytes) {
      const std::span taken = rest.first(std::min(bytes, rest.size()));
      rest = rest.subspan(taken.size());
      return taken;
    };
    const std::span weak = take(weak_bytes);
    const std::span approx = take(approx_bytes);
    const std::string name = "rank-0000" + std::to_string(i) + ".pap";
    if (!report::add_record(run, name, report::MemorySource(all.first(part - beside)))) continue;
    report::add_weak(run, name, report::MemorySource(weak));
    report::add_approx(run, name, report::MemorySource(approx));
    const std::vector<std::uint8_t> bytes = sealed(rest);
    report::add_spilled(run, name + "z", report::MemorySource(bytes));
  }
  report::finish_run(run);
  return run;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace report = papaya::report;
  const report::Run run = run_of(data, size);
  report::Pictures pictures(run);
  const report::Report analysis = report::report_on(run, [&](const report::ComparedCall& call) { pictures.add(call); });
  std::uint64_t events = 0;
  papaya::report::read_events(
      run, papaya::report::Clocks(run),
      [&](std::size_t, const papaya::trace::Event&, const papaya::report::InCall&) { ++events; });
  const bool fine = events == analysis.events_kept && !analysis.verdict.empty() && !report::to_text(analysis).empty() &&
                    nlohmann::json::accept(report::to_json(analysis)) &&
                    nlohmann::json::accept(report::to_json(pictures, analysis));
  if (!fine) std::abort();
  return 0;
}

#ifdef PAPAYA_FUZZ_STANDALONE

#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tests/unit/support/record.hpp"

namespace {

using papaya::Collective;
using papaya::support::Record;
using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

enum class Version { three, four };  // of the format

constexpr long default_rounds = 1500;  // some seconds under sanitizers

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

// As of the record's run.
template <class HeaderOfFile>
HeaderOfFile header_for(const Record& record, const char (&magic)[8], std::uint32_t version, std::size_t row_bytes) {
  HeaderOfFile header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.version = version;
  header.endian_mark = papaya::trace::endian_mark;
  header.header_bytes = sizeof header;
  header.row_bytes = static_cast<std::uint32_t>(row_bytes);
  header.rank = record.header.rank;
  header.begin_ticks = record.header.begin_ticks;
  header.begin_unix_ns = record.header.begin_unix_ns;
  header.row_count = 1;
  return header;
}

void append_weak(Bytes& bytes, const Record& record) {
  namespace trace = papaya::trace;
  auto header =
      header_for<trace::WeakHeader>(record, trace::weak::magic, trace::weak::format_version, sizeof(trace::WeakRow));
  header.event_bytes = sizeof(trace::WeakEvent);
  header.rows_offset = sizeof header;
  header.row_capacity = 1;
  header.events_offset = sizeof header + sizeof(trace::WeakRow);
  header.event_count = header.event_capacity = weak_events;
  append(bytes, header);
  trace::WeakRow row{.communicator = papaya::support::world_id,
                     .size = records_per_input,
                     .rank = record.header.rank,
                     .root = -1,
                     .collective = "allreduce",
                     .algorithm = "ssp_ring",
                     .parameters = "slack 2",
                     .calls = weak_events};
  append(bytes, row);
  for (std::uint32_t call = 0; call < weak_events; ++call)
    append(bytes, trace::WeakEvent{.arrival_ticks = Record::ticks(1000.0 * call),
                                   .exit_ticks = Record::ticks(1000.0 * call + 500),
                                   .collective = 7,
                                   .clock = call + 1,
                                   .oldest = call,
                                   .share = 1,
                                   .call_site = 1,
                                   .commit = call + 1});
}

void append_approx(Bytes& bytes, const Record& record) {
  namespace trace = papaya::trace;
  append(bytes, header_for<trace::ApproxHeader>(record, trace::approx::magic, trace::approx::format_version,
                                                sizeof(trace::ApproxRow)));
  append(bytes, trace::ApproxRow{.places = "communicator \"x\"",
                                 .bound = "ssp_ring, slack 2",
                                 .collective = static_cast<std::uint32_t>(Collective::allreduce),
                                 .calls = 20,
                                 .approximate = 18,
                                 .aged = 18,
                                 .most_staleness = 2,
                                 .verified = 3,
                                 .errors = {0, 0.5, 0.25}});
}

Bytes joined(const std::vector<Record>& records, Version version) {
  Bytes all;
  for (const Record& record : records) {
    const bool is_old = version == Version::three;
    const Bytes own = is_old ? record.bytes_of_version_3(true) : record.bytes(true);
    all.insert(all.end(), own.begin(), own.end());
    append_weak(all, record);
    append_approx(all, record);
    // In several blocks, or more of them than there are.
    const std::size_t count = record.events.size() - 8;
    const std::size_t in_block = record.header.nodes == 1 ? 3 : 20;
    Bytes spilled = is_old ? record.spilled_of_version_1(count, in_block) : record.spilled(count, in_block);
    spilled.resize(spilled_bytes);
    all.insert(all.end(), spilled.begin(), spilled.end());
  }
  return all;
}

// A run on `nodes` nodes that finished, or one whose ranks still are inside their last call.
Bytes seed(int nodes, bool finished, Version version = Version::four) {
  std::vector<Record> records;
  for (int rank = 0; rank < static_cast<int>(records_per_input); ++rank) {
    Record record(rank, records_per_input, rank % nodes, nodes);
    record.add_communicator(papaya::support::world_id, records_per_input, rank, "MPI_COMM_WORLD");
    record.header.alpha[0] = {8, 500, 2000};
    record.header.alpha[1] = {65536, 9000, 40000};
    for (auto& clock : record.header.clock) clock = {rank * 1000, 100, Record::ticks(0), 1};
    record.header.clock[1].at_ticks = Record::ticks(1e9);
    const std::uint32_t site = record.add_call_site({{"/bin/app", 0x40}, {"/lib/libmd.so", 0x80}});
    papaya::trace::NodeCalls row{};
    row.communicator = papaya::support::world_id;
    row.call_site = 1;
    row.collective = static_cast<std::uint8_t>(Collective::allreduce);
    row.used = 1;
    row.calls = row.times_last = 4;
    row.imbalance_ticks = row.caused_ticks = 6000;
    row.most_ticks = 2000;
    for (row.rank = 0; row.rank < 2; ++row.rank) record.node_calls.push_back(row);
    for (std::uint64_t call = 0; call < 20; ++call) {
      const double begin = 10000.0 * static_cast<double>(call);
      record
          .add_call(static_cast<Collective>(call % papaya::collective_count), call, begin + rank * 500,
                    !finished && call == 19 ? -1 : begin + 5000, std::uint64_t{1} << call, 0)
          .call_site = site;
      if (rank == 1) record.add_interval(400, site);
    }
    record.add_timed("MPI_Recv", papaya::MpiKind::point_to_point, 20, 8000);
    record.events[3].algorithm = 1;
    record.algorithms[1].calls[3] = 1;
    papaya::trace::TrialRow trial{};
    trial.communicator = papaya::support::world_id;
    trial.collective = static_cast<std::uint8_t>(Collective::allreduce);
    trial.calls = 1000;
    trial.trials = trial.changes = trial.in_use = 1;
    trial.tried_count = 2;
    trial.tried[1].algorithm = trial.change[0].algorithm = 1;
    record.trials.push_back(trial);
    if (finished) record.finalize(1e6);
    records.push_back(std::move(record));
  }
  return joined(records, version);
}

void mutate(Bytes& bytes, Random& random) {
  constexpr std::uint64_t interesting[] = {0,          1,          ~0ull,      1ull << 63, (1ull << 63) - 1,
                                           1ull << 32, 0x7fffffff, 0x80000000, 0xffffffff, 0x7ff0000000000000};
  for (std::uint64_t left = 1 + random() % 8; left > 0 && !bytes.empty(); --left) {
    // Half of the changes hit the headers: the tables behind them take the more room. A quarter hit the files beside.
    const std::size_t part = bytes.size() / records_per_input;
    std::size_t at = random() % bytes.size();
    const std::size_t header = random() % 2 == 0 ? 1024 : sizeof(papaya::trace::Header);
    if (random() % 2 == 0 && part > header) at = at / part % records_per_input * part + random() % header;
    if (random() % 4 == 0 && part > beside_bytes)
      at = (at / part % records_per_input + 1) * part - 1 - random() % beside_bytes;
    switch (random() % 5) {
      case 0:
        bytes[at] ^= static_cast<std::uint8_t>(1u << random() % 8);
        break;
      case 1:
        bytes[at] = static_cast<std::uint8_t>(random());
        break;
      case 2: {
        const std::size_t width = random() % 2 == 0 ? 4 : 8;
        at = at / width * width;
        std::memcpy(bytes.data() + at, &interesting[random() % std::size(interesting)],
                    std::min(width, bytes.size() - at));
        break;
      }
      case 3: {  // a piece over another: duplicates events, communicators, whole tables
        const std::size_t from = random() % bytes.size();
        const std::size_t length = std::min({std::size_t{64} << random() % 4, bytes.size() - from, bytes.size() - at});
        std::memmove(bytes.data() + at, bytes.data() + from, length);
        break;
      }
      default:
        if (random() % 16 == 0) bytes.resize(at);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Bytes> seeds = {seed(1, true),
                                    seed(3, true),
                                    seed(1, false),
                                    seed(3, false),
                                    seed(1, true, Version::three),
                                    seed(3, false, Version::three)};
  if (argc == 3 && std::strcmp(argv[1], "--write-seeds") == 0) {
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream(argv[2] + std::string("/seed-") + std::to_string(i), std::ios::binary)
          .write(reinterpret_cast<const char*>(seeds[i].data()), static_cast<std::streamsize>(seeds[i].size()));
    }
    return 0;
  }
  for (const Bytes& bytes : seeds) {
    const papaya::report::Run run = run_of(bytes.data(), bytes.size());
    const bool is_read =
        run.files.size() == records_per_input && std::all_of(run.files.begin(), run.files.end(), [](const auto& file) {
          return file.weak.events.size() == weak_events && !file.approx.empty();
        });
    if (is_read) continue;
    std::fprintf(stderr, "read_fuzz: a seed is not read as a whole\n");
    return 1;
  }
  std::vector<Bytes> inputs = seeds;
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  for (const Bytes& input : inputs) LLVMFuzzerTestOneInput(input.data(), input.size());
  const long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : default_rounds;
  Random random(1);
  for (long round = 0; round < rounds; ++round) {
    Bytes bytes = inputs[static_cast<std::size_t>(round) % inputs.size()];
    mutate(bytes, random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%ld inputs, no crash\n", rounds + static_cast<long>(inputs.size()));
  return 0;
}

#endif
