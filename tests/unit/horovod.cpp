#include "profiler/analysis/horovod.hpp"

#include <set>

#include "profiler/analysis/communicator_names.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya::report {
namespace {

using support::Record;
using trace::Origin;

constexpr const char* library = "/usr/lib/python3/horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so";

void add(Record& record, std::uint64_t id, std::uint64_t parent, Origin origin, int size, const char* name = "") {
  record.add_communicator(id, size, 0, name);
  record.communicators.back().parent_id = parent;
  record.communicators.back().origin = static_cast<std::int32_t>(origin);
}

std::map<std::uint64_t, std::string> names_of(const std::vector<Record>& records) {
  return communicator_names(support::load(records));
}

CallSiteFigures site(const char* module, const char* function, Collective collective, std::uint64_t largest_bytes) {
  CallSiteFigures figures;
  figures.frames.push_back({Frame{module, 0x10, {}, {}}, function, {}, 0});
  figures.collective = collective;
  figures.largest_bytes = largest_bytes;
  return figures;
}

}  // namespace

TEST_CASE("the library through which Horovod calls MPI") {
  CHECK(is_horovod_library(library));
  CHECK(is_horovod_library("/opt/horovod/tensorflow/mpi_lib.cpython-39-x86_64-linux-gnu.so"));
  CHECK(is_horovod_library("/opt/lib/libhorovod.so"));
  CHECK_FALSE(is_horovod_library("/opt/other/mpi_lib_v2.so"));
  CHECK_FALSE(is_horovod_library("/home/horovod/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so"));
  CHECK_FALSE(is_horovod_library(""));
}

TEST_CASE("what Horovod makes a call for") {
  const auto use = [](const char* function, Collective collective, std::uint64_t bytes) {
    return horovod_use(site(library, function, collective, bytes));
  };
  // By the function, whatever the size.
  CHECK(use("horovod::common::MPIController::CrossRankBitwiseAnd(...)", Collective::allreduce, 8192) ==
        HorovodUse::negotiation);
  CHECK(use("horovod::common::MPIAllreduce::Execute(...)", Collective::allreduce, 16) == HorovodUse::gradients);
  CHECK(use("horovod::common::MPIController::SendFinalTensors(...)", Collective::bcast, 4) == HorovodUse::names);
  CHECK(use("horovod::common::MPIController::RecvReadyTensors(...)", Collective::gather, 4) == HorovodUse::names);
  CHECK(use("horovod::common::MPIBroadcast::Execute(...)", Collective::bcast, 4) == HorovodUse::broadcast);
  // Without it by collective and size.
  CHECK(use("", Collective::allreduce, 16) == HorovodUse::negotiation);
  CHECK(use("", Collective::allreduce, 20) == HorovodUse::gradients);
  CHECK(use("", Collective::allreduce, 1 << 20) == HorovodUse::gradients);
  CHECK(use("", Collective::gatherv, 100) == HorovodUse::names);
  CHECK(use("", Collective::bcast, 100) == HorovodUse::broadcast);
  CHECK(use("", Collective::barrier, 0) == HorovodUse::other);
  CHECK(horovod_use(site("/usr/bin/app", "MPIAllreduce::Execute", Collective::allreduce, 16)) == HorovodUse::none);
}

TEST_CASE("communicators are named by their origin") {
  std::vector<Record> records = support::records(2);
  for (Record& record : records) {
    add(record, 10, support::world_id, Origin::dup, 2, "MPI COMMUNICATOR 3 DUP FROM 0");
    add(record, 11, 10, Origin::dup, 2);
    add(record, 13, 11, Origin::node_split, 2);
    add(record, 14, 13, Origin::dup, 2, "ocean");
    add(record, 15, 14, Origin::group, 2);
    add(record, 16, 99, Origin::dup, 2);  // a parent without a record
    add(record, 17, 18, Origin::dup, 2);  // a circle
    add(record, 18, 17, Origin::dup, 2);
    add(record, 19, 19, Origin::split, 2);
    add(record, 20, support::world_id, static_cast<Origin>(77), 2);
  }
  add(records[0], 12, 11, Origin::split, 1);
  const auto names = names_of(records);
  CHECK(names.at(support::world_id) == "MPI_COMM_WORLD");
  CHECK(names.at(10) == "dup of MPI_COMM_WORLD");
  CHECK(names.at(11) == "dup of MPI_COMM_WORLD #2");
  CHECK(names.at(12) == "split of MPI_COMM_WORLD, rank 0");
  CHECK(names.at(13) == "node split of MPI_COMM_WORLD");
  CHECK(names.at(14) == "ocean");
  CHECK(names.at(15) == "group of ocean");
  CHECK(names.at(16) == "communicator 0x10");
  CHECK(names.at(17) == "communicator 0x11");
  CHECK(names.at(18) == "communicator 0x12");
  CHECK(names.at(19) == "communicator 0x13");
  CHECK(names.at(20) == "communicator 0x14");
}

