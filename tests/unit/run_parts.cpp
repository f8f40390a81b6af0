// A large run that is read in parts of time gives the figures of one that is read through.
#include "profiler/analysis/run_parts.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "profiler/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/readers.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using support::Record;

constexpr int ranks = 6;
constexpr std::uint64_t pair_id = 70;  // of ranks 2n and 2n + 1: + n

// Rank 4 computes longer, rank 1 now and then; every third call is of a pair. With a call that a rank leaves out.
std::vector<Record> long_run(int calls, bool is_whole) {
  std::mt19937 random(7);
  std::vector<Record> all = support::records(ranks);
  std::vector<double> left(ranks, 1000);
  for (int rank = 0; rank < ranks; ++rank) {
    Record& one = all[rank];
    one.capacity = 1 << 14;
    one.add_communicator(pair_id + rank / 2, 2, rank % 2, "pair");
    one.add_timed("MPI_Send", MpiKind::point_to_point, 5, 1e5);
    // In other orders by rank.
    for (const int site : {0, 1}) one.add_call_site({{"/bin/app", static_cast<std::uint64_t>((site + rank) % 2) + 1}});
  }
  std::uint64_t of_world = 0;
  std::uint64_t of_pair = 0;
  for (int call = 0; call < calls; ++call) {
    const bool is_pair = call % 3 == 2;
    std::vector<double> arrivals(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      arrivals[rank] =
          left[rank] + 5000 + random() % 1000 + (rank == 4 ? 20000 : 0) + (rank == 1 && call % 50 == 0 ? 90000 : 0);
    const double last = *std::max_element(arrivals.begin(), arrivals.end());
    for (int rank = 0; rank < ranks; ++rank) {
      if (!is_whole && call == calls / 2 && rank == 3) continue;
      const double last_of_it =
          is_pair ? std::max(arrivals[rank], arrivals[rank % 2 == 0 ? rank + 1 : rank - 1]) : last;
      left[rank] = last_of_it + 300 + random() % 100;
      trace::Event& event = all[rank].add_call(Collective::allreduce, is_pair ? of_pair : of_world, arrivals[rank],
                                               left[rank], 64, -1, is_pair ? pair_id + rank / 2 : support::world_id);
      event.call_site = static_cast<std::uint32_t>(1 + (call % 5 == 0 ? rank + 1 : rank) % 2);
      all[rank].add_interval(500);
    }
    ++(is_pair ? of_pair : of_world);
  }
  const double end = *std::max_element(left.begin(), left.end());
  for (Record& one : all) one.finalize(end + 1e5);
  return all;
}

void check_alike(const report::Analysis& whole, const report::Analysis& parts) {
  const auto is_near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); };
  CHECK(parts.compared_calls == whole.compared_calls);
  CHECK(parts.events_kept == whole.events_kept);
  CHECK(parts.record.unmatched_calls == whole.record.unmatched_calls);
  CHECK(parts.record.torn_events == whole.record.torn_events);
  CHECK(is_near(parts.waiting_ns, whole.waiting_ns));
  REQUIRE(parts.late_ranks.size() == whole.late_ranks.size());
  for (std::size_t i = 0; i < whole.late_ranks.size(); ++i) {
    const report::RankFigures& a = whole.late_ranks[i];
    const report::RankFigures& b = parts.late_ranks[i];
    CAPTURE(i, a.rank);
    CHECK(b.rank == a.rank);
    CHECK(b.compared == a.compared);
    CHECK(b.times_last == a.times_last);
    CHECK(is_near(b.late_ns, a.late_ns));
    CHECK(is_near(b.waited_ns, a.waited_ns));
    CHECK(is_near(b.caused_ns, a.caused_ns));
    CHECK(is_near(b.largest_delay_ns, a.largest_delay_ns));
    // What comes over a cut in another communicator's collective is not known.
    CHECK(std::abs(b.began_ns - a.began_ns) < 0.02 * whole.waiting_ns);
    CHECK(std::abs(b.passed_on_ns - a.passed_on_ns) < 0.02 * whole.waiting_ns);
    CHECK(std::abs(b.unknown_origin_ns - a.unknown_origin_ns) < 0.02 * whole.waiting_ns);
  }
  REQUIRE(parts.communicators.size() == whole.communicators.size());
  for (std::size_t i = 0; i < whole.communicators.size(); ++i) {
    CHECK(parts.communicators[i].id == whole.communicators[i].id);
    CHECK(parts.communicators[i].calls == whole.communicators[i].calls);
    CHECK(parts.communicators[i].compared == whole.communicators[i].compared);
    CHECK(is_near(parts.communicators[i].waiting_ns, whole.communicators[i].waiting_ns));
  }
  REQUIRE(parts.call_sites.size() == whole.call_sites.size());
  for (std::size_t i = 0; i < whole.call_sites.size(); ++i) {
    CHECK(parts.call_sites[i].calls == whole.call_sites[i].calls);
    CHECK(parts.call_sites[i].compared == whole.call_sites[i].compared);
    CHECK(is_near(parts.call_sites[i].waiting_ns, whole.call_sites[i].waiting_ns));
    CHECK(parts.call_sites[i].pattern.pattern == whole.call_sites[i].pattern.pattern);
    CHECK(parts.call_sites[i].pattern.straggler() == whole.call_sites[i].pattern.straggler());
  }
  REQUIRE(parts.costly_calls.size() == whole.costly_calls.size());
  for (std::size_t i = 0; i < whole.costly_calls.size(); ++i)
    CHECK(parts.costly_calls[i].call == whole.costly_calls[i].call);
  for (std::size_t c = 0; c < whole.collectives.size(); ++c) {
    CHECK(is_near(parts.collectives[c].imbalance.cluster.worst_ns, whole.collectives[c].imbalance.cluster.worst_ns));
    CHECK(is_near(parts.collectives[c].excess.p99_ns, whole.collectives[c].excess.p99_ns));
  }
  // As if ranks waited for each other where parts meet. Which of the calls of two communicators a rank's excess is
  // taken before depends on where the replay begins.
  CHECK(std::abs(parts.what_if.all_ns - whole.what_if.all_ns) < 0.2 * whole.what_if.all_ns);
  CHECK(std::abs(parts.savings.no_excess.run_ns - whole.savings.no_excess.run_ns) <
        0.05 * whole.savings.no_excess.run_ns);
  CHECK(std::abs(parts.efficiency.transfer - whole.efficiency.transfer) < 0.01);
  CHECK(std::abs(parts.efficiency.serialisation - whole.efficiency.serialisation) < 0.01);
}

