// What `papaya top` finds in records read while they grow.
#include "profiler/analysis/live_view.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::LiveRank;
using report::LiveView;
using support::Record;

constexpr std::int64_t begin_unix_ns = 1'700'000'000'000'000'000;

std::int64_t unix_ns(double ns) {
  return begin_unix_ns + static_cast<std::int64_t>(ns);
}

const LiveRank& rank_of(const LiveView& view, std::int32_t rank) {
  return *std::find_if(view.ranks.begin(), view.ranks.end(), [rank](const LiveRank& one) { return one.rank == rank; });
}

// A run that goes on: in each step all ranks compute and meet in an allreduce.
struct Job {
  explicit Job(int ranks) : records(support::records(ranks)) {
    for (Record& record : records) {
      record.header.begin_unix_ns = begin_unix_ns;
      record.header.init_ticks = Record::ticks(0);
      record.capacity = 1024;
      record.node_calls.resize(records.size());
      record.add_timed("MPI_Test", MpiKind::completion, 1, 0);
    }
  }

  // Rank `late` computes `late_ns`, the others `usual_ns`; the row of what it cost is rank 0's.
  void step(std::size_t late, double late_ns, double usual_ns) {
    const double exit_ns = now_ns + std::max(late_ns, usual_ns) + 1e3;
    for (std::size_t i = 0; i < records.size(); ++i)
      records[i].add_call(Collective::allreduce, calls, now_ns + (i == late ? late_ns : usual_ns), exit_ns);
    trace::NodeCalls& row = records[0].node_calls[late];
    row.rank = static_cast<std::int32_t>(late);
    row.collective = static_cast<std::uint8_t>(Collective::allreduce);
    row.used = 1;
    ++row.calls;
    ++row.times_last;
    row.most_ticks = std::max(row.most_ticks, Record::ticks(late_ns - usual_ns) - Record::ticks(0));
    row.imbalance_ticks += Record::ticks(late_ns - usual_ns) - Record::ticks(0);
    row.caused_ticks += (records.size() - 1) * (Record::ticks(late_ns - usual_ns) - Record::ticks(0));
    now_ns = exit_ns;
    ++calls;
  }

  LiveView look() { return watch.look(support::load(records), unix_ns(now_ns)); }

  std::vector<Record> records;
  report::Watch watch;
  double now_ns = 0;
  std::uint64_t calls = 0;
};

TEST_CASE("live view: shares, waiting and scores of what was looked at") {
  Job job(3);
  for (int i = 0; i < 5; ++i) job.step(1, 10e6, 10e6);
  LiveView view = job.look();
  CHECK(view.ranks_of_job == 3);
  CHECK_FALSE(view.has_ended);
  for (const LiveRank& rank : view.ranks) {
    CHECK(rank.computing_share == Approx(1).margin(0.01));
    CHECK(rank.relative_score == Approx(1).margin(0.01));
    CHECK(rank.individual_score < 0);  // there is no past
    CHECK(rank.all_calls == 5);
  }
  CHECK(live_verdict(view).find("No rank is waited for noticeably") == 0);

  for (int i = 0; i < 5; ++i) job.step(1, 10e6, 10e6);
  job.look();
  for (int i = 0; i < 5; ++i) job.step(2, 40e6, 10e6);
  view = job.look();
  CHECK(view.interval_ns == Approx(200e6).epsilon(0.01));
  CHECK(view.ranks.front().rank == 2);  // most waited for first
  CHECK(rank_of(view, 2).caused_ns == Approx(5 * 2 * 30e6).epsilon(0.01));
  CHECK(rank_of(view, 2).relative_score == Approx(0.25).epsilon(0.01));
  CHECK(rank_of(view, 2).individual_score == Approx(0.25).epsilon(0.01));
  CHECK(rank_of(view, 0).relative_score == Approx(1));
  CHECK(rank_of(view, 0).individual_score == Approx(1).epsilon(0.01));
  CHECK(rank_of(view, 0).collectives_share == Approx(0.75).epsilon(0.01));
  CHECK(live_verdict(view).find(
            "Rank 2 is late: in the last 200 ms the other ranks of its node waited 300 ms for it, 50 %") == 0);
}

