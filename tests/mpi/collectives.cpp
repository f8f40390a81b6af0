// MPI_Reduce, Bcast, Gather, Scatter, Alltoall(v), Allgather(v), Barrier under papaya: types, operations, roots, counts
// around the number of ranks, in place, layouts in memory, communicators of all kinds, erroneous arguments.
// Run under `papaya run` with PAPAYA_X naming the algorithm. What is expected is computed on the spot, since
// native calls on more ranks than cores may take milliseconds each; errors are compared with PMPI_X.
//
// usage: collectives reduce|bcast|gather|scatter|alltoall|alltoallv|allgather|allgatherv|barrier
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/mpi/check.hpp"
#include "tests/mpi/group.hpp"
#include "tests/mpi/layouts.hpp"
#include "tests/mpi/reductions.hpp"
#include "tests/mpi/small_calls.hpp"
#include "tests/mpi/types.hpp"
#include "tests/mpi/user_operations.hpp"

namespace {

constexpr std::size_t mebibyte = 1024 * 1024;
bool is_forced = false;  // PAPAYA_X names an algorithm: no need to spare the native one what it cannot do

std::vector<std::size_t> counts_around(int size) {
  const auto p = static_cast<std::size_t>(size);
  return {0, 1, p - 1, p, p + 1, 7, 13, 509, 4096, 8193};
}

void expect_success(int code, const char* what, const std::string& detail) {
  if (code != MPI_SUCCESS) report(what, detail + ": error " + std::to_string(code));
}

// What `from` sends to `to`: different for each pair and call. Rank -1: to everybody.
unsigned stream(int salt, int from, int to = -1) {
  return static_cast<unsigned>(salt * 10007 + from * 101 + to + 2);
}

// Data movement. Which layout a rank sends from and receives into may differ from rank to rank, as long as
// the signature is the same.
using Layouts = std::function<const Layout&(int rank)>;

struct Movement {
  std::string name;
  Layouts send;
  Layouts receive;
  std::size_t shift = 0;
  bool in_place = false;
};

std::string describe(const Movement& movement, std::size_t units, int salt) {
  return movement.name + (movement.in_place ? " in place" : "") + ", " + std::to_string(units) + " units, shift " +
         std::to_string(movement.shift) + ", salt " + std::to_string(salt);
}

// One buffer on each rank: the root's lies as `send` says, the others' as `receive`.
void bcast(const Group& group, const Movement& movement, std::size_t units, int root, int salt) {
  Buffer buffer(group.rank == root ? movement.send(group.rank) : movement.receive(group.rank), units, movement.shift);
  if (group.rank == root) buffer.fill(0, units, stream(salt, root));
  buffer.expect(0, units, stream(salt, root));
  const std::string detail = describe(movement, units, salt) + ", root " + std::to_string(root);
  expect_success(MPI_Bcast(buffer.argument(), buffer.count(units), buffer.type(), root, group.comm), "MPI_Bcast",
                 detail);
  buffer.check("MPI_Bcast", detail);
  meet(group.comm);
}

// MPICH 4.0's own MPI_Gather and MPI_Scatter report truncated messages of this type.
bool fails_natively(const Movement& movement, std::size_t units) {
  return is_mpich && movement.name.starts_with("double int") && units > 100;
}

// What MPI calls insignificant on a rank is garbage there.
void gather(const Group& group, const Movement& movement, std::size_t units, int root, int salt) {
  if (fails_natively(movement, units)) return;
  const bool is_root = group.rank == root;
  const bool in_place = is_root && movement.in_place;
  Buffer send(movement.send(group.rank), units, movement.shift);
  Buffer receive(movement.receive(group.rank), units * group.ranks(), movement.shift);
  if (in_place)
    receive.fill(units * static_cast<std::size_t>(group.rank), units, stream(salt, group.rank));
  else
    send.fill(0, units, stream(salt, group.rank));
  if (is_root)
    for (int r = 0; r < group.size; ++r) receive.expect(units * static_cast<std::size_t>(r), units, stream(salt, r));
  const std::string detail = describe(movement, units, salt) + ", root " + std::to_string(root);
  void* const into = is_root || salt % 2 == 0 ? receive.argument() : nullptr;
  const int count = is_root ? receive.count(units) : -3;
  MPI_Datatype type = is_root ? receive.type() : MPI_DATATYPE_NULL;
  expect_success(in_place
                     ? MPI_Gather(MPI_IN_PLACE, -17, MPI_DATATYPE_NULL, into, count, type, root, group.comm)
                     : MPI_Gather(send.argument(), send.count(units), send.type(), into, count, type, root, group.comm),
                 "MPI_Gather", detail);
  receive.check("MPI_Gather", detail);
  send.check("MPI_Gather, send buffer", detail);
  meet(group.comm);
}

void scatter(const Group& group, const Movement& movement, std::size_t units, int root, int salt) {
  const bool is_root = group.rank == root;
  const bool in_place = is_root && movement.in_place;
  if (fails_natively(movement, units)) return;
  Buffer send(movement.send(group.rank), units * group.ranks(), movement.shift);
  Buffer receive(movement.receive(group.rank), units, movement.shift);
  if (is_root)
    for (int r = 0; r < group.size; ++r) send.fill(units * static_cast<std::size_t>(r), units, stream(salt, root, r));
  if (!in_place) receive.expect(0, units, stream(salt, root, group.rank));
  const std::string detail = describe(movement, units, salt) + ", root " + std::to_string(root);
  const void* const from = is_root || salt % 2 == 0 ? send.argument() : nullptr;
  const int count = is_root ? send.count(units) : -3;
  MPI_Datatype type = is_root ? send.type() : MPI_DATATYPE_NULL;
  expect_success(in_place ? MPI_Scatter(from, count, type, MPI_IN_PLACE, -17, MPI_DATATYPE_NULL, root, group.comm)
                          : MPI_Scatter(from, count, type, receive.argument(), receive.count(units), receive.type(),
                                        root, group.comm),
                 "MPI_Scatter", detail);
  receive.check("MPI_Scatter", detail);
  send.check("MPI_Scatter, send buffer", detail);
  meet(group.comm);
}

void allgather(const Group& group, const Movement& movement, std::size_t units, int, int salt) {
  Buffer send(movement.send(group.rank), units, movement.shift);
  Buffer receive(movement.receive(group.rank), units * group.ranks(), movement.shift);
  if (movement.in_place)
    receive.fill(units * static_cast<std::size_t>(group.rank), units, stream(salt, group.rank));
  else
    send.fill(0, units, stream(salt, group.rank));
  for (int r = 0; r < group.size; ++r) receive.expect(units * static_cast<std::size_t>(r), units, stream(salt, r));
  const std::string detail = describe(movement, units, salt);
  // In place, count and type of what is sent mean nothing.
  expect_success(movement.in_place ? MPI_Allgather(MPI_IN_PLACE, -17, MPI_DATATYPE_NULL, receive.argument(),
                                                   receive.count(units), receive.type(), group.comm)
                                   : MPI_Allgather(send.argument(), send.count(units), send.type(), receive.argument(),
                                                   receive.count(units), receive.type(), group.comm),
                 "MPI_Allgather", detail);
  receive.check("MPI_Allgather", detail);
  send.check("MPI_Allgather, send buffer", detail);
}

// Up to `units` of each rank, none of some; blocks stand in reverse and with a unit between them.
void allgatherv(const Group& group, const Movement& movement, std::size_t units, int, int salt) {
  const std::size_t room = units + 1;
  const auto of_rank = [&](int rank) {
    const int kind = (rank + salt) % 4;
    return kind == 0 ? units : kind == 1 ? 0 : kind == 2 ? units / 2 : units / 3;
  };
  const auto place = [&](int rank) { return room * static_cast<std::size_t>(group.size - 1 - rank); };
  const std::size_t own = of_rank(group.rank);
  Buffer send(movement.send(group.rank), own, movement.shift);
  Buffer receive(movement.receive(group.rank), room * group.ranks(), movement.shift);
  if (movement.in_place)
    receive.fill(place(group.rank), own, stream(salt, group.rank));
  else
    send.fill(0, own, stream(salt, group.rank));
  std::vector<int> counts, places;
  for (int r = 0; r < group.size; ++r) {
    receive.expect(place(r), of_rank(r), stream(salt, r));
    counts.push_back(receive.count(of_rank(r)));
    places.push_back(receive.count(place(r)));
  }
  const std::string detail = describe(movement, units, salt);
  expect_success(movement.in_place ? MPI_Allgatherv(MPI_IN_PLACE, -17, MPI_DATATYPE_NULL, receive.argument(),
                                                    counts.data(), places.data(), receive.type(), group.comm)
                                   : MPI_Allgatherv(send.argument(), send.count(own), send.type(), receive.argument(),
                                                    counts.data(), places.data(), receive.type(), group.comm),
                 "MPI_Allgatherv", detail);
  receive.check("MPI_Allgatherv", detail);
  send.check("MPI_Allgatherv, send buffer", detail);
}

void alltoall(const Group& group, const Movement& movement, std::size_t units, int, int salt) {
  Buffer send(movement.send(group.rank), units * group.ranks(), movement.shift);
  Buffer receive(movement.receive(group.rank), units * group.ranks(), movement.shift);
  for (int r = 0; r < group.size; ++r) {
    const std::size_t first = units * static_cast<std::size_t>(r);
    (movement.in_place ? receive : send).fill(first, units, stream(salt, group.rank, r));
    receive.expect(first, units, stream(salt, r, group.rank));
  }
  const std::string detail = describe(movement, units, salt);
  expect_success(movement.in_place ? MPI_Alltoall(MPI_IN_PLACE, -17, MPI_DATATYPE_NULL, receive.argument(),
                                                  receive.count(units), receive.type(), group.comm)
                                   : MPI_Alltoall(send.argument(), send.count(units), send.type(), receive.argument(),
                                                  receive.count(units), receive.type(), group.comm),
                 "MPI_Alltoall", detail);
  receive.check("MPI_Alltoall", detail);
  send.check("MPI_Alltoall, send buffer", detail);
}

// Up to `units` from rank to rank, none between some; blocks stand in reverse and with a unit between them.
void alltoallv(const Group& group, const Movement& movement, std::size_t units, int, int salt) {
  const std::size_t room = units + 1;
  Buffer send(movement.send(group.rank), room * group.ranks(), movement.shift);
  Buffer receive(movement.receive(group.rank), room * group.ranks(), movement.shift);
  std::vector<int> send_counts, send_places, receive_counts, receive_places;
  for (int r = 0; r < group.size; ++r) {
    // In place, as much must go one way as the other.
    const auto between = [&](int from, int to) {
      const int kind = movement.in_place ? (from + to + salt) % 3 : (from + 2 * to + salt) % 4;
      return kind == 0 ? 0 : kind == 1 ? units : kind == 2 ? units / 2 : units / 3;
    };
    const std::size_t first = room * static_cast<std::size_t>(group.size - 1 - r);
    const std::size_t out = between(group.rank, r);
    const std::size_t in = between(r, group.rank);
    (movement.in_place ? receive : send).fill(first, out, stream(salt, group.rank, r));
    receive.expect(first, in, stream(salt, r, group.rank));
    send_counts.push_back(send.count(out));
    send_places.push_back(send.count(first));
    receive_counts.push_back(receive.count(in));
    receive_places.push_back(receive.count(first));
  }
  const std::string detail = describe(movement, units, salt);
  expect_success(
      movement.in_place
          ? MPI_Alltoallv(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, receive.argument(), receive_counts.data(),
                          receive_places.data(), receive.type(), group.comm)
          : MPI_Alltoallv(send.argument(), send_counts.data(), send_places.data(), send.type(), receive.argument(),
                          receive_counts.data(), receive_places.data(), receive.type(), group.comm),
      "MPI_Alltoallv", detail);
  receive.check("MPI_Alltoallv", detail);
  send.check("MPI_Alltoallv, send buffer", detail);
}

// Sizes at random, a few of them large, blocks anywhere and in any order, derived types on some ranks, more
// room than is sent: the whole receive buffer must look as MPI's own call leaves it.
void alltoallv_at_random(const Group& group, int calls) {
  MPI_Datatype pair;  // two ints with a hole between them
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
  MPI_Datatype spread;
  MPI_Type_create_resized(pair, 0, 16, &spread);
  MPI_Type_free(&pair);
  MPI_Type_commit(&spread);
  const std::size_t p = group.ranks();
  for (int call = 0; call < calls; ++call) {
    std::mt19937 all(static_cast<unsigned>(call) + 1);  // the same on every rank
    std::mt19937 mine(static_cast<unsigned>(call * 100 + group.rank));
    const bool in_place = call % 4 == 3;
    const unsigned most = call % 16 == 5 ? 200000 : call % 4 == 0 ? 6 : 900;
    // Pairs of ints from rank to rank.
    std::vector<unsigned> sizes(p * p);
    for (unsigned& size : sizes) size = all() % 3 == 0 ? 0 : all() % (most + 1);
    if (in_place)
      for (std::size_t i = 0; i < p; ++i)
        for (std::size_t j = 0; j < i; ++j) sizes[i * p + j] = sizes[j * p + i];
    const auto me = static_cast<std::size_t>(group.rank);
    struct Side {
      bool derived;
      std::vector<int> counts;
      std::vector<int> places;
      std::vector<int> buffer;
    };
    const auto side = [&](bool sends) {
      Side s{mine() % 3 == 0, std::vector<int>(p), std::vector<int>(p), {}};
      std::vector<std::size_t> order(p);
      for (std::size_t i = 0; i < p; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), mine);
      int end = 1;
      for (const std::size_t peer : order) {
        const unsigned size = sends ? sizes[me * p + peer] : sizes[peer * p + me];
        // Not where nothing is sent: MPICH's own call waits for a message then.
        const bool has_more_room = !sends && !in_place && call % 5 == 2 && peer != me && size > 0;
        const unsigned room = has_more_room ? size + mine() % 4 : size;
        const int unit = s.derived ? 1 : 2;
        s.counts[peer] = static_cast<int>(room) * unit;
        s.places[peer] = end;
        end += s.counts[peer] + static_cast<int>(mine() % 5);
      }
      s.buffer.resize(static_cast<std::size_t>(end) * (s.derived ? 4 : 1) + 1);
      for (int& value : s.buffer) value = static_cast<int>(mine());
      return s;
    };
    const Side send = side(true);
    const Side receive = side(false);
    std::vector<int> results[2] = {receive.buffer, receive.buffer};
    for (const bool native : {true, false}) {
      std::vector<int>& result = results[native ? 0 : 1];
      const auto function = native ? PMPI_Alltoallv : MPI_Alltoallv;
      const MPI_Datatype type = receive.derived ? spread : MPI_INT;
      // MPICH's own call in place may hang: from a copy then.
      const Side& from = in_place ? receive : send;
      expect_success(in_place && !native ? function(MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL, result.data(),
                                                    receive.counts.data(), receive.places.data(), type, group.comm)
                                         : function(from.buffer.data(), from.counts.data(), from.places.data(),
                                                    from.derived ? spread : MPI_INT, result.data(),
                                                    receive.counts.data(), receive.places.data(), type, group.comm),
                     "MPI_Alltoallv at random", "call " + std::to_string(call));
    }
    ++comparisons;
    if (results[0] != results[1]) report("MPI_Alltoallv at random", "call " + std::to_string(call));
  }
  MPI_Type_free(&spread);
}

