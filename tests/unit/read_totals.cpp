// Records of a papaya that knew fewer collectives and forms of calls.

#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {
namespace {

report::Run run_of(const support::Folder& folder) {
  return report::load_run(folder.path());
}

TEST_CASE("a record that tells of fewer collectives and forms than there are") {
  auto all = support::records(3);
  for (support::Record& record : all) {
    record.add_call(Collective::allreduce, 0, 1000, 2000, 8, -1);
    record.add_call(Collective::exscan, 1, 3000, 4000, 8, -1, support::world_id, Form::persistent);
    record.algorithms[1].calls[index_of(Collective::exscan)] = 10;
    record.algorithms[1].nonblocking[index_of(Collective::bcast)] = 5;
    record.totals.native_calls_by_reason[index_of(Collective::allreduce)][2] = 10;
    record.totals.native_nonblocking_by_reason[index_of(Collective::exscan)][1] = 3;
    record.finalize(300000);
  }
  const support::Folder today;
  const support::Folder before;
  today.write(all);
  for (const support::Record& record : all)
    before.write(support::Record::file_name(record.header.rank), record.bytes_of_17_collectives());
  CHECK(run_of(before).problems.empty());
  CHECK(report::to_json(report::report_on(run_of(before))) == report::to_json(report::report_on(run_of(today))));
  all[0].header.collectives = collective_count + 1;
  all[1].header.collectives = 0;
  all[1].header.forms = form_count + 1;
  const support::Folder later;
  later.write(all);
  REQUIRE(run_of(later).problems.size() >= 2);
  CHECK(run_of(later).problems[0].trouble == report::Trouble::damaged);
  CHECK(run_of(later).problems[1].trouble == report::Trouble::damaged);
}

}  // namespace
}  // namespace papaya
