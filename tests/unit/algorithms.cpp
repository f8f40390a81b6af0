// Kernels, the reduction tree, communicator identity, the recorder's file.
#include <unistd.h>

#include <bit>
#include <complex>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/hierarchy.hpp"
#include "algorithms/kernels/reduce.hpp"
#include "algorithms/patterns/tree.hpp"
#include "algorithms/transport/deposit_arena.hpp"
#include "base/old_names.hpp"
#include "profiler/record/identity.hpp"
#include "profiler/record/recorder.hpp"
#include "tests/catch.hpp"

namespace papaya {

namespace {

using kernels::ElementType;
using kernels::Operation;

template <class T>
T apply(ElementType type, Operation operation, T left, T right) {
  const Reduction::Combine combine = kernels::find(type, operation);
  REQUIRE(combine != nullptr);
  T out{};
  combine(Reduction{}, &left, &right, &out, 1);
  return out;
}

struct DoubleInt {
  double value;
  int index;
};

}  // namespace

TEST_CASE("kernels compute what MPI defines") {
  CHECK(apply<double>(ElementType::f64, Operation::sum, 1.5, 2.25) == 3.75);
  CHECK(apply<float>(ElementType::f32, Operation::prod, 1.5f, -2.f) == -3.f);
  CHECK(apply<std::int8_t>(ElementType::i8, Operation::sum, 127, 1) == -128);
  CHECK(apply<std::uint16_t>(ElementType::u16, Operation::prod, 65535, 65535) == 1);
  CHECK(apply<std::int32_t>(ElementType::i32, Operation::prod, 1 << 20, 1 << 20) == 0);
  CHECK(apply<std::int64_t>(ElementType::i64, Operation::min, -5, 3) == -5);
  CHECK(apply<std::uint32_t>(ElementType::u32, Operation::max, 0xffffffffu, 3u) == 0xffffffffu);
  CHECK(apply<std::int32_t>(ElementType::i32, Operation::land, 4, 2) == 1);
  CHECK(apply<std::int32_t>(ElementType::i32, Operation::lxor, 4, 2) == 0);
  CHECK(apply<std::uint8_t>(ElementType::byte, Operation::bxor, 0x0f, 0xff) == 0xf0);
  CHECK(apply<bool>(ElementType::boolean, Operation::lor, false, true));
  CHECK(apply<std::complex<double>>(ElementType::c64, Operation::prod, {0, 1}, {0, 1}) == std::complex<double>(-1, 0));
  const DoubleInt least = apply<DoubleInt>(ElementType::f64_int, Operation::minloc, {2.0, 5}, {2.0, 3});
  CHECK(least.index == 3);
  CHECK(apply<DoubleInt>(ElementType::f64_int, Operation::maxloc, {2.0, 5}, {1.0, 3}).index == 5);
}

TEST_CASE("kernels exist exactly where MPI defines the operation") {
  CHECK(kernels::find(ElementType::f64, Operation::band) == nullptr);
  CHECK(kernels::find(ElementType::f64, Operation::land) == nullptr);
  CHECK(kernels::find(ElementType::c32, Operation::max) == nullptr);
  CHECK(kernels::find(ElementType::byte, Operation::sum) == nullptr);
  CHECK(kernels::find(ElementType::boolean, Operation::sum) == nullptr);
  CHECK(kernels::find(ElementType::i32, Operation::minloc) == nullptr);
  CHECK(kernels::find(ElementType::int_int, Operation::sum) == nullptr);
  CHECK(kernels::find(ElementType::logical, Operation::sum) == nullptr);
  CHECK(kernels::find(ElementType::logical, Operation::land) != nullptr);
}

TEST_CASE("the output may be either operand") {
  const Reduction::Combine combine = kernels::find(ElementType::i32, Operation::sum);
  std::vector<std::int32_t> left(1000, 3);
  std::vector<std::int32_t> right(1000, 4);
  combine(Reduction{}, left.data(), right.data(), left.data(), left.size());
  combine(Reduction{}, left.data(), right.data(), right.data(), left.size());
  CHECK(left == std::vector<std::int32_t>(1000, 7));
  CHECK(right == std::vector<std::int32_t>(1000, 11));
}

TEST_CASE("the reduction tree covers every rank once") {
  CHECK(patterns::tree_height(1) == 0);
  CHECK(patterns::tree_height(2) == 1);
  CHECK(patterns::tree_height(5) == 3);
  CHECK(patterns::tree_height(8) == 3);
  for (int level = 0; level < 6; ++level)
    for (int first = 0; first < 64; first += 1 << level) {
      const int sibling = patterns::tree_sibling(first, level);
      CHECK(patterns::tree_sibling(sibling, level) == first);
      CHECK(patterns::tree_is_left(first, level) == (first < sibling));
    }
}

// With PAPAYA_SHM_LIMIT as it is by default a rank's share of what ranks of other nodes may write to is 4 MiB here.
TEST_CASE("each algorithm across nodes finds room on 4 nodes of 16 ranks") {
  std::vector<int> keys;
  for (int rank = 0; rank < 64; ++rank) keys.push_back(rank / 16);
  const Nodes nodes = nodes_by(keys);
  const Layout layout{64, &nodes};
  CHECK(layout.leaders() == 4);
  CHECK(layout.largest_node() == 16);
  for (const Descriptor* descriptor : registry()) {
    if (descriptor->segment == nullptr) continue;
    CAPTURE(descriptor->name, name_of(descriptor->collective));
    std::vector<std::int64_t> values;
    for (const Parameter& parameter : descriptor->parameters) values.push_back(parameter.fallback);
    for (const std::size_t capacity : {std::size_t{4096}, std::size_t{65536}, std::size_t{262144}}) {
      const SegmentShape shape = descriptor->segment(layout, std::min(capacity, descriptor->max_bytes), values);
      CHECK(shape.bytes <= std::size_t{4} << 20);
    }
  }
}

TEST_CASE("a window of 64 MiB has room for the communicators of 64 ranks and for what they deposit") {
  constexpr std::size_t window = std::size_t{64} << 20;
  for (const int ranks : {2, 3, 4, 8, 16, 33, 64, 128}) {
    CAPTURE(ranks);
    const std::size_t arena = DepositArena::bytes_for(window, ranks);
    CHECK(arena % DepositArena::granule_bytes == 0);
    CHECK(arena * static_cast<std::size_t>(ranks) <= window / 2);
    // The memory of which regions leave alone.
    const std::size_t promised = DepositArena::promised_of(arena);
    const std::size_t regions = window - promised * static_cast<std::size_t>(ranks);
    CHECK(regions >= window / 4 * 3);
    for (const bool concurrent : {false, true}) {
      const std::size_t largest = DepositArena::largest_for(arena, concurrent);
      CHECK(std::has_single_bit(largest));
      CHECK(largest >= DepositArena::least_largest_bytes);
      // So many calls at once.
      CHECK(arena / largest >= (concurrent && ranks <= 64 ? 4 : 2));
      CHECK(promised / largest >= (concurrent && ranks <= 64 ? 2 : 1));
      // Beside what may stay unread for long.
      const std::size_t unbounded_from = DepositArena::unbounded_from(arena, largest, concurrent);
      CHECK(unbounded_from >= promised);
      CHECK(unbounded_from / largest >= (concurrent && ranks <= 64 ? 3 : 1));
      CHECK(arena - unbounded_from >= largest);
      // Of all that borrow, on one communicator.
      std::size_t flags = 0;
      for (const Descriptor* descriptor : registry()) {
        if (descriptor->control_bytes == nullptr) continue;
        CAPTURE(descriptor->name, name_of(descriptor->collective));
        const std::size_t bytes = descriptor->control_bytes(ranks, largest, 0);
        CHECK(bytes > 0);
        CHECK(bytes <= static_cast<std::size_t>(ranks) * 1024 + 32768);
        CHECK(descriptor->serves_declines);
        flags += (bytes + 128 + 4095) / 4096 * 4096;
        CHECK(descriptor->control_bytes(ranks, largest, 1024) <= bytes + static_cast<std::size_t>(ranks) * 1024);
      }
      CHECK(regions / flags >= (ranks <= 33 ? 350 : ranks == 64 ? 190 : 100));
      // Of a bcast and a reduce as the table has them, each set up for three sizes.
      std::size_t lean = 0;
      for (const Descriptor* descriptor : registry()) {
        if (descriptor->lean_bytes == nullptr) continue;
        CAPTURE(descriptor->name, name_of(descriptor->collective));
        CHECK(descriptor->region_bytes != nullptr);
        for (const std::size_t capacity : {std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 20}) {
          const std::size_t bytes = descriptor->lean_bytes(ranks, capacity, largest);
          CHECK(bytes > 0);
          CHECK(bytes <= static_cast<std::size_t>(ranks) * 512 + 16384);
          if (descriptor->name == "arrival_bcast" || descriptor->name == "arrival_tree")
            lean += (bytes + 128 + 4095) / 4096 * 4096;
        }
      }
      CHECK(regions / lean >= (ranks <= 33 ? 450 : ranks == 64 ? 270 : 150));
    }
  }
  // Too small to be shared out.
  CHECK(DepositArena::bytes_for(std::size_t{1} << 20, 3) == 0);
  CHECK(DepositArena::bytes_for(std::size_t{4} << 20, 2) == 0);
  CHECK(DepositArena::bytes_for(window, 256) == 0);
}

TEST_CASE("a phase on one node is the algorithm with the least limit that takes its messages") {
  const auto phase = [](Collective collective, std::size_t capacity) {
    const Descriptor& algorithm = NodePhase::algorithm_for({collective, capacity});
    CHECK(algorithm.collective == collective);
    CHECK(algorithm.one_node);
    return algorithm.name;
  };
  CHECK(phase(Collective::reduce, 1) == "arrival_leader");
  CHECK(phase(Collective::reduce, 65536) == "arrival_leader");
  CHECK(phase(Collective::reduce, 65537) == "arrival_tree");
  CHECK(phase(Collective::bcast, 1 << 20) == "arrival_bcast");
  CHECK(phase(Collective::allgather, 131072) == "arrival_allgather");
  CHECK(phase(Collective::barrier, 0) == "arrival_barrier");
  CHECK(NodePhase::region_bytes({Collective::reduce, 65536}, 1) == 0);
}

TEST_CASE("the registry's descriptors are complete and their numbers stable") {
  std::set<std::uint32_t> numbers;
  for (const Descriptor* descriptor : registry()) {
    CHECK_FALSE(descriptor->summary.empty());
    CHECK_FALSE(descriptor->source.empty());
    CHECK(find_algorithm(descriptor->collective, descriptor->name) == descriptor);
    CHECK((descriptor->old_name.empty() || find_algorithm(descriptor->collective, descriptor->old_name) == descriptor));
    CHECK(current_name(descriptor->name) == descriptor->name);
    CHECK(trace_number(*descriptor) > 0);
    CHECK(registry()[trace_number(*descriptor) - 1u] == descriptor);
    CHECK(descriptor->name.size() < trace::name_bytes);
    CHECK(numbers.insert(trace_number(*descriptor)).second);
    CHECK((descriptor->segment != nullptr || descriptor->region_bytes != nullptr));
    CHECK((descriptor->segment != nullptr) == !descriptor->one_node);
    std::vector<std::int64_t> values;
    for (const Parameter& parameter : descriptor->parameters) values.push_back(parameter.fallback);
    const auto bytes = [&](int ranks, std::size_t capacity) {
      return shared_bytes(*descriptor, Layout{ranks}, capacity, values).total();
    };
    CHECK(bytes(2, 4096) > 0);
    CHECK(bytes(8, 4096) >= bytes(2, 4096));
    CHECK(bytes(8, 65536) >= bytes(8, 4096));
    std::set<std::string_view> names;  // of parameters, with the old ones
    for (const Parameter& parameter : descriptor->parameters) {
      CHECK(parameter.fallback >= parameter.lowest);
      CHECK(parameter.fallback <= parameter.highest);
      CHECK(names.insert(parameter.name).second);
      CHECK((parameter.old_name.empty() || names.insert(parameter.old_name).second));
    }
  }
  CHECK(find_algorithm(Collective::bcast, "arrival_leader") == nullptr);
  CHECK(find_algorithm(Collective::allreduce, "") == nullptr);
}

TEST_CASE("identities differ by parent, members, salt and ordinal") {
  const int two[] = {0, 1};
  const int other[] = {1, 0};
  std::set<std::uint64_t> ids = {0, identity::world};
  for (const std::uint64_t parent : {identity::world, std::uint64_t{77}})
    for (const auto members : {identity::of_members(two), identity::of_members(other)})
      for (const std::uint64_t salt : {0, 5})
        for (std::uint64_t ordinal = 0; ordinal < 100; ++ordinal)
          CHECK(ids.insert(identity::of_child(parent, members, salt, ordinal)).second);
}

TEST_CASE("the recorder's ring keeps the last events, its totals all") {
  const auto path = std::filesystem::temp_directory_path() / ("papaya-recorder-" + std::to_string(getpid()));
  std::filesystem::remove(path);
  // More than there are, and than 8 bits count.
  constexpr std::uint32_t most = 400;
  std::vector<std::string> names;
  for (std::uint32_t i = 1; i < most; ++i) names.push_back("algorithm_" + std::to_string(i));
  const std::vector<std::string_view> algorithms(names.begin(), names.end());
  Recorder recorder;
  std::string error;
  REQUIRE(recorder.open(path.string(), 16, algorithms, error));
  for (const bool concurrent : {false, true}) {
    recorder.set_concurrent(concurrent);
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Recorder::Arrival arrival{1000 + i, 1, i, 100, -1, Collective::allreduce, Form::blocking};
      recorder.finish(recorder.begin(arrival, 0), arrival, 1010 + i, 0, 3);
      recorder.finish(recorder.begin(arrival, 0), arrival, 1010 + i, most - 1, 0);
    }
  }
  CHECK(recorder.header().event_count == 200);
  const trace::Total& total = recorder.totals().by_size[index_of(Collective::allreduce)][0][0];
  CHECK(total.calls == 200);
  CHECK(total.bytes == 20000);
  CHECK(total.ticks == 2000);
  REQUIRE(recorder.algorithms().size() == most);
  CHECK(std::string_view(recorder.algorithms()[0].name) == "native");
  CHECK(std::string_view(recorder.algorithms()[most - 1].name) == names.back());
  CHECK(recorder.algorithms()[0].calls[index_of(Collective::allreduce)] == 100);
  CHECK(recorder.algorithms()[most - 1].calls[index_of(Collective::allreduce)] == 100);
  CHECK(recorder.totals().native_calls_by_reason[index_of(Collective::allreduce)][3] == 100);
  CHECK(recorder.add_communicator(1, 0, 4, 2, 1, std::string(200, 'x')) != nullptr);
  for (int i = 0; i < 1100; ++i) recorder.add_communicator(2, 0, 4, 2, 1, "c");
  CHECK(recorder.header().communicator_count == trace::communicator_capacity);
  CHECK(recorder.header().lost_communicators == 1101 - trace::communicator_capacity);
  recorder.close();
  CHECK(std::filesystem::file_size(path) == trace::file_bytes(16, most, 0));
  Recorder second;
  CHECK_FALSE(second.open(path.string(), 16, algorithms, error));  // never overwrites
  CHECK_FALSE(error.empty());
  std::filesystem::remove(path);
}

}  // namespace papaya
