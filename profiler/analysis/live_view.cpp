#include "profiler/analysis/live_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/mpi_name.hpp"
#include "profiler/analysis/computing.hpp"
#include "profiler/read/units.hpp"

namespace papaya::report {

namespace {

constexpr double least_computing_ns = 1e6;    // less says nothing about a rank's speed
constexpr double noticeable_wait_ns = 100e6;  // of a call that is waited in now
constexpr double noticeable_share = 0.05;     // of the ranks' time, for one rank
constexpr double slower = 1.25;               // a changed speed, for at least
constexpr double quicker = 0.8;
constexpr std::size_t looks_for_a_change = 3;  // in turn
constexpr std::size_t most_looks = 64;         // remembered

// The clock of the rank's node at `unix_ns`, or when its rank ended.
std::uint64_t ticks_at(const RankHeader& header, std::int64_t unix_ns) {
  if (header.end_ticks != 0) return header.end_ticks;
  const double since = static_cast<double>(unix_ns - header.begin_unix_ns) / header.ns_per_tick;
  return since <= 0 ? header.begin_ticks : header.begin_ticks + static_cast<std::uint64_t>(since);
}

double ns_between(const RankHeader& header, std::uint64_t from, std::uint64_t to) {
  return to <= from ? 0 : static_cast<double>(to - from) * header.ns_per_tick;
}

double median(std::deque<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

double Watch::Sums::computing_ns() const {
  return std::max(0.0, elapsed_ns - collectives_ns - elsewhere_ns);
}

Watch::Sums Watch::sums_of(const RankFile& file, std::int64_t unix_ns, LiveRank& rank) {
  const RankHeader& header = file.header;
  Sums sums;
  const std::uint64_t now = ticks_at(header, unix_ns);
  sums.elapsed_ns = ns_between(header, header.init_ticks, now);
  const trace::Totals totals = file.totals.unpack();
  for (const auto& of_collective : totals.by_size)
    for (std::size_t form = 0; form < form_count; ++form)
      for (const trace::Total& total : of_collective[form]) {
        const double ns = static_cast<double>(total.ticks) * header.ns_per_tick;
        (blocks(static_cast<Form>(form)) ? sums.collectives_ns : sums.elsewhere_ns) += ns;
        sums.calls += total.calls;
      }
  for (const trace::TimedFunction& row : file.timed)
    sums.elsewhere_ns += static_cast<double>(row.ticks) * header.ns_per_tick;

  rank.has_ended = header.end_ticks != 0;
  const trace::Event* last = nullptr;
  std::uint64_t left_ticks = header.init_ticks;
  for (const trace::Event& event : file.events) {
    if (!blocks(static_cast<Form>(event.form))) continue;
    left_ticks = std::max(left_ticks, event.exit_ticks);
    if (event.exit_ticks == 0 && !rank.has_ended) last = &event;
  }
  rank.since_ns = ns_between(header, last == nullptr ? left_ticks : last->arrival_ticks, now);
  if (last == nullptr) return sums;
  rank.inside = mpi_name(static_cast<Collective>(last->collective), static_cast<Form>(last->form));
  rank.call_site = frames_of(file, last->call_site);
  sums.collectives_ns += rank.since_ns;  // its row counts it when it is left
  return sums;
}

void Watch::note_ratio(Past& past, double ratio, std::int64_t unix_ns, double interval_ns) {
  past.ratios.push_back(ratio);
  if (past.ratios.size() < 2 * looks_for_a_change) return;
  const auto begin = past.ratios.end() - static_cast<std::ptrdiff_t>(looks_for_a_change);
  const double usual = median({past.ratios.begin(), begin});
  const auto is_beyond = [&](auto beyond) { return std::all_of(begin, past.ratios.end(), beyond); };
  if (is_beyond([&](double one) { return one > slower * usual; }) ||
      is_beyond([&](double one) { return one < quicker * usual; })) {
    past.ratios.erase(past.ratios.begin(), begin);
    past.change_ratio = median(past.ratios) / usual;
    past.changed_unix_ns = unix_ns - static_cast<std::int64_t>(static_cast<double>(looks_for_a_change) * interval_ns);
  } else if (past.ratios.size() > most_looks) {
    past.ratios.pop_front();
  }
}

// Returns how long the rank computed.
double Watch::compare(Past& past, const Sums& sums, LiveRank& rank) {
  // What is counted at the end of a call may come in late; nothing becomes less.
  const auto since = [](double now, double before) { return std::max(0.0, now - before); };
  const double elapsed_ns = since(sums.elapsed_ns, past.sums.elapsed_ns);
  const double collectives_ns = since(sums.collectives_ns, past.sums.collectives_ns);
  const double elsewhere_ns = since(sums.elsewhere_ns, past.sums.elsewhere_ns);
  const double own_ns = since(elapsed_ns, collectives_ns + elsewhere_ns);
  if (elapsed_ns > 0) {
    const double whole_ns = std::max(elapsed_ns, collectives_ns + elsewhere_ns);
    rank.computing_share = own_ns / whole_ns;
    rank.collectives_share = collectives_ns / whole_ns;
    rank.elsewhere_share = elsewhere_ns / whole_ns;
  }
  rank.caused_ns = since(sums.caused_ns, past.sums.caused_ns);
  rank.all_caused_ns = sums.caused_ns;
  rank.all_calls = sums.calls;
  // A rank that has made no call since may be in the middle of a long one's computing.
  const std::uint64_t calls = sums.calls - std::min(sums.calls, past.sums.calls);
  past.unfinished_ns += own_ns;
  const double a_call_ns = past.unfinished_ns / static_cast<double>(std::max<std::uint64_t>(calls, 1));
  if (past.least_ns > 0 && past.unfinished_ns >= least_computing_ns)
    rank.individual_score = std::min(1.0, past.least_ns / a_call_ns);
  if (calls > 0) {
    if (past.unfinished_ns >= least_computing_ns)
      past.least_ns = past.least_ns > 0 ? std::min(past.least_ns, a_call_ns) : a_call_ns;
    past.unfinished_ns = 0;
  }
  past.sums = sums;
  return own_ns;
}

LiveView Watch::look(const Run& run, std::int64_t unix_ns) {
  LiveView view;
  view.unix_ns = unix_ns;
  view.ranks_of_job = run.ranks;
  view.nodes = run.nodes;
  view.quiet_ns = std::numeric_limits<double>::max();
  view.has_ended = !run.files.empty();
  std::map<std::int32_t, double> caused_ns;
  for (const RankFile& file : run.files)
    for (const trace::NodeCalls& row : file.node_calls)
      caused_ns[row.rank] += static_cast<double>(row.caused_ticks) * file.header.ns_per_tick;

  const bool is_first = last_unix_ns_ == 0;
  std::vector<double> computing_ns;  // by file
  std::vector<double> of_running;
  for (const RankFile& file : run.files) {
    LiveRank& rank = view.ranks.emplace_back();
    rank.rank = file.header.rank;
    rank.node = file.header.node;
    Sums sums = sums_of(file, unix_ns, rank);
    sums.caused_ns = caused_ns[rank.rank];
    Past& past = past_[rank.rank];
    view.interval_ns = std::max(view.interval_ns, sums.elapsed_ns - past.sums.elapsed_ns);
    const double own_ns = compare(past, sums, rank);
    view.age_ns = std::max(view.age_ns, sums.elapsed_ns);
    if (!rank.has_ended) view.quiet_ns = std::min(view.quiet_ns, rank.since_ns);
    view.has_ended = view.has_ended && rank.has_ended;
    view.program = clean_text(file.texts->program);
    computing_ns.push_back(own_ns);
    if (!rank.has_ended) of_running.push_back(own_ns);
  }
  if (view.quiet_ns == std::numeric_limits<double>::max()) view.quiet_ns = 0;

  const double median_ns = of_running.size() < 2 ? 0 : lower_median(of_running);
  for (std::size_t i = 0; i < view.ranks.size(); ++i) {
    LiveRank& rank = view.ranks[i];
    Past& past = past_[rank.rank];
    // Where other functions are not timed, a rank that waits for messages seems to compute.
    if (!rank.has_ended && run.files[i].header.timed_count != 0 && computing_ns[i] > 0 &&
        std::max(median_ns, computing_ns[i]) >= least_computing_ns && of_running.size() >= 2) {
      rank.relative_score = std::min(1.0, median_ns / computing_ns[i]);
      if (!is_first && median_ns > 0) note_ratio(past, computing_ns[i] / median_ns, unix_ns, view.interval_ns);
    }
    rank.changed_unix_ns = past.changed_unix_ns;
    rank.change_ratio = past.change_ratio;
  }
  last_unix_ns_ = unix_ns;

  if (!view.has_ended) view.pending = analyse(run).pending;
  const auto score = [](const LiveRank& rank) { return rank.relative_score < 0 ? 2 : rank.relative_score; };
  std::stable_sort(view.ranks.begin(), view.ranks.end(), [&](const LiveRank& a, const LiveRank& b) {
    return a.caused_ns != b.caused_ns ? a.caused_ns > b.caused_ns : score(a) < score(b);
  });
  return view;
}

std::string live_verdict(const LiveView& view) {
  if (view.ranks.empty()) return "No rank has a record yet.";
  if (view.has_ended) return "All ranks have come to MPI_Finalize.";
  const PendingCall* longest = nullptr;
  for (const PendingCall& call : view.pending)
    if (!call.not_arrived.empty() && (longest == nullptr || call.since_unix_ns < longest->since_unix_ns))
      longest = &call;
  if (longest != nullptr) {
    const auto waited_ns = static_cast<double>(view.unix_ns - longest->since_unix_ns);
    const bool is_one =
        longest->not_arrived.size() == 1 && longest->not_arrived[0].first == longest->not_arrived[0].last;
    const bool waits_one = longest->inside.size() == 1 && longest->inside[0].first == longest->inside[0].last;
    if (waited_ns >= noticeable_wait_ns)
      return fmt::format("{} {} {} late now: {} {} {} waited in {} on {} for {}.", is_one ? "Rank" : "Ranks",
                         to_text(longest->not_arrived), is_one ? "is" : "are", waits_one ? "rank" : "ranks",
                         to_text(longest->inside), waits_one ? "has" : "have", longest->name, longest->communicator,
                         time_text(waited_ns));
  }
  const LiveRank& first = view.ranks.front();
  const double share =
      view.interval_ns > 0 ? first.caused_ns / (view.interval_ns * static_cast<double>(view.ranks.size())) : 0;
  if (share >= noticeable_share) {
    const std::string waiting =
        fmt::format("in the last {} the other ranks of its node waited {} for it, {} of all ranks' time",
                    time_text(view.interval_ns), time_text(first.caused_ns), share_text(share));
    if (first.relative_score < 0) return fmt::format("Rank {} comes last: {}.", first.rank, waiting);
    if (first.relative_score < least_score) return fmt::format("Rank {} is late: {}.", first.rank, waiting);
    // It may have waited itself, for a message.
    const LiveRank* slowest = &first;
    for (const LiveRank& rank : view.ranks)
      if (rank.relative_score >= 0 && rank.relative_score < slowest->relative_score) slowest = &rank;
    return fmt::format("Rank {} comes last: {}. {}", first.rank, waiting,
                       slowest->relative_score >= least_score
                           ? "It computes no longer than the others."
                           : fmt::format("It computes no longer than the others, but rank {} does.", slowest->rank));
  }
  return fmt::format("No rank is waited for noticeably: in the last {} none cost {} of all ranks' time.",
                     time_text(view.interval_ns), share_text(noticeable_share));
}

}  // namespace papaya::report