using Move = void (*)(const Group&, const Movement&, std::size_t units, int root, int salt);

// Types, counts and roots.
void move_plain(Move move, const Group& group, bool has_in_place, bool is_thorough) {
  const std::vector<Layout> layouts = plain_layouts();
  int salt = 0;
  for (const std::size_t units : counts_around(group.size)) {
    for (const Layout& layout : layouts) {
      ++salt;
      if (!is_thorough && salt % 5 != 0) continue;
      const Layouts same = [&](int) -> const Layout& { return layout; };
      // MPICH's own MPI_Alltoall in place fails on many pairs, which have padding.
      const bool may_be_in_place =
          has_in_place && !(is_mpich && layout.bytes() != static_cast<std::size_t>(layout.extent) && units > 509);
      for (const bool in_place : {false, true})
        if (!in_place || (may_be_in_place && salt % 2 == 0))
          move(group, {layout.name, same, same, salt % 3 == 1 ? std::size_t{1} : 0, in_place}, units, salt % group.size,
               salt);
    }
  }
  const Layouts ints = [&](int) -> const Layout& { return layouts[2]; };
  for (int root = 0; root < group.size; ++root) move(group, {"every root", ints, ints}, 13, root, 500 + root);
}

void move_large(Move move, const Group& group, bool has_in_place, std::size_t messages) {
  const std::vector<Layout> layouts = plain_layouts();
  const Layouts chars = [&](int) -> const Layout& { return layouts[0]; };
  const Layouts doubles = [&](int) -> const Layout& { return layouts[3]; };
  const std::size_t odd = 3300 * 1024 + 7;
  move(group, {"1 MiB", doubles, doubles}, mebibyte / 8, group.size - 1, 600);
  move(group, {"3.3 MiB", chars, chars}, odd / (messages > 3 ? messages : 1), 0, 601);
  move(group, {"100000 bytes", chars, chars, 1, has_in_place}, 100000, group.size / 2, 602);
}

