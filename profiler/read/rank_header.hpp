// What is kept of a record's header: the rank's numbers, and the texts, which are the same on nearly all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/record/format.hpp"

namespace papaya::report {

struct HeaderTexts {
  char mpi[sizeof trace::Header::mpi];
  char papaya_version[sizeof trace::Header::papaya_version];
  char program[sizeof trace::Header::program];
  char command[sizeof trace::Header::command];
  char reason_names[trace::reason_capacity][trace::name_bytes];
  char reason_ids[trace::reason_capacity][trace::id_bytes];
  char phase_names[trace::phase_capacity][trace::name_bytes];

  explicit HeaderTexts(const trace::Header& header);
  auto operator<=>(const HeaderTexts&) const = default;
};

struct RankHeader {
  std::uint32_t version = 0;
  std::int32_t rank = 0;  // in MPI_COMM_WORLD
  std::int32_t ranks = 0;
  std::int32_t node = 0;
  std::int32_t nodes = 0;
  std::int32_t node_rank = 0;
  std::int32_t node_ranks = 0;
  std::int32_t cores = 0;
  std::int64_t process = 0;
  std::uint32_t ending = 0;
  std::int32_t abort_code = 0;
  std::string host;

  double ns_per_tick = 0;
  std::uint64_t begin_ticks = 0;
  std::int64_t begin_unix_ns = 0;
  std::uint64_t init_ticks = 0;
  std::uint64_t end_ticks = 0;
  trace::ClockOffset clock[2]{};
  std::vector<trace::Alpha> alpha;

  std::uint64_t events_offset = 0;
  std::uint64_t event_capacity = 0;
  std::uint64_t event_count = 0;
  std::uint64_t intervals_offset = 0;
  std::uint64_t interval_capacity = 0;
  std::uint64_t lost_communicators = 0;
  std::uint64_t lost_call_sites = 0;
  std::uint64_t node_calls_given_up = 0;
  std::uint64_t unrecorded_calls = 0;
  std::uint64_t unrecorded_ticks = 0;
  std::uint64_t unrecorded_since = 0;
  std::uint64_t stacks_ticks = 0;
  std::uint64_t call_site_count = 0;
  std::uint64_t algorithm_count = 0;
  std::uint64_t timed_count = 0;
  std::uint64_t phase_count = 0;
  std::vector<trace::PhaseTime> phase_times;  // so many
  trace::Usage usage{};
  std::vector<trace::Difference> differences;

  RankHeader() = default;
  // Of a header whose counts have been checked.
  explicit RankHeader(const trace::Header& header);
};

}  // namespace papaya::report
