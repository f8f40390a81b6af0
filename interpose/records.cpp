#include "interpose/records.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "base/log.hpp"
#include "base/reason.hpp"
#include "base/version.hpp"
#include "interpose/measure.hpp"
#include "interpose/mpi_readers.hpp"
#include "interpose/output.hpp"
#include "interpose/reports.hpp"
#include "profiler/record/failed_pages.hpp"
#include "profiler/record/waits.hpp"

namespace papaya {

namespace {

// PAPAYA_PROFILE=trace: 64 MiB of events a rank, older ones are spilled.
constexpr std::uint64_t trace_capacity = 1u << 20;

// What measuring the times of messages at the end may take: a thousandth of the run, within these.
constexpr double least_for_messages_ms = 3;
constexpr double most_for_messages_ms = 20;

std::string mpi_name() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(version, &length);
  std::string name(version, strcspn(version, "\n,"));
  std::replace(name.begin(), name.end(), '\t', ' ');
  if (const std::size_t word = name.find(" Version:"); word != name.npos) name.erase(word, 9);
  while (name.find("  ") != name.npos) name.erase(name.find("  "), 1);
  return name;
}

// As long as it lives the calling thread may run where all ranks of its node may, and the threads that it makes.
class OnProcessors {
 public:
  explicit OnProcessors(const cpu_set_t& processors) {
    is_known_ = sched_getaffinity(0, sizeof before_, &before_) == 0 &&
                sched_setaffinity(0, sizeof processors, &processors) == 0;
  }
  ~OnProcessors() {
    if (is_known_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OnProcessors(const OnProcessors&) = delete;
  OnProcessors& operator=(const OnProcessors&) = delete;

 private:
  cpu_set_t before_;
  bool is_known_ = false;
};

// Which ranks are to record. Rank 0 always: by its record a folder is known to be a run's.
std::vector<bool> ranks_to_record(const Job& job) {
  RankList list;
  list.parse(job.settings.text(Variable::ranks));
  std::vector<bool> ranks(static_cast<std::size_t>(job.ranks));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    ranks[rank] = rank == 0 || list.contains(static_cast<int>(rank));
  return ranks;
}

// `ranks` are counted from 0.
void warn_of_one_rank(const Job& job, const std::vector<bool>& records) {
  const bool is_alone = job.ranks > 1 && std::count(records.begin(), records.end(), true) == 1;
  if (job.rank != 0 || !is_alone || job.settings.text(Variable::ranks) == "0" ||
      job.settings.text(Variable::profile) == "off")
    return;
  log::warn(fmt::format("PAPAYA_RANKS={}: only rank 0 of {} records, so no arrivals can be compared.",
                        job.settings.text(Variable::ranks), job.ranks));
}

}  // namespace

void Records::write_header(const Job& job, std::string_view program, std::string_view mpi) {
  trace::Header& header = recorder.header();
  header.rank = job.rank;
  header.ranks = job.ranks;
  header.node = job.node;
  header.nodes = job.nodes;
  header.node_rank = job.rank_on_node;
  header.node_ranks = job.ranks_on_node;
  header.cores = job.cores;
  header.thread_level = job.thread_level;
  header.process = getpid();
  header.ns_per_tick = job.ns_per_tick;
  header.begin_ticks = job.origin.ticks;
  header.begin_unix_ns = job.origin_unix_ns;
  char host[trace::name_bytes] = "";
  gethostname(host, sizeof host - 1);
  Recorder::set_name(header.host, sizeof header.host, host);
  Recorder::set_name(header.mpi, sizeof header.mpi, mpi);
  Recorder::set_name(header.papaya_version, sizeof header.papaya_version, PAPAYA_VERSION);
  Recorder::set_name(header.program, sizeof header.program, program);
  Recorder::set_name(header.command, sizeof header.command, output::command_line());
  for (std::size_t i = 0; i < reason_names.size(); ++i) {
    Recorder::set_name(header.reason_names[i], trace::name_bytes, reason_names[i]);
    Recorder::set_name(header.reason_ids[i], trace::id_bytes, reason_ids[i]);
  }
}

// What the records of this node's ranks take when they are made.
std::uint64_t Records::bytes_on_node(const Job& job, std::uint64_t events, std::size_t functions) const {
  std::uint64_t bytes = 0;
  for (std::size_t rank = 0; rank < job.node_of.size(); ++rank)
    if (job.node_of[rank] == job.node && records_[rank])
      bytes += trace::file_bytes(events, registry().size() + 1, functions);
  return bytes;
}

// This rank's record, and where the node's ranks put their arrivals.
void Records::open_files(const Job& job, std::uint64_t events, std::span<const Recorder::Function> functions) {
  std::string error;
  const bool is_wanted = records_[static_cast<std::size_t>(job.rank)];
  std::vector<std::string_view> algorithms;  // by trace_number(), from 1
  for (const Descriptor* descriptor : registry()) algorithms.push_back(descriptor->name);
  const bool opened =
      is_wanted && recorder.open(output::rank_file(folder.path(), job.rank), events, algorithms, error, functions);
  const std::vector<int> failed = job.oob->gather(opened || !is_wanted ? 0 : 1);
  const auto all_failures = std::count(failed.begin(), failed.end(), 1);
  has_records_ = all_failures < std::count(records_.begin(), records_.end(), true);
  if (job.rank == 0 && all_failures != 0)
    log::warn(fmt::format("{} of {} ranks cannot write their records to {}{}{}; {}.", all_failures, job.ranks,
                          folder.name(), error.empty() ? "" : ": ", error,
                          all_failures < job.ranks ? "the others go on recording" : "nothing is recorded"));
  // The files of the node are there; later the folder may have another name.
  if (!opened) return;
  for (std::size_t rank = 0; rank < job.node_of.size(); ++rank)
    if (job.node_of[rank] == job.node && records_[rank])
      node_boards.add(static_cast<int>(rank), output::rank_file(folder.path(), static_cast<int>(rank)));
}

void Records::start_spilling(const Job& job) {
  const auto limit = static_cast<std::uint64_t>(job.settings.number(Variable::trace_limit));
  if (limit == 0) return;
  recorder.start_spilling(output::spill_file(folder.path(), job.rank), output::spill_file(folder.name(), job.rank),
                          limit);
  if (const Spiller* const spiller = recorder.spiller();
      job.rank == 0 && spiller != nullptr && spiller->file().takes_more() && !spiller->file().is_compressed())
    log::warn("PAPAYA_PROFILE=trace: libzstd.so.1 cannot be loaded; calls are written uncompressed.");
}

void Records::open(const Job& job, const Preload& preload, std::span<const Recorder::Function> functions) {
  records_ = ranks_to_record(job);
  warn_of_one_rank(job, records_);
  if (const std::string_view profile = job.settings.text(Variable::profile); profile != "off") {
    const std::string program = output::program_path();
    const std::string mpi = mpi_name();
    const std::uint64_t events = profile == "trace" ? trace_capacity : trace::event_capacity;
    if (profile == "collectives") functions = {};
    folder.open(job, std::string(job.settings.text(Variable::output)), output::base_name(program), mpi,
                bytes_on_node(job, events, functions.size()));
    if (!folder.name().empty()) open_files(job, events, functions);
    if (recorder.is_open()) {
      write_header(job, program, mpi);
      const bool is_concurrent = job.thread_level == MPI_THREAD_MULTIPLE;
      recorder.set_concurrent(is_concurrent);
      weak.set_concurrent(is_concurrent);
      weak.set_capacity(recorder.header().event_capacity);
      node_arrivals.open(recorder.node_board(), recorder.node_calls(), recorder.header().node_calls_given_up,
                         static_cast<std::uint64_t>(report::tie_ns / job.ns_per_tick), is_concurrent);
      if (profile == "trace") start_spilling(job);
    }
  }
  folder.leave(job);
  if (const auto frames = static_cast<int>(job.settings.number(Variable::callsites));
      !call_sites.open(recorder, frames, preload.is_fortran) && job.rank == 0)
    log::warn(
        fmt::format("PAPAYA_CALLSITES={}: libunwind.so.8 cannot be loaded; one frame is kept of each call.", frames));
  if (recorder.is_open()) mpi_times.open(recorder, call_sites);
  if (!folder.name().empty()) measure_clock_offset(job, job.ns_per_tick, 0);
}

void Records::start_watching(const Job& job) {
  if (folder.name().empty()) return;
  if (recorder.is_open()) {
    Watch::claim_signal(recorder.header().asked);
    if (job.settings.number(Variable::stacks) != 0 && !stack_dump.start(recorder, call_sites))
      log::info("no thread can be started, so this rank gives no call stacks.");
  }
  if (!job.leads()) return;
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < job.node_of.size(); ++rank)
    if (job.node_of[rank] == job.node && records_[rank]) ranks.push_back(static_cast<int>(rank));
  watch.start(folder.path(), ranks, job.ranks, static_cast<double>(job.settings.number(Variable::stall_seconds)),
              job.node == 0);
}

void Records::stop_watching() noexcept {
  watch.stop();
  stack_dump.stop();
  Watch::stop_counting();
}

// After the record is closed.
void Records::report_incomplete_traces(const Job& job) const {
  if (job.settings.text(Variable::profile) != "trace" || job.settings.number(Variable::trace_limit) == 0) return;
  const Spiller* const spiller = recorder.spiller();
  // A rank without a record has none, and that has been reported.
  const auto ended = [&](trace::spill::State state) { return spiller != nullptr && spiller->file().state() == state; };
  const bool is_limited = ended(trace::spill::State::limited);
  const bool is_cut = spiller != nullptr && !is_limited && !ended(trace::spill::State::closed);
  struct Ends {
    int limited;
    int cut;
  };
  Ends all{};
  for (const Ends& one : job.oob->gather(Ends{is_limited ? 1 : 0, is_cut ? 1 : 0}))
    all = {all.limited + one.limited, all.cut + one.cut};
  if (job.rank != 0) return;
  const auto warn = [&](int ranks, const std::string& why) {
    if (ranks != 0)
      log::warn(fmt::format("the traces of {} of {} ranks {}; of these the last {} calls are kept.", ranks, job.ranks,
                            why, trace_capacity));
  };
  warn(all.limited, fmt::format("reached PAPAYA_TRACE_LIMIT={}", job.settings.text(Variable::trace_limit)));
  warn(all.cut, "could not be written to their end");
}

// After the record is closed.
void Records::report_failed_pages(const Job& job) const {
  const std::vector<int> failed = job.oob->gather(failed_pages::count() != 0 ? 1 : 0);
  const auto ranks = std::count(failed.begin(), failed.end(), 1);
  if (job.rank == 0 && ranks != 0)
    log::warn(fmt::format(
        "the file system of {} has failed, or files there have been cut, while the job ran ({} of {} ranks met it): a "
        "part of the record is lost.",
        folder.name(), ranks, job.ranks));
}

// Measured by the leaders of the nodes, whether they record or not, for all ranks of theirs.
void Records::measure_clock_offset(const Job& job, double ns_per_tick, int which) {
  if (job.nodes == 1) return;
  trace::ClockOffset offset{};
  if (job.leader_comm != MPI_COMM_NULL) offset = measure::clock_offset(job.leader_comm, ns_per_tick, job.origin.ticks);
  job.oob_of_node->meet();  // asleep: the others leave the leaders the cores
  job.oob_of_node->broadcast(&offset, sizeof offset);
  if (recorder.is_open()) recorder.header().clock[which] = offset;
}

void Records::measure_message_times(const Job& job) {
  std::uint64_t within[measure::alpha_size_count]{};
  std::uint64_t across[measure::alpha_size_count]{};
  // Where ranks outnumber cores, those that wait for the pair that measures must not wait in MPI: MPICH's
  // would spin.
  job.oob->meet();
  const double run_ms = static_cast<double>(clock::ticks() - job.load_ticks) * job.ns_per_tick * 1e-6;
  const double budget_ms = std::clamp(run_ms / 1000, least_for_messages_ms, most_for_messages_ms);
  if (job.ranks_on_node > 1) measure::message_times(job.node_comm, 1, budget_ms, within);
  if (job.nodes > 1 && job.leader_comm != MPI_COMM_NULL) measure::message_times(job.leader_comm, 1, budget_ms, across);
  job.oob->meet();
  if (!recorder.is_open()) return;
  for (int i = 0; i < measure::alpha_size_count; ++i)
    recorder.header().alpha[i] = {measure::alpha_sizes[i], within[i], across[i]};
}

// Rank 0; the leaders of other nodes help.
void Records::write_report(const Job& job) {
  std::optional<MpiReaders> readers;
  if (job.nodes > 1 && job.leader_comm != MPI_COMM_NULL) readers.emplace(job.leader_comm);
  if (job.rank != 0) {
    reports::help(folder.name(), *readers);
    return;
  }
  std::string error;
  // By its descriptor: another job may rename it at any moment.
  const bool is_there = folder.is_still_there();
  const std::string path = is_there ? folder.path() : folder.name();
  if (is_there) folder.look_up_name();
  const bool is_written = reports::write(path, folder.name(), error, readers ? &*readers : nullptr);
  if (is_there) {
    folder.look_up_name();
    folder.close();
  }
  if (is_written)
    log::warn(fmt::format("report in {}/report.txt", folder.name()));
  else if (has_records_)
    log::warn(fmt::format("the report could not be written ({}); papaya report {} makes it.", error, folder.name()));
}

void Records::close(const Job& job) {
  if (folder.name().empty()) return;
  // The whole run is a longer base for the counter's rate than MPI_Init was. The node's first rank decides.
  double rate = clock::ns_per_tick(job.origin, clock::read_pair());
  job.oob_of_node->broadcast(&rate, sizeof rate);
  if (recorder.is_open()) recorder.header().ns_per_tick = rate;
  measure_clock_offset(job, rate, 1);
  measure_message_times(job);
  if (recorder.is_open()) {
    recorder.header().ending = static_cast<std::uint32_t>(trace::Ending::finalized);
    call_sites.close();
    node_arrivals.close();
    node_boards.close();
    weak.close();
    approx.close();
    recorder.close();
  }
  failed_pages::give_signal_back();
  report_failed_pages(job);
  report_incomplete_traces(job);
  const cpu_set_t processors = measure::processors_of(*job.oob_of_node);
  job.oob->meet();
  if (job.leads()) {
    const OnProcessors all_of_the_node(processors);
    write_report(job);
  }
  job.oob->meet();
}

}  // namespace papaya