// Layouts on both sides, and others on each rank.
void move_derived(Move move, const Group& group, bool has_in_place, bool is_thorough) {
  std::vector<Layout> layouts = derived_layouts();
  // Open MPI's own MPI_Bcast cuts longer messages into segments of whole elements, of each rank's own type.
  const std::size_t most = move == bcast && !is_forced ? 150 : 3000;
  int salt = 0;
  for (const Layout& from : layouts)
    for (const Layout& to : layouts) {
      ++salt;
      if (!is_thorough && salt % 7 != 3) continue;
      const Movement movement{from.name + " to " + to.name, [&](int) -> const Layout& { return from; },
                              [&](int) -> const Layout& { return to; }};
      const std::size_t units = salt % 3 == 0 ? 1 : salt % 3 == 1 ? 6 : most;
      move(group, movement, units, salt % group.size, salt);
    }
  for (std::size_t turn = 0; turn < (is_thorough ? layouts.size() : 1); ++turn)
    for (const std::size_t units : {std::size_t{0}, std::size_t{5}, most}) {
      const auto rotated = [&](int rank) -> const Layout& {
        return layouts[(static_cast<std::size_t>(rank) + turn) % layouts.size()];
      };
      const auto flat_but = [&](int rank) -> const Layout& { return rank == 0 ? layouts[turn] : layouts[0]; };
      move(group, {"another layout on each rank", rotated, flat_but}, units, static_cast<int>(turn) % group.size,
           ++salt);
      move(group, {"flat on all but one", flat_but, flat_but, 0, has_in_place}, units,
           static_cast<int>(turn) % group.size, ++salt);
    }
  // Blocks that are read from their owner's memory, which packs them first where they are not flat.
  if (is_thorough && (move == alltoall || move == allgather)) {
    const Layouts rotated = [&](int rank) -> const Layout& {
      return layouts[static_cast<std::size_t>(rank) % layouts.size()];
    };
    const std::size_t units = move == alltoall ? 70'000 : 176'000 * static_cast<std::size_t>(group.size - 1);
    move(group, {"large, another layout on each rank", rotated, rotated}, units, 0, ++salt);
  }
  free_layouts(layouts);

  // A zero-size type. (With a count of zero on other ranks, both MPIs leave at once there and communicate
  // here.)
  Layout empty{"empty type", MPI_DATATYPE_NULL, 1, 0, {}};
  MPI_Type_contiguous(0, MPI_INT, &empty.type);
  MPI_Type_commit(&empty.type);
  const Layouts all = [&](int) -> const Layout& { return empty; };
  move(group, {"empty type", all, all}, 4, group.size - 1, 700);
  MPI_Type_free(&empty.type);
}

