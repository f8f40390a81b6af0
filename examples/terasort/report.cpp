#include "report.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace terasort {

namespace {

using Numbers = Times::Numbers;

Numbers over_ranks(const Numbers& mine, MPI_Op op) {
  Numbers all{};
  MPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_DOUBLE, op, 0, MPI_COMM_WORLD);
  return all;
}

struct Row {
  std::string_view phase;
  double mean;
  double most;
  double calls;    // mean
  double waiting;  // mean
};

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all = text;
  std::string first = all.substr(0, all.find_first_of(",\n"));
  std::replace(first.begin(), first.end(), '\t', ' ');
  return first;
}

void print(const Outcome& outcome, const std::vector<Row>& rows, const Options& options, const Job& job) {
  const double megabytes = static_cast<double>(outcome.records * record_bytes) / 1e6;
  fmt::print("{}: {} records, {:.1f} MB, on {} rank{}{}{}\n", name_of(options.mode), outcome.records, megabytes,
             job.ranks, job.ranks == 1 ? "" : "s", outcome.place.empty() ? "" : " over ", outcome.place);
  fmt::print("{:<10}{:>10}{:>10}{:>12}{:>12}{:>10}\n", "phase", "mean s", "max s", "in calls s", "waiting s", "MB/s");
  double mean = 0;
  double calls = 0;
  double waiting = 0;
  for (const Row& row : rows) {
    mean += row.mean;
    calls += row.calls;
    waiting += row.waiting;
    if (row.most >= 5e-4)
      fmt::print("{:<10}{:>10.3f}{:>10.3f}{:>12.3f}{:>12.3f}{:>10.0f}\n", row.phase, row.mean, row.most, row.calls,
                 row.waiting, megabytes / row.most);
  }
  fmt::print("{:<10}{:>10.3f}{:>10.3f}{:>12.3f}{:>12.3f}{:>10.0f}\n", "all", mean, outcome.seconds, calls, waiting,
             megabytes / outcome.seconds);
  if (outcome.records != 0 && job.ranks > 1)
    fmt::print("largest partition: {:.3f} of the mean\n",
               static_cast<double>(outcome.largest) * job.ranks / static_cast<double>(outcome.records));
  if (outcome.runs_in_files != 0) fmt::print("sorted runs in files: {}\n", outcome.runs_in_files);
}

void write_json(const Outcome& outcome, const std::vector<Row>& rows, const Options& options, const Job& job) {
  nlohmann::ordered_json json{{"mode", name_of(options.mode)},
                              {"mpi", library()},
                              {"ranks", job.ranks},
                              {"records", outcome.records},
                              {"bytes", outcome.records * record_bytes},
                              {"over", outcome.place},
                              {"seconds", outcome.seconds},
                              {"mb_per_s", static_cast<double>(outcome.records * record_bytes) / 1e6 / outcome.seconds},
                              {"largest_partition", outcome.largest},
                              {"runs_in_files", outcome.runs_in_files},
                              {"duplicates", outcome.verdict.duplicates},
                              {"unordered", outcome.verdict.unordered},
                              {"checksum", outcome.verdict.checksum},
                              {"checksum_of_input", outcome.checksum_of_input}};
  for (const Row& row : rows)
    json["phases"][std::string(row.phase)] = {
        {"mean_s", row.mean}, {"max_s", row.most}, {"calls_s", row.calls}, {"waiting_s", row.waiting}};
  std::ofstream file(options.json);
  file << json.dump(2) << '\n';
  if (!file.flush()) throw Problem(fmt::format("Cannot write {}: {}.", options.json, std::strerror(errno)));
}

}  // namespace

void report(const Outcome& outcome, const Times& times, const Options& options, const Job& job) {
  const Numbers sums = over_ranks(times.seconds, MPI_SUM);
  const Numbers most = over_ranks(times.seconds, MPI_MAX);
  const Numbers calls = over_ranks(times.calls, MPI_SUM);
  const Numbers waiting = over_ranks(times.waiting, MPI_SUM);
  job.together([&] {
    if (job.rank != 0) return;
    std::vector<Row> rows;
    for (std::size_t i = 0; i < phase_count; ++i)
      rows.push_back({phase_names[i], sums[i] / job.ranks, most[i], calls[i] / job.ranks, waiting[i] / job.ranks});
    print(outcome, rows, options, job);
    if (!options.json.empty()) write_json(outcome, rows, options, job);
  });
}

bool tell(const Verdict& verdict, const std::string& checksum, std::uint64_t records, const Job& job) {
  const bool is_right =
      verdict.unordered == 0 && verdict.records == records && (checksum.empty() || verdict.checksum == checksum);
  if (job.rank != 0) return is_right;
  fmt::print("records: {}\nchecksum: {}\nduplicate keys: {}\n", verdict.records, verdict.checksum, verdict.duplicates);
  std::fflush(stdout);
  if (verdict.unordered != 0)
    fmt::print(stderr, "terasort: {} record{} not in order, the first is record {}.\n", verdict.unordered,
               verdict.unordered == 1 ? " is" : "s are", verdict.first_unordered);
  else if (verdict.records != records)
    fmt::print(stderr, "terasort: there are {} records; the input has {}.\n", verdict.records, records);
  else if (!is_right)
    fmt::print(stderr, "terasort: the checksum is {}; it should be {}: records have changed.\n", verdict.checksum,
               checksum);
  else
    fmt::print("all records are in order\n");
  return is_right;
}

}  // namespace terasort
