// Ranks that may leave a bcast, reduce, gather or scatter before others come to it never wait for them: however far
// they run ahead, and while the algorithm is set up.
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/waiting/switch_over.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

template <class Body>
void for_each_algorithm(Body body) {
  for (const Collective collective : {Collective::bcast, Collective::reduce, Collective::gather, Collective::scatter})
    for (const bool arrival_order : {false, true})
      for (const Descriptor* descriptor : algorithms_for(collective, arrival_order)) {
        if (arrival_order && collective != Collective::reduce) continue;
        for (const bool is_lean : {false, true})
          for (const auto& values : parameter_sets(*descriptor)) {
            if (is_lean && (descriptor->lean_bytes == nullptr || values != default_values(*descriptor))) continue;
            INFO(name_of(collective) << " " << descriptor->name << " order " << arrival_order << " lean " << is_lean);
            body(*descriptor, arrival_order, values, is_lean);
          }
      }
}

std::vector<const Descriptor*> lean_algorithms() {
  std::vector<const Descriptor*> found;
  for (const Descriptor* descriptor : registry())
    if (descriptor->lean_bytes != nullptr) found.push_back(descriptor);
  return found;
}

// What became of a call on each rank: all ranks must see the same.
class Outcomes {
 public:
  Outcomes(int ranks, int calls) : served_(static_cast<std::size_t>(calls)), ranks_(ranks) {}
  void note(int call, bool is_served) { served_[static_cast<std::size_t>(call)] += is_served ? 1 : 0; }
  int mixed() const {
    int count = 0;
    for (const auto& one : served_) count += one != 0 && one != ranks_ ? 1 : 0;
    return count;
  }
  int left_to_mpi() const {
    int count = 0;
    for (const auto& one : served_) count += one == 0 ? 1 : 0;
    return count;
  }

 private:
  std::vector<std::atomic<int>> served_;
  const int ranks_;
};

}  // namespace

TEST_CASE("who may leave early makes hundreds of calls before anybody else comes", "[protocol]") {
  for_each_algorithm(
      [](const Descriptor& descriptor, bool arrival_order, const std::vector<std::int64_t>& values, bool is_lean) {
        constexpr int ranks = 3;
        constexpr int calls = 300;
        const bool from_root = is_from_root(descriptor.collective);
        const auto run_with = [&](int ahead, std::size_t count) {
          Mailbox mailbox(ranks);
          Node node(descriptor, ranks, wait::Mode::automatic,
                    {.arrival_order = arrival_order, .values = values, .mailbox = &mailbox, .is_lean = is_lean});
          // In a hierarchical algorithm it reduces for its node.
          if (!from_root && descriptor.segment != nullptr) {
            const Nodes& nodes = node.nodes();
            const std::vector<int>& on_node =
                nodes.ranks[static_cast<std::size_t>(nodes.of_rank[static_cast<std::size_t>(ahead)])];
            if (on_node.size() > 1 && on_node.front() == ahead) return;
          }
          const Reduction reduction = reduction_for(arrival_order, true);
          Outcomes outcomes(ranks, calls);
          std::atomic<bool> is_through{false};
          std::atomic<int> wrong{0};
          std::atomic<bool> was_late{false};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            // Should it wait for the others after all, they come in the end.
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            while (rank != ahead && !is_through) {
              if (std::chrono::steady_clock::now() > deadline) {
                was_late = true;
                break;
              }
              std::this_thread::sleep_for(std::chrono::microseconds(100));
            }
            for (int i = 0; i < calls; ++i) {
              Call call(descriptor.collective, reduction, rank, ranks, i * ranks, count, false);  // always rank 0's
              const bool is_served = node.rank(rank).run(call.operands(), site);
              outcomes.note(i, is_served);
              if (is_served && !call.is_right()) ++wrong;
            }
            if (rank == ahead) is_through = true;
          });
          CHECK(!was_late);
          CHECK(wrong == 0);
          CHECK(outcomes.mixed() == 0);
          // Something had to fall back.
          CHECK(outcomes.left_to_mpi() + mailbox.sent() + node.sent_on_nodes() > 0);
          if (!from_root || descriptor.segment != nullptr) CHECK(outcomes.left_to_mpi() == 0);
        };
        const int node_shapes =
            descriptor.segment != nullptr && descriptor.region_bytes != nullptr ? 5 : 1;  // of some_nodes
        for (int turn = 0; turn < node_shapes; ++turn)
          for (const int ahead : {from_root ? 0 : 1, from_root ? 0 : 2})
            for (const std::size_t count : {std::size_t{2}, std::size_t{40}})
              run_with(ahead, count);  // with the flag, and in a slot
      });
}

