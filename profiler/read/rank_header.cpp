#include "profiler/read/rank_header.hpp"

#include <algorithm>
#include <cstring>

namespace papaya::report {
namespace {

template <class Field>
void copy(Field& to, const Field& from) {
  std::memcpy(&to, &from, sizeof to);
}

}  // namespace

HeaderTexts::HeaderTexts(const trace::Header& header) {
  copy(mpi, header.mpi);
  copy(papaya_version, header.papaya_version);
  copy(program, header.program);
  copy(command, header.command);
  copy(reason_names, header.reason_names);
  copy(reason_ids, header.reason_ids);
  copy(phase_names, header.phase_names);
}

RankHeader::RankHeader(const trace::Header& header)
    : version(header.version),
      rank(header.rank),
      ranks(header.ranks),
      node(header.node),
      nodes(header.nodes),
      node_rank(header.node_rank),
      node_ranks(header.node_ranks),
      cores(header.cores),
      process(header.process),
      ending(header.ending),
      abort_code(header.abort_code),
      host(header.host),
      ns_per_tick(header.ns_per_tick),
      begin_ticks(header.begin_ticks),
      begin_unix_ns(header.begin_unix_ns),
      init_ticks(header.init_ticks),
      end_ticks(header.end_ticks),
      clock{header.clock[0], header.clock[1]},
      events_offset(header.events_offset),
      event_capacity(header.event_capacity),
      event_count(header.event_count),
      intervals_offset(header.intervals_offset),
      interval_capacity(header.interval_capacity),
      lost_communicators(header.lost_communicators),
      lost_call_sites(header.lost_call_sites),
      node_calls_given_up(header.node_calls_given_up),
      unrecorded_calls(header.unrecorded_calls),
      unrecorded_ticks(header.unrecorded_ticks),
      unrecorded_since(header.unrecorded_since),
      stacks_ticks(header.stacks_ticks),
      call_site_count(header.call_site_count),
      algorithm_count(header.algorithm_count),
      timed_count(header.timed_count),
      phase_count(header.phase_count),
      phase_times(header.phase_times, header.phase_times + header.phase_count),
      usage(header.usage) {
  const auto some = [&](std::uint64_t before, const auto& rows) {
    const std::uint64_t count = header.difference_count - std::min(header.difference_count, before);
    differences.insert(differences.end(), rows, rows + std::min<std::uint64_t>(count, std::size(rows)));
  };
  some(0, header.differences);
  some(trace::difference_capacity, header.further_differences);
  for (const trace::Alpha& entry : header.alpha) {
    if (entry.bytes == 0) break;
    alpha.push_back(entry);
  }
}

}  // namespace papaya::report