void move(Move f, const Group& group, bool has_in_place, bool is_rooted, bool is_thorough) {
  move_plain(f, group, has_in_place, is_thorough);
  if (is_thorough) move_large(f, group, has_in_place, is_rooted ? 1 : group.ranks());
  move_derived(f, group, has_in_place, is_thorough);
}

// What is reduced must be what MPI_Reduce_local makes of all operands, the lower ranks on the left.
void reduce(const Group& group, const Type& type, const Operation& operation, int count, int root, bool in_place,
            std::size_t shift, int salt) {
  if (!is_defined(type, operation)) return;
  const std::size_t bytes = static_cast<std::size_t>(count) * type.bytes;
  // MPICH 4.0's own MPI_Reduce in place crashes above 2 KiB if the root is not rank 0.
  if (is_mpich && root != 0 && bytes > 2048) in_place = false;
  const auto fill = [&](unsigned char* at, int rank) {
    for (int i = 0; i < count; ++i) type.fill(at + static_cast<std::size_t>(i) * type.bytes, rank * 7 + i * 3 + salt);
  };
  const bool here = group.rank == root;
  Operand send(bytes, shift);
  Operand receive(bytes, shift);
  fill(in_place && here ? receive.at() : send.at(), group.rank);
  const std::vector<unsigned char> sent(send.at(), send.at() + bytes);
  void* const into = here || salt % 2 == 0 ? receive.at() : nullptr;
  const std::string detail = std::string(type.name) + " " + operation.name + " count " + std::to_string(count) +
                             " root " + std::to_string(root) + (in_place ? " in place" : "") + " shift " +
                             std::to_string(shift);
  expect_success(
      MPI_Reduce(in_place && here ? MPI_IN_PLACE : send.at(), into, count, type.type, operation.op, root, group.comm),
      "MPI_Reduce", detail);
  meet(group.comm);
  ++comparisons;
  if (!send.is_intact() || std::memcmp(sent.data(), send.at(), bytes) != 0)
    return report("MPI_Reduce wrote where it was sent from", detail);
  if (!receive.is_intact()) return report("MPI_Reduce wrote outside the buffer", detail);
  if (!here) {
    for (std::size_t i = 0; i < bytes; ++i)
      if (receive.at()[i] != 0xa5) return report("MPI_Reduce wrote on another rank than the root", detail);
    return;
  }
  Operand expected = reduced(group.size, type, operation, count, fill);
  if (const int at = first_difference(type, receive.at(), expected.at(), count); at >= 0)
    report("MPI_Reduce: another result", detail + " element " + std::to_string(at));
}