TEST_CASE("ranks that run ahead by turns, with other roots and with messages of many rounds between", "[protocol]") {
  for_each_algorithm(
      [](const Descriptor& descriptor, bool arrival_order, const std::vector<std::int64_t>& values, bool is_lean) {
        const bool from_root = is_from_root(descriptor.collective);
        for (const int ranks : {2, 3, 5}) {
          constexpr int phases = 6;
          constexpr int per_phase = 150 * thorough;
          constexpr int calls = phases * per_phase;
          Mailbox mailbox(ranks);
          Node node(descriptor, ranks, wait::Mode::automatic,
                    {.arrival_order = arrival_order, .values = values, .mailbox = &mailbox, .is_lean = is_lean});
          const Reduction reduction = reduction_for(arrival_order, true);
          Outcomes outcomes(ranks, calls);
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            std::mt19937 random(static_cast<unsigned>(rank + 1));
            for (int i = 0; i < calls; ++i) {
              const int phase = i / per_phase;
              // One rank is late at the beginning of each phase, and a bit now and then.
              if (i % per_phase == 0 && rank == phase % ranks)
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
              if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
              // In each phase one root, at its end all in turn; some calls are too large for one round.
              const bool takes_turns = i % per_phase >= per_phase - 10;
              const int number = takes_turns ? i : i * ranks + (phase + 1) % ranks;
              const std::size_t large = std::min(2 * capacity, descriptor.max_bytes) / sizeof(Matrix);
              const std::size_t count = i % 50 == 49 ? large : 1 + static_cast<std::size_t>(i % 9);
              Call call(descriptor.collective, reduction, rank, ranks, number, count, false);
              const bool is_served = node.rank(rank).run(call.operands(), site);
              outcomes.note(i, is_served);
              if (is_served && !call.is_right()) ++wrong;
            }
          });
          CHECK(wrong == 0);
          CHECK(outcomes.mixed() == 0);
          if (!from_root || descriptor.segment != nullptr) CHECK(outcomes.left_to_mpi() == 0);
        }
      });
}

TEST_CASE("what early leavers deposit keeps nobody from memory, and they wait for none", "[protocol]") {
  constexpr int ranks = 3;
  constexpr int teams = 8;
  const Descriptor& symmetric = *find_algorithm(Collective::allreduce, "arrival_leader");
  const Reduction reduction = reduction_for(false, true);
  for (const Descriptor* descriptor : lean_algorithms()) {
    INFO(name_of(descriptor->collective) << " " << descriptor->name);
    const bool from_root = is_from_root(descriptor->collective);
    const int early = from_root ? 0 : 1;  // rank 0 is the root
    constexpr std::size_t count = capacity / sizeof(Matrix);
    // The early rank has memory for the deposits of one of these teams and for one allreduce.
    Arenas arenas(ranks, 2 * DepositArena::least_largest_bytes, false);
    std::vector<std::unique_ptr<Mailbox>> mailboxes;
    std::vector<std::unique_ptr<Node>> nodes;
    for (int team = 0; team < teams; ++team) {
      mailboxes.push_back(std::make_unique<Mailbox>(ranks));
      nodes.push_back(std::make_unique<Node>(*descriptor, wait::Mode::automatic, arenas, std::vector<int>{0, 1, 2}, 0,
                                             mailboxes.back().get()));
    }
    Node both(symmetric, wait::Mode::automatic, arenas, {early, 2});
    const auto sent = [&] {
      int all = 0;
      for (const auto& mailbox : mailboxes) all += mailbox->sent();
      return all;
    };
    constexpr int steps = 8 * teams;
    Outcomes outcomes(ranks, teams);
    Outcomes later(ranks, steps);
    std::atomic<int> wrong{0};
    std::atomic<bool> is_through{false};
    std::atomic<bool> was_late{false};
    std::atomic<int> sent_before{0};
    std::barrier meeting(ranks);
    on_ranks(ranks, [&](int rank) {
      wait::Site site;
      const auto call_on = [&](int team, Outcomes& to, int number) {
        Call call(descriptor->collective, reduction, rank, ranks, 0, count, false);
        const bool is_served = nodes[static_cast<std::size_t>(team)]->rank(rank).run(call.operands(), site);
        to.note(number, is_served);
        if (is_served && !call.is_right()) ++wrong;
      };
      const auto all_calls = [&] {
        for (int team = 0; team < teams; ++team) call_on(team, outcomes, team);
      };
      if (rank == early) all_calls();
      if (rank == early || rank == 2) {
        const int me = rank == early ? 0 : 1;
        for (int number = 0; number < 4; ++number) {
          Call call(symmetric.collective, reduction, me, 2, number, count, false);
          if (!both.rank(me).run(call.operands(), site) || !call.is_right()) ++wrong;
        }
        is_through = true;
      } else {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!is_through && !was_late) {
          if (std::chrono::steady_clock::now() > deadline) was_late = true;
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
      }
      if (rank != early) all_calls();
      // Once all has been read, a team at a time has the memory.
      for (int step = 0; step < steps; ++step) {
        meeting.arrive_and_wait();
        if (rank == 0 && step == steps - teams) sent_before = sent();
        meeting.arrive_and_wait();
        call_on(step % teams, later, step);
      }
    });
    CHECK(!was_late);
    CHECK(wrong == 0);
    CHECK(outcomes.mixed() == 0);
    CHECK(later.mixed() == 0);
    if (from_root) {
      CHECK(outcomes.left_to_mpi() == teams - 1);
      CHECK(later.left_to_mpi() <= 2 * teams);
    } else {
      CHECK(outcomes.left_to_mpi() + later.left_to_mpi() == 0);
      CHECK(sent_before >= teams - 1);
      CHECK(sent() == sent_before);
    }
  }
}

