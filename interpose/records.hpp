// What is recorded, and where: this rank's record in the output folder, and who watches the ranks of this node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "interpose/flavour.hpp"
#include "interpose/job.hpp"
#include "interpose/output_folder.hpp"
#include "interpose/watch.hpp"
#include "profiler/record/approx_recorder.hpp"
#include "profiler/record/call_sites.hpp"
#include "profiler/record/mpi_times.hpp"
#include "profiler/record/node_arrivals.hpp"
#include "profiler/record/node_boards.hpp"
#include "profiler/record/recorder.hpp"
#include "profiler/record/stack_dump.hpp"
#include "profiler/record/usage.hpp"
#include "profiler/record/weak_recorder.hpp"

namespace papaya {

struct Records {
  Recorder recorder;
  WeakRecorder weak;
  ApproxRecorder approx;
  NodeBoards node_boards;
  NodeArrivals node_arrivals;
  std::atomic<bool> recording{true};  // relaxed: MPI_Pcontrol says from when on
  CallSites call_sites;
  MpiTimes mpi_times;
  UsageMeter usage;
  StackDump stack_dump;
  Watch watch;  // of the ranks of this node, on its first
  OutputFolder folder;

  // Collective over the job, in this order. `functions`: what mpi_times counts, if it is to.
  void open(const Job& job, const Preload& preload, std::span<const Recorder::Function> functions);
  void start_watching(const Job& job);
  void stop_watching() noexcept;
  void close(const Job& job);  // and the report is written

 private:
  std::uint64_t bytes_on_node(const Job& job, std::uint64_t events, std::size_t functions) const;
  void open_files(const Job& job, std::uint64_t events, std::span<const Recorder::Function> functions);
  void write_header(const Job& job, std::string_view program, std::string_view mpi);
  void start_spilling(const Job& job);
  void measure_clock_offset(const Job& job, double ns_per_tick, int which);
  void measure_message_times(const Job& job);
  void report_incomplete_traces(const Job& job) const;
  void report_failed_pages(const Job& job) const;
  void write_report(const Job& job);

  std::vector<bool> records_;  // by rank
  bool has_records_ = false;   // of some rank
};

}  // namespace papaya