void reduce_types(const Group& group, bool is_thorough) {
  int salt = 0;
  for (const Type& type : types())
    for (const Operation& operation : operations) {
      ++salt;
      if (is_thorough || salt % 31 == 0)
        reduce(group, type, operation, salt % 3 == 0 ? 1 : 13 + salt % 7, salt % group.size, salt % 4 < 2, 0, salt);
    }
  const Type& doubles = types()[0];
  const Type& ints = types()[3];
  const Type& bytes = types()[21];
  for (const std::size_t count : counts_around(group.size)) {
    ++salt;
    const int n = static_cast<int>(count);
    reduce(group, doubles, operations[0], n, salt % group.size, false, 4, salt);  // unaligned
    reduce(group, ints, operations[3], n, (salt + 1) % group.size, true, 0, salt);
    reduce(group, bytes, operations[9], n, (salt + 2) % group.size, salt % 2 == 0, 1, salt);
  }
  for (int root = 0; root < group.size; ++root)
    for (const bool in_place : {false, true}) reduce(group, doubles, operations[0], 6, root, in_place, 0, root);
  if (!is_thorough) return;
  reduce(group, doubles, operations[0], static_cast<int>(mebibyte / 8), group.size - 1, false, 0, 1);
  reduce(group, ints, operations[0], static_cast<int>(3300 * 1024 / 4 + 1), 0, true, 0, 2);
}

// MPI_Reduce calls of this process that papaya has served: some algorithms leave user-defined operations to MPI.
unsigned long replaced() {
  static const auto count = reinterpret_cast<unsigned long (*)(const char*)>(dlsym(RTLD_DEFAULT, "papaya_replaced"));
  return count == nullptr ? 0 : count("reduce");
}

// MPI_BOTTOM with absolute addresses, in place at the root: beyond both MPIs' own MPI_Reduce on more than a
// few ranks.
void reduce_at_bottom(const Group& group, MPI_Datatype spread) {
  const int lengths[] = {1};
  MPI_Op op;
  std::uint16_t values[12];
  std::uint16_t expected[12];
  const int root = group.size - 1;
  for (int i = 0; i < 12; ++i) expected[i] = values[i] = static_cast<std::uint16_t>(group.rank * 5 + i + 1);
  const bool here = group.rank == root;
  for (const int i : {0, 4})
    if (here) expected[i] = static_cast<std::uint16_t>(group.size * (i + 1) + 5 * group.size * (group.size - 1) / 2);
  MPI_Get_address(values + 4, &absolute_place);
  MPI_Datatype absolute;
  MPI_Type_create_hindexed(1, lengths, &absolute_place, spread, &absolute);
  MPI_Type_commit(&absolute);
  MPI_Op_create(add_absolute, 1, &op);
  MPI_Reduce(here ? MPI_IN_PLACE : MPI_BOTTOM, MPI_BOTTOM, 1, absolute, op, root, group.comm);
  ++comparisons;
  if (std::memcmp(values, expected, sizeof values) != 0) report("another result", "MPI_BOTTOM with absolute addresses");
  MPI_Op_free(&op);
  MPI_Type_free(&absolute);
}