TEST_CASE("early leavers of many teams and threads share arenas with who waits for all", "[protocol]") {
  const std::vector<const Descriptor*> algorithms = lean_algorithms();
  const Descriptor& symmetric = *find_algorithm(Collective::allreduce, "arrival_tree");
  for (const bool by_table : {true, false})
    for (const bool is_there : {true, false})
      for (const int ranks : {1, 2, 3, 5, 8}) {
        const int threads = ranks == 3 ? 3 : 1;
        constexpr int teams = 9;
        const int calls = 60 * thorough;
        const Reduction reduction = reduction_for(false, by_table);
        // Without pages beyond what is promised all that does not travel with its flag falls back.
        bool (*const promised_only)(std::byte*, std::size_t, bool) noexcept =
            [](std::byte*, std::size_t, bool promised) noexcept { return promised; };
        Arenas arenas(ranks, 2 * DepositArena::least_largest_bytes * static_cast<std::size_t>(threads > 1 ? 2 : 1),
                      threads > 1, nullptr, is_there ? nullptr : promised_only);
        std::vector<int> members;
        for (int rank = 0; rank < ranks; ++rank) members.push_back(rank);
        std::vector<std::unique_ptr<Mailbox>> mailboxes;
        std::vector<std::unique_ptr<Node>> nodes;
        std::vector<std::unique_ptr<Outcomes>> outcomes;
        const int all_teams = teams * threads;
        for (int team = 0; team < all_teams; ++team) {
          const bool is_symmetric = team % 3 == 2;
          mailboxes.push_back(std::make_unique<Mailbox>(ranks));
          const Descriptor& descriptor =
              is_symmetric ? symmetric : *algorithms[static_cast<std::size_t>(team - team / 3) % algorithms.size()];
          nodes.push_back(
              std::make_unique<Node>(descriptor, wait::Mode::automatic, arenas, members, 0, mailboxes.back().get()));
          outcomes.push_back(std::make_unique<Outcomes>(ranks, calls));
        }
        std::atomic<int> wrong{0};
        on_ranks(ranks * threads, [&](int number) {
          const int rank = number % ranks;
          const int thread = number / ranks;
          std::mt19937 alike(static_cast<unsigned>(thread + 1));  // on all ranks
          std::mt19937 random(static_cast<unsigned>(number + 77));
          wait::Site site;
          for (int i = 0; i < calls; ++i) {
            const int team = thread * teams + static_cast<int>(alike() % teams);
            const bool is_symmetric = team % 3 == 2;
            const Descriptor& descriptor =
                is_symmetric ? symmetric : *algorithms[static_cast<std::size_t>(team - team / 3) % algorithms.size()];
            const std::size_t sizes[] = {
                1, 7, 9, 300, 1024, 1025, capacity / sizeof(Matrix), 3 * capacity / sizeof(Matrix) + 5};
            const std::size_t count =
                std::min(sizes[alike() % 8], std::min(descriptor.max_bytes, 4 * capacity) / sizeof(Matrix));
            if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
            Call call(descriptor.collective, reduction, rank, ranks, i, count, i % 2 == 0);
            const bool is_served = nodes[static_cast<std::size_t>(team)]->rank(rank).run(call.operands(), site);
            outcomes[static_cast<std::size_t>(team)]->note(i, is_served);
            if (is_served ? !call.is_right() : descriptor.collective == Collective::reduce) ++wrong;
          }
        });
        CHECK(wrong == 0);
        for (const auto& one : outcomes) CHECK(one->mixed() == 0);
      }
}