TEST_CASE("no two communicators have one name, whatever the program calls them") {
  std::vector<Record> all = support::records(1);
  const char* const given[] = {"a", "a", "a #2", "a", "b #2", "b", "b"};
  std::uint64_t id = 1;
  for (const char* const name : given) add(all[0], ++id, 0, Origin::unknown, 1, name);
  std::set<std::string> names;
  for (const auto& [of, name] : names_of(all)) {
    INFO(name);
    CHECK(names.insert(name).second);
  }
}

TEST_CASE("Horovod's communicators, thread and calls") {
  std::vector<Record> records = support::records(2);
  for (Record& record : records) {
    add(record, 10, support::world_id, Origin::dup, 2);
    add(record, 11, support::world_id, Origin::dup, 2);
    add(record, 12, 11, Origin::node_split, 2);
    add(record, 13, 11, Origin::split, 2);
    const std::uint64_t own = record.add_call_site({{"/usr/bin/app", 0x40}});
    const std::uint64_t its = record.add_call_site({{library, 0x80}});
    const auto call = [&](std::uint64_t communicator, std::uint64_t where, std::uint32_t thread, double at) {
      trace::Event& event = record.add_call(Collective::allreduce, 0, at, at + 10, 16, -1, communicator);
      event.call_site = where;
      event.thread = thread;
    };
    call(10, own, 0, 100);
    call(11, its, 1, 200);
    call(12, its, 1, 300);
    call(13, its, 1, 400);
    record.finalize(500);
  }
  const auto names = names_of(records);
  CHECK(names.at(10) == "dup of MPI_COMM_WORLD");
  CHECK(names.at(11) == "Horovod global (dup of MPI_COMM_WORLD)");
  CHECK(names.at(12) == "Horovod local (node split of MPI_COMM_WORLD)");
  CHECK(names.at(13) == "Horovod cross (split of MPI_COMM_WORLD)");
  const Report analysis = support::analyse(records);
  CHECK(analysis.horovod_library == "mpi_lib_v2.cpython-311-x86_64-linux-gnu.so");
  CHECK(analysis.horovod_threads == "thread 1");
  const std::string text = to_text(analysis);
  CHECK(text.find("\nHorovod (thread 1 of each rank calls MPI") != std::string::npos);
  CHECK(text.find("negotiation: which gradients are ready on all ranks      6") != std::string::npos);
  CHECK(text.find("Horovod negotiation: mpi_lib_v2") != std::string::npos);
}

TEST_CASE("a function written in Python") {
  std::vector<Record> records = support::records(1);
  const std::string source_and_function("/home/user/train.py\0Model.step", 30);
  const std::uint64_t number = records[0].add_call_site({{"", 42}});
  trace::Module& module = records[0].modules.emplace_back();
  records[0].frames.back().module = 1;
  source_and_function.copy(module.path, sizeof module.path - 1);
  module.language = static_cast<std::uint32_t>(trace::Language::python);
  records[0].add_call(Collective::allreduce, 0, 100, 110).call_site = number;
  records[0].finalize(500);
  const Report analysis = support::analyse(records);
  REQUIRE(analysis.call_sites.size() == 1);
  CHECK(call_site_text(analysis.call_sites[0].frames) == "Model.step (train.py:42)");
}

}  // namespace papaya::report