// User operations that are not commutative, on a flat type, on one with holes, at absolute addresses.
void reduce_by_user(const Group& group) {
  MPI_Datatype two;
  MPI_Type_contiguous(2, MPI_UINT16_T, &two);
  MPI_Type_commit(&two);
  MPI_Op op;
  MPI_Op_create(compose, 0, &op);
  const auto value = [](int rank, std::size_t i) {
    return static_cast<std::uint16_t>(rank * 31 + static_cast<int>(i) * 17 + 1);
  };
  int root = 0;
  for (const int count : {1, 3, 100, 5000}) {
    root = (root + 1) % group.size;
    const std::size_t words = static_cast<std::size_t>(count) * 2;
    std::vector<std::uint16_t> send(words), receive(words), expected(words);
    for (std::size_t i = 0; i < words; ++i) send[i] = value(group.rank, i);
    for (std::size_t i = 0; i < words; i += 2) {
      const Map map = composed(group.size, [&](int rank) { return Map{value(rank, i), value(rank, i + 1)}; });
      expected[i] = map.a;
      expected[i + 1] = map.b;
    }
    const bool here = group.rank == root;
    const std::vector<std::uint16_t> sent = send;
    MPI_Reduce(send.data(), here ? receive.data() : nullptr, count, two, op, root, group.comm);
    ++comparisons;
    if (here && receive != expected)
      report("another result", "non-commutative user operation, count " + std::to_string(count));
    if (is_mpich && root != 0 && words * 2 > 2048) continue;  // see reduce()
    MPI_Reduce(here ? MPI_IN_PLACE : send.data(), here ? send.data() : nullptr, count, two, op, root, group.comm);
    ++comparisons;
    if (here ? send != expected : send != sent) report("another result", "non-commutative user operation in place");
  }
  MPI_Type_free(&two);
  MPI_Op_free(&op);

  bool is_replaced = false;
  MPI_Datatype spread = spread_type();
  MPI_Op_create(compose_spread, 0, &op);
  for (const int count : {1, 7, 1000}) {
    root = (root + 1) % group.size;
    const bool here = group.rank == root;
    const std::size_t words = static_cast<std::size_t>(count) * 12;
    std::vector<std::uint16_t> send(words), receive(words, 9), expected(words, 9);
    for (std::size_t i = 0; i < words; ++i) send[i] = value(group.rank, i);
    for (std::size_t e = 0; e < words; e += 12) {
      const Map map = composed(group.size, [&](int rank) { return Map{value(rank, e + 4), value(rank, e)}; });
      expected[e + 4] = map.a;
      expected[e] = map.b;
    }
    const unsigned long before = replaced();
    MPI_Reduce(send.data() + 4, here ? receive.data() + 4 : nullptr, count, spread, op, root, group.comm);
    is_replaced = replaced() != before;
    ++comparisons;
    if (here && receive != expected)
      report("another result", "derived type with holes, count " + std::to_string(count));
  }
  MPI_Op_free(&op);

  if (is_replaced) reduce_at_bottom(group, spread);
  MPI_Type_free(&spread);

  // One rank passes a derived type, the others its flat equal.
  MPI_Datatype three;
  MPI_Type_contiguous(3, MPI_INT, &three);
  MPI_Type_commit(&three);
  MPI_Op_create(add_ints, 1, &op);
  for (int derived = 0; derived < group.size; ++derived) {
    std::vector<int> send(12, group.rank + 1);
    std::vector<int> receive(12, -1);
    const bool is_derived = group.rank == derived;
    MPI_Reduce(send.data(), receive.data(), is_derived ? 4 : 12, is_derived ? three : MPI_INT, op, 0, group.comm);
    ++comparisons;
    const int sum = group.rank == 0 ? group.size * (group.size + 1) / 2 : -1;
    if (std::count(receive.begin(), receive.end(), sum) != 12)
      report("another result", "a derived type on one rank, its flat equal on the others");
  }
  MPI_Op_free(&op);
  MPI_Type_free(&three);
}