TEST_CASE("a root that sleeps is woken for what comes as a message", "[protocol]") {
  // Rank 2 has no memory to deposit in as long as the root has not come to the calls on the first teams.
  const Reduction reduction = reduction_for(false, true);
  constexpr std::size_t counts[] = {300, capacity / sizeof(Matrix)};  // that the root combines, and the others
  for (const Descriptor* descriptor : lean_algorithms())
    for (const std::size_t count : counts)
      for (const bool is_eager : {true, false})
        for (const int last : {1, 2}) {
          if (descriptor->collective != Collective::reduce) continue;
          INFO(descriptor->name << " count " << count << " eager " << is_eager << " last " << last);
          constexpr int ranks = 3;
          constexpr int first_teams = 4;
          constexpr int enough = 3;
          Arenas arenas(ranks, 2 * DepositArena::least_largest_bytes, false);
          Mailbox between_two(2);
          Mailbox mailbox(ranks, is_eager);
          std::vector<std::unique_ptr<Node>> first;
          for (int team = 0; team < first_teams; ++team)
            first.push_back(std::make_unique<Node>(*descriptor, wait::Mode::block, arenas, std::vector<int>{0, 2}, 0,
                                                   &between_two));
          Node node(*descriptor, wait::Mode::block, arenas, {0, 1, 2}, 0, &mailbox);
          wait::Policy& root = node.policy(0);
          std::atomic<int> wrong{0};
          std::atomic<std::uint64_t> wakes_before{0};
          std::atomic<int> woken{0};  // calls in which the last to come has woken it
          std::atomic<bool> is_over{false};
          std::barrier meeting(ranks);
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            const auto call_on_first = [&] {
              for (const auto& team : first) {
                Call call(descriptor->collective, reduction, rank / 2, 2, 0, capacity / sizeof(Matrix), false);
                if (!team->rank(rank / 2).run(call.operands(), site) || !call.is_right()) ++wrong;
              }
            };
            if (rank == 2) call_on_first();
            // It may just be looking between two sleeps.
            for (int number = 0; number < 100 && !is_over; ++number) {
              const std::uint64_t sleeps = root.sleeps();
              meeting.arrive_and_wait();
              // In sleeps of the longest.
              while (rank != 0 && root.sleeps() < sleeps + 6) std::this_thread::yield();
              if (rank == last) {
                // The other's message or deposit is there, and the root asleep again.
                const std::uint64_t since = root.sleeps();
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                while (root.sleeps() < since + 1) std::this_thread::yield();
                wakes_before = root.wakes();
              }
              Call call(descriptor->collective, reduction, rank, ranks, number * ranks, count, false);
              if (!node.rank(rank).run(call.operands(), site) || !call.is_right()) ++wrong;
              if (rank == 0) {
                woken += root.wakes() > wakes_before ? 1 : 0;
                is_over = woken >= enough;
              }
              meeting.arrive_and_wait();
            }
            if (rank == 0) call_on_first();
          });
          CHECK(wrong == 0);
          CHECK(mailbox.sent() > 0);
          CHECK(woken >= enough);
        }
}

