// What ranks wait for, with arrivals planted so that each kind has a time of its own.
#include <array>
#include <nlohmann/json.hpp>

#include "profiler/analysis/wait_kinds.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

using report::WaitKind;

struct Planted {
  Collective collective;
  int root;
  std::array<double, 3> arrival_ms;
  std::array<double, 3> exit_ms;
};

report::Report analysed(const std::vector<Planted>& calls) {
  auto all = support::records(3);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t call = 0; call < calls.size(); ++call)
      all[rank].add_call(calls[call].collective, call, calls[call].arrival_ms[rank] * 1e6,
                         calls[call].exit_ms[rank] * 1e6, 8, calls[call].root);
    all[rank].finalize(100e6);
  }
  return support::analyse(all);
}

TEST_CASE("waits: by what they are for, as Scalasca tells them apart") {
  const report::Report report = analysed({
      {Collective::barrier, -1, {0, 1, 3}, {3, 3.5, 4}},       // 3 + 2, and left 0.5 and 1 after the first
      {Collective::bcast, 1, {10, 12, 11}, {12, 12, 12}},      // 2 + 1 for rank 1
      {Collective::scatterv, 1, {15, 14, 14}, {15, 15, 15}},   // the root is ahead: nobody waits
      {Collective::reduce, 0, {20, 21, 24}, {24, 21, 24}},     // 4, of rank 0
      {Collective::gather, 2, {25, 27, 26}, {25, 27, 27}},     // 1, of rank 2
      {Collective::scan, -1, {32, 31, 30}, {32, 32, 32}},      // 1 of rank 1, 2 of rank 2
      {Collective::exscan, -1, {33, 34, 35}, {35, 35, 35}},    // in their order: nobody waits
      {Collective::allreduce, -1, {40, 40, 41}, {41, 42, 44}}  // 1 + 1, and left 1 and 3 after the first
  });
  const auto ms = [&](WaitKind kind) { return report.waits[index_of(kind)].ns / 1e6; };
  CHECK(ms(WaitKind::barrier) == Approx(5));
  CHECK(ms(WaitKind::root) == Approx(3));
  CHECK(ms(WaitKind::as_root) == Approx(5));
  CHECK(ms(WaitKind::lower_ranks) == Approx(3));
  CHECK(ms(WaitKind::all) == Approx(2));
  double sum_ns = 0;
  for (const report::WaitFigures& figures : report.waits) sum_ns += figures.ns;
  CHECK(sum_ns == Approx(report.waiting_ns));
  CHECK(report.waits[index_of(WaitKind::barrier)].late_exit_ns == Approx(1.5e6));
  CHECK(report.waits[index_of(WaitKind::all)].late_exit_ns == Approx(4e6));
  CHECK(report.waits[index_of(WaitKind::root)].late_exit_ns == 0);
  CHECK(report.waits[index_of(WaitKind::as_root)].most_rank == 0);
  CHECK(report.waits[index_of(WaitKind::lower_ranks)].most_rank == 2);
  const std::array<std::array<double, report::wait_kind_count>, 3> of_ranks{
      {{1, 3, 2, 4, 0}, {1, 2, 0, 0, 1}, {0, 0, 1, 1, 2}}};
  for (int rank = 0; rank < 3; ++rank) {
    const report::RankFigures& figures = support::rank_of(report, rank);
    double rank_ns = 0;
    for (std::size_t kind = 0; kind < report::wait_kind_count; ++kind) {
      CAPTURE(rank, kind);
      CHECK(figures.waited_ns_in[kind] / 1e6 == Approx(of_ranks[static_cast<std::size_t>(rank)][kind]).margin(1e-6));
      rank_ns += figures.waited_ns_in[kind];
    }
    CHECK(rank_ns == Approx(figures.waited_ns));
  }

  const auto json = nlohmann::json::parse(report::to_json(report));
  REQUIRE(json["waits"].size() == 5);
  CHECK(json["waits"][1]["kind"] == "barrier");
  CHECK(json["waits"][1]["scalasca"] == "Wait at Barrier");
  CHECK(json["waits"][1]["seconds"].get<double>() == Approx(0.005));
  CHECK(json["waits"][1]["late_exit_seconds"].get<double>() == Approx(0.0015));
  CHECK(json["waits"][2]["late_exit_seconds"].is_null());
  for (const auto& one : json["collectives"])
    if (one["name"] == "MPI_Gather") CHECK(one["waits_for"] == "as_root");
  const std::string text = report::to_text(report);
  for (const char* const pattern : {"Wait at N x N", "Wait at Barrier", "Late Broadcast", "Early Reduce", "Early Scan",
                                    "N x N Completion", "Barrier Completion"}) {
    CAPTURE(pattern);
    CHECK(support::contains(text, pattern));
  }
}

TEST_CASE("waits: without any there is nothing to show, and who is still inside has not left late") {
  const report::Report balanced = analysed({{Collective::bcast, 0, {1, 1, 1}, {2, 2, 2}}});
  CHECK(nlohmann::json::parse(report::to_json(balanced))["waits"].empty());
  CHECK(!support::contains(report::to_text(balanced), "What ranks wait for"));
  auto all = support::records(2);
  all[0].add_call(Collective::barrier, 0, 1e6, 3e6);
  all[1].add_call(Collective::barrier, 0, 2e6, -1);
  const report::Report inside = support::analyse(all);
  CHECK(inside.waits[index_of(WaitKind::barrier)].ns == Approx(1e6));
  CHECK(inside.waits[index_of(WaitKind::barrier)].late_exit_ns == 0);
}

}  // namespace
}  // namespace papaya