TEST_CASE("a run that is read in parts gives the figures of one that is read through") {
  for (const bool is_whole : {true, false}) {
    const support::Folder folder;
    folder.write(long_run(3000, is_whole));
    const report::Run run = report::load_run(folder.path(), {}, report::Extent::streamed_rings);
    const report::Analysis whole = report::analyse(run);
    REQUIRE(whole.compared_calls > 0);
    CHECK(whole.record.unmatched_calls == (is_whole ? 0 : 1));
    REQUIRE(report::parts_of(run, report::Clocks(run), 1000).size() > 10);
    for (const std::size_t events : {1000, 6000}) {
      CAPTURE(is_whole, events);
      check_alike(whole, report::analyse(run, {}, {}, events));
    }
  }
}

TEST_CASE("who observes a run in parts sees each call once, with its call site") {
  const support::Folder folder;
  folder.write(long_run(2000, true));
  const report::Run run = report::load_run(folder.path(), {}, report::Extent::streamed_rings);
  const auto observed = [&](std::size_t events) {
    std::map<std::uint64_t, std::uint64_t> calls;  // by the offset of the call site
    std::map<std::size_t, std::uint64_t> by_number;
    const report::Analysis analysis = report::analyse(
        run, [&](const report::ComparedCall& call) { ++by_number[call.site]; }, {}, events);
    for (const report::CallSiteFigures& site : analysis.call_sites)
      calls[site.frames.at(0).offset] = by_number[site.number];
    return calls;
  };
  const auto whole = observed(report::events_of_part);
  CHECK(whole.at(1) + whole.at(2) == report::analyse(run).compared_calls);
  CHECK(whole.at(1) != whole.at(2));
  CHECK(observed(1000) == whole);
}