TEST_CASE("a team is gone before anybody reads what its early leavers left", "[protocol]") {
  static std::atomic<int> released;
  const Reduction reduction = reduction_for(false, true);
  for (const Descriptor* descriptor : lean_algorithms()) {
    INFO(name_of(descriptor->collective) << " " << descriptor->name);
    released = 0;
    constexpr int ranks = 2;
    const int early = descriptor->collective == Collective::bcast ? 0 : 1;
    Arenas arenas(ranks, 2 * DepositArena::least_largest_bytes, false,
                  [](std::int64_t, std::size_t) noexcept { ++released; });
    Mailbox mailbox(ranks);
    Node gone(*descriptor, wait::Mode::automatic, arenas, {0, 1}, 0, &mailbox);
    Node next(*descriptor, wait::Mode::automatic, arenas, {0, 1}, 0, &mailbox);
    std::atomic<int> wrong{0};
    std::atomic<bool> has_ended{false};
    on_ranks(ranks, [&](int rank) {
      wait::Site site;
      Call call(descriptor->collective, reduction, rank, ranks, 0, capacity / sizeof(Matrix), false);
      Call another(descriptor->collective, reduction, rank, ranks, 2, capacity / sizeof(Matrix), false);
      while (rank != early && !has_ended) std::this_thread::yield();
      if (!gone.rank(rank).run(call.operands(), site) || !call.is_right()) ++wrong;
      if (rank != early) return;
      gone.end(rank);
      if (!arenas.rank(rank).keep(gone.region(), 4096, gone.region_bytes())) ++wrong;
      // There is no memory for this; it must not take what is still to be read.
      const bool is_served = next.rank(rank).run(another.operands(), site);
      if (is_served != (descriptor->collective == Collective::reduce) || released != 0) ++wrong;
      has_ended = true;
    });
    CHECK(wrong == 0);
    CHECK(released == 0);
    CHECK(mailbox.sent() == (descriptor->collective == Collective::reduce ? 1 : 0));
    CHECK_FALSE(arenas.rank(early).keep(gone.region(), 4096, gone.region_bytes()));
    CHECK(released == 1);
  }
}

TEST_CASE("ranks agree without waiting on the call from which they go another way", "[protocol]") {
  for (int turn = 0; turn < 300 * thorough; ++turn) {
    constexpr int ranks = 4;
    constexpr int calls = 60;
    constexpr int meets_at = 30;
    switch_over::Word word{0};
    const bool somebody_fails = turn % 5 == 4;
    // In every other turn the ranks meet once, after all have joined: then they must agree, unless one of them fails.
    const bool they_meet = turn % 2 == 1;
    std::barrier meeting(ranks);
    std::vector<std::vector<int>> way(ranks, std::vector<int>(calls + 1));
    std::atomic<int> early{0};
    std::atomic<int> prepared{0};  // not ordered but by the agreement
    on_ranks(ranks, [&](int rank) {
      std::mt19937 random(static_cast<unsigned>(turn * ranks + rank));
      const int joins_at = 1 + static_cast<int>(random() % 20);
      for (int call = 1; call <= calls; ++call) {
        if (random() % 8 == 0) std::this_thread::yield();
        if (they_meet && call == meets_at) meeting.arrive_and_wait();
        if (call < joins_at) continue;
        if (call == joins_at) {
          prepared.fetch_add(1, std::memory_order_relaxed);
          switch_over::join(word, ranks, static_cast<std::uint64_t>(call), !(somebody_fails && rank == 2));
          continue;
        }
        const switch_over::Verdict verdict = switch_over::enter(word, static_cast<std::uint64_t>(call));
        if (verdict == switch_over::Verdict::never) {
          if (they_meet && call < meets_at) meeting.arrive_and_wait();
          break;
        }
        if (verdict == switch_over::Verdict::from_now_on) {
          way[static_cast<std::size_t>(rank)][static_cast<std::size_t>(call)] = 1;
          if (prepared.load(std::memory_order_relaxed) != ranks) ++early;
        }
      }
    });
    CHECK(early == 0);
    for (int rank = 0; rank < ranks; ++rank) CHECK(way[static_cast<std::size_t>(rank)] == way[0]);
    if (somebody_fails)
      CHECK(way[0] == std::vector<int>(calls + 1));
    else if (they_meet)
      CHECK(way[0][calls] == 1);
  }
}

}  // namespace papaya