void reduce_repeatedly(const Group& group) {
  if (!is_in_rank_order()) return;
  std::mt19937 late(static_cast<unsigned>(group.rank) + 5);
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{13}, std::size_t{1000}, std::size_t{9000}, std::size_t{40000}}) {
    std::mt19937_64 random(static_cast<unsigned>(group.rank) * 77 + count);
    std::vector<double> send(count);
    std::vector<float> send_float(count);
    for (std::size_t i = 0; i < count; ++i) {
      send[i] = value_of_any_size(random);
      send_float[i] = static_cast<float>(send[i]);
    }
    std::vector<double> first(count), result(count);
    std::vector<float> first_float(count), result_float(count);
    const int root = static_cast<int>(count) % group.size;
    // The first calls may be MPI's own, which sums in another order: with auto some, else one.
    for (int repeat = is_forced ? -1 : -16; repeat < 12; ++repeat) {
      usleep(late() % 3 == 0 ? late() % 300 : 0);
      MPI_Reduce(send.data(), result.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM, root, group.comm);
      usleep(late() % 3 == 0 ? late() % 300 : 0);
      MPI_Reduce(send_float.data(), result_float.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, root, group.comm);
      if (repeat < 0) meet(group.comm);
      if (group.rank != root || repeat < 0) continue;
      ++comparisons;
      if (repeat == 0) {
        first = result;
        first_float = result_float;
      } else if (std::memcmp(first.data(), result.data(), count * sizeof(double)) != 0 ||
                 std::memcmp(first_float.data(), result_float.data(), count * sizeof(float)) != 0) {
        report("other bits in a repeated MPI_Reduce", "count " + std::to_string(count));
      }
    }
  }
}

// Erroneous arguments that every rank passes: the class of the code must be MPI's own.
void errors(const std::string& collective, const Group& group) {
  int a[64] = {};
  int b[64] = {};
  std::vector<int> zeros(group.ranks(), 0);
  std::vector<int> negative(group.ranks(), -1);
  struct Case {
    const char* what;
    int count;
    MPI_Datatype type;
    MPI_Op op;
    int root;
    MPI_Comm comm;
  };
  const Case cases[] = {
      {"negative count", -1, MPI_INT, MPI_SUM, 0, group.comm},
      {"null datatype", 1, MPI_DATATYPE_NULL, MPI_SUM, 0, group.comm},
      {"null operation", 1, MPI_INT, MPI_OP_NULL, 0, group.comm},
      {"root too large", 1, MPI_INT, MPI_SUM, group.size, group.comm},
      {"negative root", 1, MPI_INT, MPI_SUM, -77, group.comm},
      {"null communicator", 1, MPI_INT, MPI_SUM, 0, MPI_COMM_NULL},
      {"operation not for the type", 1, MPI_FLOAT, MPI_BAND, 0, group.comm},
  };
  for (const Case& c : cases) {
    const std::string what = c.what;
    const bool of_operation = what.find("operation") != what.npos;
    const bool of_root = what.find("root") != what.npos;
    const bool moves_blocks = collective == "gather" || collective == "scatter";
    const bool is_rooted = collective == "reduce" || collective == "bcast" || moves_blocks;
    if ((of_operation && collective != "reduce") || (of_root && !is_rooted)) continue;
    if (collective == "barrier" && c.comm != MPI_COMM_NULL) continue;
    // MPICH may end in a failed assertion, since 4.0 and since 5.0.
    if (is_mpich && collective == "reduce" && (c.op == MPI_BAND || c.count < 0)) continue;
    if (is_mpich_5 && collective == "reduce" && c.type == MPI_DATATYPE_NULL) continue;
    // Open MPI 4.1 crashes.
    if (!is_mpich && collective.starts_with("allgather") && (c.type == MPI_DATATYPE_NULL || c.comm == MPI_COMM_NULL))
      continue;
    std::vector<int>& counts = c.count < 0 ? negative : zeros;
    int codes[2] = {};
    for (const bool native : {true, false}) {
      int& code = codes[native ? 0 : 1];
      if (collective == "reduce")
        code = (native ? PMPI_Reduce : MPI_Reduce)(a, b, c.count, c.type, c.op, c.root, c.comm);
      else if (collective == "bcast")
        code = (native ? PMPI_Bcast : MPI_Bcast)(a, c.count, c.type, c.root, c.comm);
      else if (collective == "gather")
        code = (native ? PMPI_Gather : MPI_Gather)(a, c.count, c.type, b, c.count, c.type, c.root, c.comm);
      else if (collective == "scatter")
        code = (native ? PMPI_Scatter : MPI_Scatter)(a, c.count, c.type, b, c.count, c.type, c.root, c.comm);
      else if (collective == "allgather")
        code = (native ? PMPI_Allgather : MPI_Allgather)(a, c.count, c.type, b, c.count, c.type, c.comm);
      else if (collective == "allgatherv")
        code = (native ? PMPI_Allgatherv : MPI_Allgatherv)(a, c.count < 0 ? c.count : 0, c.type, b, counts.data(),
                                                           zeros.data(), c.type, c.comm);
      else if (collective == "alltoall")
        code = (native ? PMPI_Alltoall : MPI_Alltoall)(a, c.count, c.type, b, c.count, c.type, c.comm);
      else if (collective == "alltoallv")
        code = (native ? PMPI_Alltoallv : MPI_Alltoallv)(a, counts.data(), zeros.data(), c.type, b, counts.data(),
                                                         zeros.data(), c.type, c.comm);
      else
        code = (native ? PMPI_Barrier : MPI_Barrier)(c.comm);
      if (code != MPI_SUCCESS) PMPI_Error_class(code, &code);
    }
    ++comparisons;
    if (codes[0] != codes[1])
      report("another error", what + ": " + std::to_string(codes[1]) + ", MPI says " + std::to_string(codes[0]));
  }
}

