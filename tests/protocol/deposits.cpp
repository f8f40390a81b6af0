// Memory that ranks lend to their calls: teams that share the ranks' arenas, with threads as ranks.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

constexpr std::size_t two_extents = 2 * DepositArena::least_largest_bytes;

std::vector<const Descriptor*> borrowing() {
  std::vector<const Descriptor*> found;
  for (const Descriptor* descriptor : registry())
    if (descriptor->control_bytes != nullptr) found.push_back(descriptor);
  return found;
}

// Elements of the largest message that goes in one round, and so in an extent of the largest size.
std::size_t count_for(const Descriptor& descriptor, int ranks) {
  const std::size_t blocks = descriptor.collective == Collective::alltoall || scatters_result(descriptor.collective)
                                 ? static_cast<std::size_t>(ranks)
                                 : 1;
  const std::size_t bytes =
      descriptor.name == "arrival_leader" ? descriptor.max_bytes : DepositArena::least_largest_bytes / 4;
  return bytes / blocks / Rounds::line_bytes * Rounds::line_bytes / sizeof(Matrix);
}

std::vector<int> all_of(int ranks) {
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

// Stands still once its operand is there, until it may go on.
struct Halt {
  std::atomic<bool> is_there{false};
  std::atomic<bool> may_go_on{false};
  void at(Call& call) {
    call.operands().context = this;
    call.operands().deposited = [](void* context) {
      Halt& halt = *static_cast<Halt*>(context);
      halt.is_there.store(true);
      while (!halt.may_go_on.load()) std::this_thread::yield();
    };
  }
};

}  // namespace