nlohmann::json json_of(const report::Analysis& analysis) {
  report::Report report{analysis, {}, {}, {}, {}};
  report::put_in_words(report);
  return nlohmann::json::parse(report::to_json(report));
}

// As far as sums in another order are.
void check_same(const nlohmann::json& shared, const nlohmann::json& alone, const std::string& path = "") {
  CAPTURE(path);
  if (alone.is_number_float() && shared.is_number()) {
    CHECK(shared.get<double>() == Approx(alone.get<double>()).epsilon(1e-9));
  } else if (!alone.is_structured()) {
    CHECK(shared == alone);
  } else {
    REQUIRE(shared.size() == alone.size());
    for (const auto& [key, value] : alone.items())
      check_same(alone.is_array() ? shared.at(std::stoul(key)) : shared.at(key), value, path + "/" + key);
  }
}

TEST_CASE("a run that processes read together gives the figures of one that is read alone") {
  const support::Folder folder;
  folder.write(long_run(3000, false));
  const auto load = [&] { return report::load_run(folder.path(), {}, report::Extent::streamed_rings); };
  const report::Run run = load();
  for (const std::size_t processes : {1, 2, 3, 5, 8}) {
    CAPTURE(processes);
    // So that each has one part or more.
    const std::size_t parts = report::threads_for_reading(ranks) * processes;
    const std::size_t events = report::events_of(run) / parts;
    REQUIRE(report::parts_of(run, report::Clocks(run), events).size() == parts);
    support::ReaderThreads readers(processes + 1);
    const report::Analysis shared =
        readers.run([&](report::Readers& all) { return report::analyse(run, all, events); },
                    [&](report::Readers& all) { report::help_to_analyse(all, load, events); });
    CHECK(readers.asked_for() == processes);
    CHECK(readers.bytes() >= 10'000 * (processes - 1));
    check_same(json_of(shared), json_of(report::analyse(run, {}, {}, events)));
  }
}

TEST_CASE("where a process cannot do its share of a run, number 0 reads it alone, and nobody waits for ever") {
  const support::Folder folder;
  folder.write(long_run(2000, true));
  const auto load = [&] { return report::load_run(folder.path(), {}, report::Extent::streamed_rings); };
  const report::Run run = load();
  constexpr std::size_t processes = 4;
  const std::size_t events = report::events_of(run) / (report::threads_for_reading(ranks) * processes);
  const nlohmann::json alone = json_of(report::analyse(run, {}, {}, events));
  const auto check = [&](support::ReaderThreads& readers, const std::function<report::Run(std::size_t)>& loaded_by) {
    const report::Analysis shared = readers.run([&](report::Readers& all) { return report::analyse(run, all, events); },
                                                [&](report::Readers& all) {
                                                  report::help_to_analyse(
                                                      all, [&] { return loaded_by(all.number()); }, events);
                                                });
    CHECK(readers.asked_for() == processes);
    check_same(json_of(shared), alone);
  };
  SECTION("it has no such folder, or another one, or no memory") {
    for (const int how : {0, 1, 2}) {
      CAPTURE(how);
      support::ReaderThreads readers(processes);
      check(readers, [&](std::size_t number) {
        if (number != 2) return load();
        if (how == 0) return report::load_run(folder.path() + "/elsewhere", {}, report::Extent::streamed_rings);
        if (how == 2) throw std::bad_alloc();
        report::Run other = load();
        ++other.files[1].header.event_count;
        return other;
      });
    }
  }
  // What is sent between two after the answer and the decision: sums of the first reading up and down, of the second
  // up.
  SECTION("a message is lost") {
    for (std::size_t from = 0; from < processes; ++from)
      for (std::size_t to = 0; to < processes; ++to)
        for (const std::size_t which : {0, 1, 2}) {
          if (from == 0 && which == 0) continue;  // the decision, a byte
          CAPTURE(from, to, which);
          support::ReaderThreads readers(processes);
          readers.is_lost = [&](std::size_t a, std::size_t b, std::size_t c) {
            return a == from && b == to && c == which;
          };
          check(readers, [&](std::size_t) { return load(); });
        }
  }
}

// A communicator that is used again after more calls than are read before a part.
TEST_CASE("a rank's computing before its first call of a part does not count from the beginning of the run") {
  std::vector<Record> all = support::records(4);
  std::vector<double> left(4, 1000);
  for (int rank = 0; rank < 4; ++rank) {
    all[rank].capacity = 1 << 13;
    all[rank].add_communicator(pair_id + rank / 2, 2, rank % 2, "pair");
    all[rank].add_call_site({{"/bin/app", 1}});
  }
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    // Both pairs compute as long, but one in larger pieces.
    for (int pair = 0; pair < 2; ++pair) {
      const int calls = pair == 0 ? 100 : 50;
      for (int call = 0; call < calls; ++call) {
        const double last = left[2 * pair] + 500'000.0 / calls;
        for (int rank = 2 * pair; rank < 2 * pair + 2; ++rank) {
          all[rank].add_call(Collective::allreduce, round * calls + call, last - random() % 100, last, 8, -1,
                             pair_id + pair);
          left[rank] = last;
        }
      }
    }
    const double last = left[0] + 1000;
    for (int rank = 0; rank < 4; ++rank) {
      all[rank].add_call(Collective::barrier, round, last - random() % 100, last);
      left[rank] = last;
    }
  }
  for (Record& one : all) one.finalize(left[0] + 1000);
  const support::Folder folder;
  folder.write(all);
  const report::Run run = report::load_run(folder.path(), {}, report::Extent::streamed_rings);
  REQUIRE(report::parts_of(run, report::Clocks(run), 1000).size() > 5);
  const report::Analysis whole = report::analyse(run);
  const report::Analysis parts = report::analyse(run, {}, {}, 1000);
  REQUIRE(parts.compared_calls == whole.compared_calls);
  for (const report::RankFigures& rank : whole.late_ranks) {
    const report::RankFigures& other = support::rank_of(parts, rank.rank);
    CAPTURE(rank.rank, rank.long_ns, other.long_ns);
    CHECK(std::abs(other.long_ns - rank.long_ns) < 0.01 * left[0]);
  }
}

TEST_CASE("a run in parts whose rings wrapped, or that has not ended") {
  const support::Folder folder;
  std::vector<Record> all = long_run(3000, true);
  for (Record& one : all) one.capacity = 1024;
  folder.write(all);
  const report::Run run = report::load_run(folder.path(), {}, report::Extent::streamed_rings);
  const report::Analysis whole = report::analyse(run);
  const report::Analysis parts = report::analyse(run, {}, {}, 1000);
  CHECK(whole.compared_calls > 900);
  CHECK(parts.compared_calls == whole.compared_calls);
  CHECK(parts.record.missing_events == whole.record.missing_events);
  CHECK(parts.record.unmatched_calls == whole.record.unmatched_calls);
  CHECK(std::abs(parts.waiting_ns - whole.waiting_ns) < 1e-9 * whole.waiting_ns);

  all[2].header.end_ticks = 0;
  const support::Folder unended;
  unended.write(all);
  const report::Run other = report::load_run(unended.path(), {}, report::Extent::streamed_rings);
  CHECK(report::parts_of(other, report::Clocks(other), 1000).size() == 1);
}

}  // namespace
}  // namespace papaya
