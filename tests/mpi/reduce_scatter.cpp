// MPI_Reduce_scatter and MPI_Reduce_scatter_block under papaya: types, operations, blocks of all sizes and of none, in
// place, the program's own operations, the same bits again, communicators of all kinds, erroneous arguments.
// Run under `papaya run` with PAPAYA_X naming the algorithm. What is expected is what MPI_Reduce_local makes of all
// operands, the lower ranks on the left; errors are compared with PMPI_X.
//
// usage: reduce_scatter reduce_scatter|reduce_scatter_block
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/mpi/check.hpp"
#include "tests/mpi/group.hpp"
#include "tests/mpi/reductions.hpp"
#include "tests/mpi/small_calls.hpp"
#include "tests/mpi/types.hpp"
#include "tests/mpi/user_operations.hpp"

namespace {

bool is_block = false;   // MPI_Reduce_scatter_block
bool is_forced = false;  // PAPAYA_X names an algorithm

const char* name() {
  return is_block ? "MPI_Reduce_scatter_block" : "MPI_Reduce_scatter";
}

// The blocks of a call, in elements.
struct Blocks {
  std::vector<int> counts;
  std::vector<int> starts;
  int all = 0;
};

// MPI_Reduce_scatter: equal ones, one of each size down to none, all in one.
Blocks blocks_of(const Group& group, int units, int kind) {
  Blocks blocks;
  for (int r = 0; r < group.size; ++r)
    blocks.counts.push_back(is_block || kind % 3 == 0 ? units
                            : kind % 3 == 1           ? units * ((r + kind) % group.size) / group.size
                            : r == kind % group.size  ? units
                                                      : 0);
  blocks.starts.resize(blocks.counts.size());
  std::exclusive_scan(blocks.counts.begin(), blocks.counts.end(), blocks.starts.begin(), 0);
  blocks.all = std::accumulate(blocks.counts.begin(), blocks.counts.end(), 0);
  return blocks;
}

int call(const Group& group, const void* send, void* receive, const Blocks& blocks, MPI_Datatype type, MPI_Op op) {
  return is_block ? MPI_Reduce_scatter_block(send, receive, blocks.counts[0], type, op, group.comm)
                  : MPI_Reduce_scatter(send, receive, blocks.counts.data(), type, op, group.comm);
}

void reduce(const Group& group, const Type& type, const Operation& operation, int units, int kind, bool in_place,
            std::size_t shift) {
  if (!is_defined(type, operation)) return;
  const Blocks blocks = blocks_of(group, units, kind);
  const auto me = static_cast<std::size_t>(group.rank);
  const std::size_t all = static_cast<std::size_t>(blocks.all) * type.bytes;
  const std::size_t own = static_cast<std::size_t>(blocks.counts[me]) * type.bytes;
  const auto fill = [&](unsigned char* at, int rank, int first, int count) {
    for (int i = 0; i < count; ++i)
      type.fill(at + static_cast<std::size_t>(i) * type.bytes, rank * 7 + (first + i) * 3 + kind);
  };
  Operand send(all, shift);
  Operand receive(in_place ? all : own, shift);
  fill(in_place ? receive.at() : send.at(), group.rank, 0, blocks.all);
  const std::vector<unsigned char> sent(send.at(), send.at() + all);
  const std::string detail = std::string(type.name) + " " + operation.name + " units " + std::to_string(units) +
                             " kind " + std::to_string(kind) + (in_place ? " in place" : "") + " shift " +
                             std::to_string(shift);
  // Where it gets nothing a rank may have no buffer.
  void* const into = own == 0 && !in_place && !is_block ? nullptr : receive.at();
  if (call(group, in_place ? MPI_IN_PLACE : send.at(), into, blocks, type.type, operation.op) != MPI_SUCCESS)
    return report(name(), "error, " + detail);
  ++comparisons;
  if (!send.is_intact() || std::memcmp(sent.data(), send.at(), all) != 0)
    return report(name(), "wrote where it was sent from, " + detail);
  if (!receive.is_intact()) return report(name(), "wrote outside the buffer, " + detail);
  Operand expected = reduced(group.size, type, operation, blocks.counts[me], [&](unsigned char* at, int rank) {
    fill(at, rank, blocks.starts[me], blocks.counts[me]);
  });
  if (const int at = first_difference(type, receive.at(), expected.at(), blocks.counts[me]); at >= 0)
    report(name(), "another result, " + detail + " element " + std::to_string(at));
}

void reduce_types(const Group& group, bool is_thorough) {
  int salt = 0;
  for (const Type& type : types())
    for (const Operation& operation : operations)
      if (++salt; is_thorough || salt % 31 == 0)
        reduce(group, type, operation, salt % 3 == 0 ? 1 : 13 + salt % 7, salt / 2, salt % 4 < 2, 0);
  const Type& doubles = types()[0];
  const Type& ints = types()[3];
  const Type& bytes = types()[21];
  for (const int units : {0, 1, group.size - 1, group.size, group.size + 1, 7, 13, 509, 4096, 8193})
    for (int kind = 0; kind < (is_thorough ? 6 : 3); ++kind, ++salt) {
      reduce(group, doubles, operations[0], units, kind, kind % 2 == 1, salt % 2 == 0 ? 4 : 0);
      reduce(group, ints, operations[3], units, kind, kind % 2 == 0, 0);
      reduce(group, bytes, operations[9], units, kind, salt % 2 == 0, 1);
    }
  if (!is_thorough) return;
  for (int kind = 0; kind < 3; ++kind) {
    reduce(group, doubles, operations[0], 128 * 1024, kind, kind == 1, 0);
    reduce(group, ints, operations[0], 3300 * 1024 / 4 / group.size + 1, kind, kind != 1, 0);
  }
}

// Operations of the program's own that do not commute, on a flat type and on one with holes.
void reduce_by_user(const Group& group) {
  const auto value = [](int rank, std::size_t i) {
    return static_cast<std::uint16_t>(rank * 31 + static_cast<int>(i) * 17 + 1);
  };
  MPI_Datatype two;
  MPI_Type_contiguous(2, MPI_UINT16_T, &two);
  MPI_Type_commit(&two);
  MPI_Datatype spread = spread_type();
  int kind = 0;
  for (const bool has_holes : {false, true})
    for (const int units : {1, 3, 100, 3000})
      for (const bool in_place : {false, true}) {
        // MPICH 4.0's own writes outside the buffer.
        if (is_mpich && has_holes && !is_forced) continue;
        MPI_Op op;
        MPI_Op_create(has_holes ? compose_spread : compose, 0, &op);
        const Blocks blocks = blocks_of(group, units, ++kind);
        const auto me = static_cast<std::size_t>(group.rank);
        const std::size_t step = has_holes ? 12 : 2;  // words from one element to the next; the parts of one:
        const std::size_t first = has_holes ? 4 : 0;
        const std::size_t second = has_holes ? 0 : 1;
        const std::size_t words = (static_cast<std::size_t>(blocks.all) + 1) * step;
        std::vector<std::uint16_t> send(words, 5), receive(words, 9);
        std::vector<std::uint16_t>& filled = in_place ? receive : send;
        for (std::size_t e = 0; e < static_cast<std::size_t>(blocks.all); ++e)
          for (const std::size_t at : {first, second}) filled[e * step + at] = value(group.rank, e * 2 + at % 3);
        std::vector<std::uint16_t> expected = receive;
        for (std::size_t i = 0; i < static_cast<std::size_t>(blocks.counts[me]); ++i) {
          const std::size_t e = static_cast<std::size_t>(blocks.starts[me]) + i;
          const Map map = composed(group.size, [&](int rank) {
            return Map{value(rank, e * 2 + first % 3), value(rank, e * 2 + second % 3)};
          });
          expected[i * step + first] = map.a;
          expected[i * step + second] = map.b;
        }
        const std::size_t own_words = static_cast<std::size_t>(blocks.counts[me]) * step;
        call(group, in_place ? MPI_IN_PLACE : send.data() + first, receive.data() + first, blocks,
             has_holes ? spread : two, op);
        ++comparisons;
        // In place what follows the result is MPI's.
        if (!std::equal(receive.begin(), receive.begin() + static_cast<std::ptrdiff_t>(in_place ? own_words : words),
                        expected.begin()))
          report("another result", std::string("user operation, ") + (has_holes ? "holes, " : "") + "units " +
                                       std::to_string(units) + (in_place ? " in place" : ""));
        MPI_Op_free(&op);
      }
  MPI_Type_free(&two);
  MPI_Type_free(&spread);
}

void reduce_repeatedly(const Group& group) {
  if (!is_in_rank_order()) return;
  std::mt19937 late(static_cast<unsigned>(group.rank) + 5);
  for (const int units : {1, 13, 1000, 20000}) {
    const Blocks blocks = blocks_of(group, units, 0);
    std::mt19937_64 random(static_cast<unsigned>(group.rank) * 77 + static_cast<unsigned>(units));
    std::vector<double> send(static_cast<std::size_t>(blocks.all));
    for (double& one : send) one = value_of_any_size(random);
    const auto own = static_cast<std::size_t>(units);
    std::vector<double> first(own), result(own);
    // The first calls may be MPI's own, which sums in another order: with auto some, else one.
    for (int repeat = is_forced ? -1 : -16; repeat < 12; ++repeat) {
      usleep(late() % 3 == 0 ? late() % 300 : 0);
      call(group, send.data(), result.data(), blocks, MPI_DOUBLE, MPI_SUM);
      if (repeat == 0) first = result;
      if (repeat <= 0) continue;
      ++comparisons;
      if (std::memcmp(first.data(), result.data(), own * sizeof(double)) != 0)
        report("other bits in a repeated call", "units " + std::to_string(units));
    }
  }
}

// Erroneous arguments that every rank passes: the class of the code must be MPI's own.
void errors(const Group& group) {
  std::vector<int> a(256), b(256);
  struct Case {
    const char* what;
    int count;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
  };
  for (const Case& c : {Case{"negative count", -1, MPI_INT, MPI_SUM, group.comm},
                        Case{"null datatype", 1, MPI_DATATYPE_NULL, MPI_SUM, group.comm},
                        Case{"null operation", 1, MPI_INT, MPI_OP_NULL, group.comm},
                        Case{"null communicator", 1, MPI_INT, MPI_SUM, MPI_COMM_NULL},
                        Case{"operation not for the type", 1, MPI_FLOAT, MPI_BAND, group.comm}}) {
    // MPICH may end in a failed assertion, since 4.0 and since 5.0.
    if (is_mpich && (c.op == MPI_BAND || c.count < 0)) continue;
    if (is_mpich_5 && c.type == MPI_DATATYPE_NULL) continue;
    const std::vector<int> counts(static_cast<std::size_t>(group.size), c.count);
    int codes[2] = {};
    for (const bool native : {true, false}) {
      int& code = codes[native ? 0 : 1];
      if (is_block)
        code = (native ? PMPI_Reduce_scatter_block : MPI_Reduce_scatter_block)(a.data(), b.data(), c.count, c.type,
                                                                               c.op, c.comm);
      else
        code = (native ? PMPI_Reduce_scatter : MPI_Reduce_scatter)(a.data(), b.data(), counts.data(), c.type, c.op,
                                                                   c.comm);
      if (code != MPI_SUCCESS) PMPI_Error_class(code, &code);
    }
    ++comparisons;
    if (codes[0] != codes[1])
      report("another error",
             std::string(c.what) + ": " + std::to_string(codes[1]) + ", MPI says " + std::to_string(codes[0]));
  }
}

void test(const std::string& collective, MPI_Comm comm, bool is_thorough) {
  const Group group(comm);
  reduce_types(group, is_thorough);
  reduce_by_user(group);
  if (is_thorough) reduce_repeatedly(group);
  errors(group);
  // Native calls on more ranks than cores may take ten milliseconds each.
  loops(collective, comm, is_forced ? (is_thorough ? 3000 : 400) : 100, is_thorough ? 280 : 56);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string collective = argc > 1 ? argv[1] : "";
  is_block = collective == "reduce_scatter_block";
  if (!is_block && collective != "reduce_scatter") {
    std::fprintf(stderr, "usage: reduce_scatter reduce_scatter|reduce_scatter_block\n");
    return 2;
  }
  is_forced = is_algorithm_named(is_block ? "PAPAYA_REDUCE_SCATTER_BLOCK" : "PAPAYA_REDUCE_SCATTER");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  Communicators().for_each([&](MPI_Comm comm) { test(collective, comm, comm == MPI_COMM_WORLD); });
  const bool is_right = conclude() > 0;
  MPI_Finalize();
  return is_right ? 0 : 1;
}