TEST_CASE("live view: of next to no computing there is no score") {
  Job job(2);
  for (int i = 0; i < 500; ++i) job.step(1, 4e3, 4e3);
  job.look();
  job.step(1, 100e3, 100e3);  // longer than usual, but one call says nothing of that
  for (const LiveRank& rank : job.look().ranks) CHECK(rank.individual_score < 0);
}

TEST_CASE("live view: the rank that comes last is not blamed for what another one computes") {
  Job job(3);
  for (int i = 0; i < 5; ++i) job.step(2, 40e6, 10e6);
  CHECK(live_verdict(job.look()).starts_with("Rank 2 is late: "));
  job.records[2].add_timed("MPI_Recv", MpiKind::point_to_point, 5, 150e6);
  job.watch = {};
  CHECK(live_verdict(job.look()).ends_with(" It computes no longer than the others."));
  job.records[1].events.clear();
  job.records[1].header.event_count = 0;
  job.records[1].totals = {};
  job.watch = {};
  CHECK(live_verdict(job.look()).ends_with(" It computes no longer than the others, but rank 1 does."));
  for (Record& record : job.records) record.timed.clear();
  job.watch = {};
  CHECK(live_verdict(job.look()).starts_with("Rank 2 comes last: "));  // nothing tells why
}

TEST_CASE("live view: who is late now, though a call is not over") {
  Job job(3);
  for (int i = 0; i < 3; ++i) job.step(0, 10e6, 10e6);
  job.look();
  for (const std::size_t rank : {0, 2}) {
    const std::uint32_t site = job.records[rank].add_call_site({{"app", 0x40}});
    job.records[rank].add_call(Collective::allreduce, job.calls, job.now_ns + 10e6, -1).call_site = site;
  }
  job.now_ns += 1010e6;
  const LiveView view = job.look();
  CHECK(live_verdict(view) ==
        "Rank 1 is late now: ranks 0, 2 have waited in MPI_Allreduce on MPI_COMM_WORLD for 1.00 s.");
  CHECK(rank_of(view, 0).inside == "MPI_Allreduce");
  CHECK(rank_of(view, 0).since_ns == Approx(1e9));
  CHECK(rank_of(view, 0).call_site.size() == 1);
  CHECK(rank_of(view, 0).collectives_share == Approx(1000.0 / 1010).epsilon(0.01));
  CHECK(rank_of(view, 1).inside.empty());
  CHECK(rank_of(view, 1).since_ns == Approx(1010e6));
  CHECK(rank_of(view, 1).computing_share == Approx(1));
  CHECK(rank_of(view, 1).relative_score == Approx(10.0 / 1010).epsilon(0.01));
  CHECK(rank_of(view, 1).individual_score == Approx(10.0 / 1010).epsilon(0.01));
  CHECK(view.quiet_ns == Approx(1000e6));

  for (Record& record : job.records) record.finalize(job.now_ns);
  CHECK(job.look().has_ended);
}

TEST_CASE("live view: when a rank's speed changed") {
  Job job(4);
  const auto look = [&](double late_ns, double usual_ns) {
    for (int i = 0; i < 4; ++i) job.step(3, late_ns, usual_ns);
    return job.look();
  };
  // The program computes longer, which is no rank's change; one long look is none either.
  for (int i = 0; i < 6; ++i) look(10e6, 10e6);
  look(30e6, 10e6);
  for (int i = 0; i < 6; ++i) look(20e6, 20e6);
  for (const LiveRank& rank : look(20e6, 20e6).ranks) CHECK(rank.changed_unix_ns == 0);
  const std::int64_t changed = unix_ns(job.now_ns);
  LiveView view;
  for (int i = 0; i < 3; ++i) view = look(30e6, 20e6);
  CHECK(rank_of(view, 3).change_ratio == Approx(1.5).epsilon(0.01));
  CHECK(static_cast<double>(rank_of(view, 3).changed_unix_ns - changed) == Approx(0).margin(10e6));
  CHECK(rank_of(view, 0).changed_unix_ns == 0);
  // And back.
  for (int i = 0; i < 6; ++i) view = look(20e6, 20e6);
  CHECK(rank_of(view, 3).change_ratio == Approx(2.0 / 3).epsilon(0.01));
}

}  // namespace
}  // namespace papaya