// Between the even and the odd ranks: native.
void between_groups(const std::string& collective, MPI_Comm half) {
  const Group world(MPI_COMM_WORLD);
  if (world.size < 2) return;
  MPI_Comm inter;
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, world.rank % 2 == 0 ? 1 : 0, 5, &inter);
  int others = 0;
  MPI_Comm_remote_size(inter, &others);
  const auto theirs = [&](int i) { return 2 * i + (world.rank % 2 == 0 ? 1 : 0); };  // world rank
  const bool is_root = world.rank == 0;
  const int root = world.rank % 2 == 1 ? 0 : is_root ? MPI_ROOT : MPI_PROC_NULL;
  std::vector<int> send(8, world.rank + 1), receive(8, -1), ones(8, 1), places{0, 1, 2, 3, 4, 5, 6, 7};
  bool right = true;
  if (collective == "reduce") {
    int sum = 0;
    for (int i = 0; i < others; ++i) sum += theirs(i) + 1;
    MPI_Reduce(send.data(), receive.data(), 1, MPI_INT, MPI_SUM, root, inter);
    right = receive[0] == (is_root ? sum : -1);
  } else if (collective == "bcast") {
    MPI_Bcast(send.data(), 1, MPI_INT, root, inter);
    right = send[0] == (world.rank % 2 == 1 ? 1 : world.rank + 1);
  } else if (collective == "gather") {
    MPI_Gather(send.data(), 1, MPI_INT, receive.data(), 1, MPI_INT, root, inter);
    for (int i = 0; i < others; ++i)
      right = right && receive[static_cast<std::size_t>(i)] == (is_root ? theirs(i) + 1 : -1);
  } else if (collective == "scatter") {
    MPI_Scatter(send.data(), 1, MPI_INT, receive.data(), 1, MPI_INT, root, inter);
    right = receive[0] == (world.rank % 2 == 1 ? 1 : -1);
  } else if (collective == "barrier") {
    right = MPI_Barrier(inter) == MPI_SUCCESS;
  } else {
    if (collective == "allgather")
      MPI_Allgather(send.data(), 1, MPI_INT, receive.data(), 1, MPI_INT, inter);
    else if (collective == "allgatherv")
      MPI_Allgatherv(send.data(), 1, MPI_INT, receive.data(), ones.data(), places.data(), MPI_INT, inter);
    else if (collective == "alltoall")
      MPI_Alltoall(send.data(), 1, MPI_INT, receive.data(), 1, MPI_INT, inter);
    else
      MPI_Alltoallv(send.data(), ones.data(), places.data(), MPI_INT, receive.data(), ones.data(), places.data(),
                    MPI_INT, inter);
    for (int i = 0; i < others; ++i) right = right && receive[static_cast<std::size_t>(i)] == theirs(i) + 1;
  }
  ++comparisons;
  if (!right) report("another result", collective + " on an inter-communicator");
  MPI_Comm_free(&inter);
}

void test(const std::string& collective, MPI_Comm comm, bool is_thorough) {
  const Group group(comm);
  if (collective == "reduce") {
    reduce_types(group, is_thorough);
    reduce_by_user(group);
    if (is_thorough) reduce_repeatedly(group);
  }
  if (collective == "bcast") move(bcast, group, false, true, is_thorough);
  if (collective == "gather") move(gather, group, true, true, is_thorough);
  if (collective == "scatter") move(scatter, group, true, true, is_thorough);
  if (collective == "allgather") move(allgather, group, true, false, is_thorough);
  if (collective == "allgatherv") move(allgatherv, group, true, false, is_thorough);
  if (collective == "alltoall") move(alltoall, group, true, false, is_thorough);
  if (collective == "alltoallv") {
    move(alltoallv, group, true, false, is_thorough);
    alltoallv_at_random(group, is_thorough ? 80 : 20);
  }
  errors(collective, group);
  // Native calls on more ranks than cores may take ten milliseconds each.
  loops(collective, comm, is_forced ? (is_thorough ? 3000 : 400) : 100, is_thorough ? 280 : 56);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string collective = argc > 1 ? argv[1] : "";
  if (std::find(std::begin(small_collectives), std::end(small_collectives), collective) ==
      std::end(small_collectives)) {
    std::fprintf(stderr,
                 "usage: collectives reduce|bcast|gather|scatter|alltoall|alltoallv|allgather|allgatherv|barrier\n");
    return 2;
  }
  std::string variable =
      "PAPAYA_" + (collective.ends_with('v') ? collective.substr(0, collective.size() - 1) : collective);
  std::transform(variable.begin(), variable.end(), variable.begin(), [](unsigned char c) { return std::toupper(c); });
  is_forced = is_algorithm_named(variable);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  {
    const Communicators all;
    all.for_each([&](MPI_Comm comm) { test(collective, comm, comm == MPI_COMM_WORLD); });
    between_groups(collective, all.half());
  }
  const bool is_right = conclude() > 0;
  MPI_Finalize();
  return is_right ? 0 : 1;
}