TEST_CASE("deposits stay for who still reads them when another team wants their memory", "[protocol]") {
  for (const Descriptor* descriptor : borrowing()) {
    INFO(name_of(descriptor->collective) << " " << descriptor->name);
    const Reduction reduction = reduction_for(false, true);
    // Ranks 0 and 1 have memory for two calls. Their deposits of two are not read yet by ranks 2 and 3 when they come
    // to a third.
    Arenas arenas(4, two_extents, false);
    Node first(*descriptor, wait::Mode::block, arenas, {0, 1, 2});
    Node second(*descriptor, wait::Mode::block, arenas, {0, 1, 3});
    Node third(*descriptor, wait::Mode::block, arenas, {0, 1});
    Halt halt[2];
    std::atomic<int> wrong{0};
    std::atomic<int> ended{0};
    const auto run = [&](Node& node, int rank, int number, Halt* at) {
      wait::Site site;
      Call call(descriptor->collective, reduction, rank, node.size(), number, count_for(*descriptor, node.size()),
                false);
      if (at != nullptr) at->at(call);
      if (!node.rank(rank).run(call.operands(), site) || !call.is_right()) ++wrong;
    };
    on_ranks(5, [&](int rank) {
      if (rank < 2) {
        run(first, rank, 1, nullptr);
        run(second, rank, 2, nullptr);
        run(third, rank, 3, nullptr);
        ++ended;
      } else if (rank < 4) {
        run(rank == 2 ? first : second, 2, rank - 1, &halt[rank - 2]);
      } else {
        while (!halt[0].is_there.load() || !halt[1].is_there.load()) std::this_thread::yield();
        // Both have either gone to sleep for want of memory, or written over what is still to be read.
        while (ended.load() < 2 && (third.policy(0).sleeps() == 0 || third.policy(1).sleeps() == 0))
          std::this_thread::yield();
        CHECK(ended.load() == 0);
        for (Halt& one : halt) one.may_go_on.store(true);
      }
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("a team that is gone leaves its memory and its region until all have read", "[protocol]") {
  static std::atomic<int> released;
  for (const Descriptor* descriptor : borrowing()) {
    INFO(name_of(descriptor->collective) << " " << descriptor->name);
    const Reduction reduction = reduction_for(false, true);
    released = 0;
    Arenas arenas(3, two_extents, false, [](std::int64_t, std::size_t) noexcept { ++released; });
    Node gone(*descriptor, wait::Mode::block, arenas, all_of(3));
    Halt halt;
    std::atomic<int> wrong{0};
    std::atomic<int> kept{0};
    on_ranks(3, [&](int rank) {
      wait::Site site;
      Call call(descriptor->collective, reduction, rank, 3, 0, count_for(*descriptor, 3), false);
      if (rank == 2) halt.at(call);
      if (!gone.rank(rank).run(call.operands(), site) || !call.is_right()) ++wrong;
      if (rank == 2) return;
      gone.end(rank);
      if (!arenas.rank(rank).keep(gone.region(), 4096, gone.region_bytes())) ++wrong;
      if (++kept == 2) {
        if (released != 0) ++wrong;
        halt.may_go_on.store(true);
      }
    });
    CHECK(wrong == 0);
    CHECK(released == 0);
    // The next team of these ranks finds that it can be given back.
    Node next(*descriptor, wait::Mode::block, arenas, all_of(2));
    on_ranks(2, [&](int rank) {
      wait::Site site;
      Call call(descriptor->collective, reduction, rank, 2, 0, count_for(*descriptor, 2), false);
      if (!next.rank(rank).run(call.operands(), site) || !call.is_right()) ++wrong;
    });
    CHECK(wrong == 0);
    CHECK(released == 2);
    CHECK_FALSE(arenas.rank(2).keep(gone.region(), 4096, gone.region_bytes()));
  }
}

TEST_CASE("calls find memory in what an arena is promised, and leave to MPI what finds none", "[protocol]") {
  static std::atomic<std::size_t> taken;
  static std::atomic<bool> is_there;
  const Reduction reduction = reduction_for(false, true);
  for (const bool promised : {true, false}) {
    taken = 0;
    is_there = promised;
    Arenas arenas(2, two_extents, false, nullptr, [](std::byte*, std::size_t bytes, bool is_promised) noexcept {
      if (!is_promised || !is_there) return false;
      taken += bytes;
      return true;
    });
    std::vector<std::unique_ptr<Node>> nodes;
    for (int turn = 0; turn < 3; ++turn)
      for (const Descriptor* descriptor : borrowing())
        nodes.push_back(std::make_unique<Node>(*descriptor, wait::Mode::automatic, arenas, all_of(2)));
    std::atomic<int> wrong{0};
    on_ranks(2, [&](int rank) {
      wait::Site site;
      const std::vector<const Descriptor*> algorithms = borrowing();
      for (int turn = 0; turn < 4; ++turn)
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          const Descriptor& descriptor = *algorithms[i % algorithms.size()];
          const std::size_t most = count_for(descriptor, 2);
          Call call(descriptor.collective, reduction, rank, 2, turn, turn % 2 == 0 ? most : most / 4, false);
          const bool done = nodes[i]->rank(rank).run(call.operands(), site);
          if (done != promised || !(done ? call.is_right() : call.is_untouched())) ++wrong;
        }
    });
    CHECK(wrong == 0);
    CHECK(taken == (promised ? 2 * DepositArena::promised_of(two_extents) : 0));
  }
}

namespace {

// What another thread does while an arena asks for pages: it leaves one extent and goes on in another.
struct Move {
  Loan* from = nullptr;
  Loan* to = nullptr;
  int asked = 0;
  bool is_done = false;
} during;

bool move_at_second_request(std::byte* /*begin*/, std::size_t /*bytes*/, bool /*promised*/) noexcept {
  if (during.from != nullptr && ++during.asked == 2) {
    during.from->give_back(1);
    during.is_done = during.to->borrow_now(1);
  }
  return true;
}

}  // namespace

TEST_CASE("a thread that moves while another looks for memory takes one extent, not two", "[protocol]") {
  // Four extents of the largest size. Of each a granule is in use, or in the last was, and half is there.
  constexpr std::size_t largest = DepositArena::least_largest_bytes;
  alignas(64) std::atomic<std::uint64_t> released{1};
  const Readers readers{reinterpret_cast<const std::byte*>(&released), 64, 1};
  std::vector<std::byte> window(4 * largest);
  DepositArena arena;
  REQUIRE(arena.open({.window = window.data(),
                      .offset = 0,
                      .bytes = window.size(),
                      .concurrent = true,
                      .populate = move_at_second_request,
                      .release = nullptr}));
  {
    std::array<std::optional<Loan>, 4> small;
    std::array<std::optional<Loan>, 4> halves;
    for (std::size_t i = 0; i < 4; ++i) {
      REQUIRE(small[i].emplace(&arena, readers, 2).borrow_now(4096));
      REQUIRE(small[i]->where(0) / largest == i);
      REQUIRE(halves[i].emplace(&arena, readers, 2).borrow_now(largest / 4));
      halves[i]->give_back(1);
    }
    for (auto& half : halves) half.reset();
    small[3]->give_back(1);
    during = {.from = &*small[0], .to = &*small[3], .asked = 0, .is_done = false};
    Loan fifth(&arena, readers, 2);
    CHECK(fifth.borrow_now(largest / 2));
    CHECK(during.is_done);
    fifth.give_back(1);
    for (auto& loan : small) loan->give_back(1);
    during = {};
  }
}

TEST_CASE("threads of each rank on teams of their own share its arena", "[protocol]") {
  constexpr int ranks = 3;
  constexpr int teams = 16;
  const std::vector<const Descriptor*> algorithms = borrowing();
  const Reduction reduction = reduction_for(false, true);
  for (const int threads : {4, 7}) {
    // Four calls find memory at once, whatever the rest holds.
    Arenas arenas(ranks, 2 * two_extents, true);
    std::vector<std::unique_ptr<Node>> nodes;
    for (int team = 0; team < teams; ++team)
      nodes.push_back(std::make_unique<Node>(*algorithms[static_cast<std::size_t>(team) % algorithms.size()],
                                             wait::Mode::automatic, arenas, all_of(ranks), team % 2 == 0 ? 4096 : 0));
    std::atomic<int> wrong{0};
    std::atomic<int> declined{0};
    on_ranks(ranks * threads, [&](int number) {
      const int rank = number % ranks;
      const int thread = number / ranks;
      std::mt19937 random(static_cast<unsigned>(thread));  // alike on all ranks
      wait::Site site;
      for (int turn = 0; turn < 60 * thorough; ++turn) {
        const auto chosen =
            random() % (teams / threads) * static_cast<std::size_t>(threads) + static_cast<std::size_t>(thread);
        const Descriptor& descriptor = *algorithms[chosen % algorithms.size()];
        const std::size_t most = count_for(descriptor, ranks);
        const std::size_t count = turn % 3 == 0 ? most : random() % most + 1;
        Call call(descriptor.collective, reduction, rank, ranks, turn, count, turn % 2 == 0);
        if (!nodes[chosen]->rank(rank).run(call.operands(), site)) {
          ++declined;
          if (!call.is_untouched()) ++wrong;
        } else if (!call.is_right()) {
          ++wrong;
        }
      }
    });
    CHECK(wrong == 0);
    CHECK(declined % ranks == 0);
    if (threads == 4) CHECK(declined == 0);
  }
}

TEST_CASE("64 ranks and a window of 64 MiB: many teams, messages in many rounds", "[protocol]") {
  constexpr int ranks = 64;
  Arenas arenas(ranks, DepositArena::bytes_for(std::size_t{64} << 20, ranks), true);
  const Reduction reduction = reduction_for(false, true);
  // Some of all ranks, some of eight.
  std::vector<std::unique_ptr<Node>> whole;
  std::vector<std::vector<std::unique_ptr<Node>>> rows;
  const std::vector<const Descriptor*> algorithms = borrowing();
  for (const Descriptor* descriptor : algorithms) {
    whole.push_back(std::make_unique<Node>(*descriptor, wait::Mode::automatic, arenas, all_of(ranks)));
    rows.emplace_back();
    for (int row = 0; row < 8; ++row) {
      std::vector<int> members(8);
      std::iota(members.begin(), members.end(), 8 * row);
      rows.back().push_back(std::make_unique<Node>(*descriptor, wait::Mode::automatic, arenas, members));
    }
  }
  std::atomic<int> wrong{0};
  on_ranks(ranks, [&](int rank) {
    wait::Site site;
    for (int turn = 0; turn < thorough; ++turn)
      for (std::size_t i = 0; i < algorithms.size(); ++i)
        for (const bool is_row : {false, true}) {
          const Descriptor& descriptor = *algorithms[i];
          const int size = is_row ? 8 : ranks;
          const int me = is_row ? rank % 8 : rank;
          Node& node = is_row ? *rows[i][static_cast<std::size_t>(rank / 8)] : *whole[i];
          const std::size_t bytes = descriptor.collective == Collective::allreduce
                                        ? std::min<std::size_t>(descriptor.max_bytes, 200'000)
                                    : is_row ? 20'000
                                             : 2'000;
          Call call(descriptor.collective, reduction, me, size, turn, bytes / sizeof(Matrix), turn % 2 == 0);
          if (!node.rank(me).run(call.operands(), site) || !call.is_right()) ++wrong;
        }
  });
  CHECK(wrong == 0);
}

}  // namespace papaya
