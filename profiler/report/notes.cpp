#include "profiler/report/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "profiler/analysis/alpha.hpp"
#include "profiler/read/units.hpp"

namespace papaya::report {
namespace {

class Notes {
 public:
  explicit Notes(const Analysis& analysis) : analysis_(analysis), facts_(analysis.record) {}

  std::vector<std::string> write() {
    for (const std::string& problem : facts_.problems) note(problem);
    if (!analysis_.usable) return std::move(notes_);
    describe_ranks();
    describe_clocks();
    describe_events();
    describe_calls();
    return std::move(notes_);
  }

 private:
  void describe_ranks();
  void describe_clocks();
  void describe_events();
  void describe_trace();
  void describe_calls();
  void note(std::string sentence) { notes_.push_back(std::move(sentence)); }

  const Analysis& analysis_;
  const RecordFacts& facts_;
  std::vector<std::string> notes_;
};

void Notes::describe_ranks() {
  if (facts_.unwanted_ranks > 0)
    note(fmt::format(
        "PAPAYA_RANKS leaves out {} of {} ranks: the figures do not include them, and the last rank of a call is "
        "the last of those that recorded.",
        facts_.unwanted_ranks, analysis_.ranks));
  if (!facts_.missing.empty())
    note(fmt::format("No usable record of {}: the figures do not include {}.", ranks_text(facts_.missing),
                     facts_.missing_ranks == 1 ? "it" : "them"));
  for (const RecordFacts::Abort& abort : facts_.aborts)
    note(fmt::format("Rank {} called MPI_Abort with code {}.", abort.rank, abort.code));
  if (std::any_of(analysis_.functions.begin(), analysis_.functions.end(), [](const FunctionFigures& function) {
        return function.name == "MPI_Comm_spawn" || function.name == "MPI_Comm_spawn_multiple";
      }))
    note(
        "MPI_Comm_spawn has started processes, which run natively and leave no record: the figures do not include "
        "them, and calls together with them are not compared.");
  if (facts_.running.empty()) return;
  note(facts_.is_all_running
           ? std::string("The job ended without MPI_Finalize, or is still running.")
           : fmt::format("The job ended without MPI_Finalize on {}, or is still running.", ranks_text(facts_.running)));
}

void Notes::describe_clocks() {
  if (!analysis_.clock_measured) {
    note(
        "The clocks of the nodes were never compared: times between nodes depend on the nodes' wall clocks, which may "
        "be a millisecond or more apart.");
  } else if (!facts_.clocks_compared_twice) {
    note(
        "The clocks of the nodes were compared only once, so their drift is not corrected: the error of times between "
        "nodes grows with the distance from that moment, by up to 100 us a second.");
  }
}

void Notes::describe_events() {
  const std::string kept = fmt::format("{} of {} calls (summed over ranks)", count_text(analysis_.events_kept),
                                       count_text(analysis_.events_begun));
  if (!facts_.is_trace && facts_.missing_events > 0)
    note(
        fmt::format("Arrivals are known for the last {}: older ones were overwritten. Calls, bytes and time are those "
                    "of the whole run. "
                    "PAPAYA_PROFILE=trace keeps more.",
                    kept));
  if (facts_.unread_events > 0)
    note(fmt::format(
        "Arrivals are known for the last {}. Calls, bytes and time are those of the whole run. `papaya report` reads "
        "older calls from the trace, too.",
        kept));
  if (facts_.is_trace && facts_.missing_events > 0) describe_trace();
  if (facts_.missing_weak_events > 0)
    note(
        fmt::format("Call sites, phases and what was saved are known for the last {} of {} calls of weakly consistent "
                    "collectives (summed over ranks): older ones were overwritten. Their table is of the whole run.{}",
                    count_text(facts_.weak_events - facts_.missing_weak_events), count_text(facts_.weak_events),
                    facts_.is_trace ? "" : " PAPAYA_PROFILE=trace keeps more."));
}

// What it does not have.
void Notes::describe_trace() {
  std::string why;
  if (!facts_.trace_limited.empty())
    why += fmt::format(" It reached its limit of {} bytes on {}; PAPAYA_TRACE_LIMIT sets it.",
                       count_text(facts_.trace_limit), ranks_text(facts_.trace_limited));
  if (!facts_.trace_failed.empty())
    why += fmt::format(" It could not be written to its end on {}: {}.", ranks_text(facts_.trace_failed),
                       std::generic_category().message(static_cast<int>(facts_.trace_error)));
  if (why.empty()) why = " They came faster than they could be written, or its file is damaged.";
  note(fmt::format(
      "Dropped from the trace: {} of {} calls (summed over ranks).{} Calls, bytes and time are those of the whole run.",
      count_text(facts_.missing_events), count_text(analysis_.events_begun), why));
}

void Notes::describe_calls() {
  if (analysis_.unrecorded_calls > 0 || analysis_.unrecorded_ns > 0)
    note(
        fmt::format("Not recorded because the program had switched recording off by MPI_Pcontrol: {}, {} (summed over "
                    "ranks). That time is neither under computing nor under MPI.",
                    counted(analysis_.unrecorded_calls, "collective call", "collective calls"),
                    time_text(analysis_.unrecorded_ns)));
  if (facts_.torn_events > 0) {
    note(fmt::format("Left out because torn or damaged: {}.",
                     counted(facts_.torn_events, "record of a call", "records of calls")));
  }
  if (facts_.partial_calls > 0) {
    note(fmt::format("Compared without the ranks that have no usable record, which may have arrived even later: {}.",
                     counted(facts_.partial_calls, "call", "calls")));
  }
  if (facts_.unmatched_calls > 0) {
    note(fmt::format("Not compared because the record of one of the ranks does not contain them: {}.",
                     counted(facts_.unmatched_calls, "call", "calls")));
  }
  if (facts_.intercommunicator_calls > 0)
    note(fmt::format(
        "Not compared because they are on intercommunicators, whose groups wait for each other: {} (summed over "
        "ranks), {} inside.",
        counted(facts_.intercommunicator_calls, "call", "calls"), time_text(facts_.intercommunicator_ns)));
  if (facts_.conflicting_calls > 0) {
    note(
        fmt::format("Ranks disagree about the collective in {}, first {}: an error in the program, or its threads "
                    "share a communicator.",
                    counted(facts_.conflicting_calls, "call", "calls"), facts_.first_conflict));
  }
  if (facts_.untabled_events > 0 || facts_.lost_communicators > 0) {
    note(fmt::format("The program used more communicators than the record holds; not compared on those: {}.",
                     counted(facts_.untabled_events, "call", "calls")));
  }
  if (facts_.lost_call_sites > 0) {
    note(fmt::format("The program has more call sites than the record holds; not recorded: {} (summed over ranks).",
                     counted(facts_.lost_call_sites, "call site", "call sites")));
  }
  if (facts_.lost_weak_collectives > 0)
    note(
        fmt::format("The program has created more kinds of weakly consistent collectives than the record holds; not "
                    "recorded: {} (summed over ranks).",
                    counted(facts_.lost_weak_collectives, "collective", "collectives")));
  if (facts_.inconsistent_communicators > 0) {
    note(fmt::format("Not compared because their ranks cannot be told apart: the calls on {}.",
                     counted(facts_.inconsistent_communicators, "communicator", "communicators")));
  }
  if (facts_.pending_left_out > 0)
    note(fmt::format("Not listed: {}.",
                     counted(facts_.pending_left_out, "more unfinished call", "more unfinished calls")));
  if (analysis_.alpha_nominal && analysis_.compared_calls > 0) {
    note(
        fmt::format("Alpha, the time to send one message, was not measured in this run: imbalance factors use a "
                    "nominal one of {} us + bytes / ({} GB/s).",
                    nominal_latency_ns / 1000, nominal_bytes_per_ns));
  }
}

}  // namespace

std::vector<std::string> notes_on(const Analysis& analysis) {
  return Notes(analysis).write();
}

std::string ranks_text(std::span<const RankRange> ranges) {
  const bool one = ranges.size() == 1 && ranges.front().first == ranges.front().last;
  return fmt::format("{} {}", one ? "rank" : "ranks", to_text(ranges));
}

}  // namespace papaya::report
