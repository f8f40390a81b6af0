// The protocols of the other collectives with threads as ranks: every algorithm of the registry, all arrival orders of
// few ranks with the schedule forced, random arrivals of more, calls that overtake each other, vetoes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/kernels/reduce.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

constexpr Collective collectives[] = {Collective::barrier, Collective::bcast, Collective::allgather,
                                      Collective::alltoall, Collective::reduce};

template <class Body>
void for_each_algorithm(std::span<const Collective> chosen, Body body) {
  for (const Collective collective : chosen)
    for (const bool arrival_order : {false, true})
      for (const Descriptor* descriptor : algorithms_for(collective, arrival_order)) {
        // Nothing to reorder.
        if (arrival_order && collective != Collective::reduce && collective != Collective::allreduce) continue;
        INFO(name_of(collective) << " " << descriptor->name << " order " << arrival_order);
        body(*descriptor, arrival_order);
      }
}

// One call for every order of arrival and every root. Returns how many results were wrong.
int every_order(Node& node, const Descriptor& descriptor, const Reduction& reduction, wait::Mode mode) {
  const int ranks = node.size();
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::vector<wait::Site> sites(static_cast<std::size_t>(ranks));
  std::atomic<int> wrong{0};
  int number = 0;
  do {
    for (int root = 0; root < ranks; ++root, ++number) {
      // Forced: a rank enters once the one before it in the order has left, gone to sleep or waited a while.
      std::atomic<int> turn{0};
      std::vector<std::atomic<bool>> left(static_cast<std::size_t>(ranks));
      std::vector<std::uint64_t> sleeps(static_cast<std::size_t>(ranks));
      for (int r = 0; r < ranks; ++r) sleeps[static_cast<std::size_t>(r)] = node.policy(r).sleeps();
      on_ranks(ranks, [&](int rank) {
        const auto me = static_cast<std::size_t>(rank);
        const int place = static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
        Call call(descriptor.collective, reduction, rank, ranks, number, 3, number % 2 == 1);
        while (turn.load() < place) std::this_thread::yield();
        if (place > 0) {
          const auto before = static_cast<std::size_t>(order[static_cast<std::size_t>(place - 1)]);
          if (mode == wait::Mode::block)
            while (!left[before].load() && node.policy(static_cast<int>(before)).sleeps() == sleeps[before])
              std::this_thread::yield();
        }
        turn.store(place + 1);
        node.rank(rank).run(call.operands(), sites[me]);
        left[me].store(true);
        if (!call.is_right()) ++wrong;
      });
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return wrong;
}

}  // namespace

TEST_CASE("every arrival order of few ranks, every root", "[protocol]") {
  for_each_algorithm(collectives, [](const Descriptor& descriptor, bool arrival_order) {
    for (const int ranks : {2, 3, 4})
      for (const wait::Mode mode : {wait::Mode::block, wait::Mode::spin})
        for (const bool by_table : {true, false}) {
          if (!by_table && descriptor.collective != Collective::reduce) continue;
          Node node(descriptor, ranks, mode, arrival_order);
          CHECK(every_order(node, descriptor, reduction_for(arrival_order, by_table), mode) == 0);
        }
  });
}

TEST_CASE("round numbers pass 2^31 and 2^32, where events wrap around", "[protocol]") {
  constexpr Collective all[] = {Collective::barrier,  Collective::bcast,  Collective::allgather,
                                Collective::alltoall, Collective::reduce, Collective::allreduce};
  for_each_algorithm(all, [](const Descriptor& descriptor, bool arrival_order) {
    constexpr int ranks = 3;
    for (const std::uint64_t limit : {std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {
      // The doorbells stand at 0 as if nobody had slept in all the rounds before. Single rounds, each with sleepers;
      // then calls of several rounds, with ranks that run ahead.
      constexpr int rounds = 140;
      const Reduction reduction = reduction_for(arrival_order, true);
      {
        Node node(descriptor, ranks, wait::Mode::block, arrival_order, {}, nullptr, limit - rounds);
        int wrong = 0;
        for (int calls = 0; calls < rounds + 20; calls += 18)
          wrong += every_order(node, descriptor, reduction, wait::Mode::block);
        CHECK(wrong == 0);
      }
      Node node(descriptor, ranks, wait::Mode::block, arrival_order, {}, nullptr, limit - rounds);
      const std::size_t large = descriptor.max_bytes > capacity ? 4 * capacity / sizeof(Matrix) + 77 : 300;
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        std::mt19937 random(static_cast<unsigned>(rank));
        for (int number = 0; number < rounds + 20; ++number) {
          const std::size_t count = number % (12 / thorough) == 0 ? large : 2;
          Call call(descriptor.collective, reduction, rank, ranks, number, count, number % 2 == 0);
          if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
          node.rank(rank).run(call.operands(), site);
          if (!call.is_right()) ++wrong;
        }
      });
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("random arrivals, odd rank counts, all sizes, ranks ahead of each other", "[protocol]") {
  for_each_algorithm(collectives, [](const Descriptor& descriptor, bool arrival_order) {
    for (const int ranks : {1, 2, 3, 5, 7, 8})
      for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::yield}) {
        Node node(descriptor, ranks, mode, arrival_order);
        const Reduction reduction = reduction_for(arrival_order, true);
        const auto p = static_cast<std::size_t>(ranks);
        std::vector<std::size_t> counts = {1, p - 1, p, p + 1, 2, 7, 63, 1021, capacity / sizeof(Matrix)};
        if (descriptor.max_bytes > capacity) counts.push_back(4 * capacity / sizeof(Matrix) + 77);
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank) {
          std::mt19937 random(static_cast<unsigned>(rank) * 977 + static_cast<unsigned>(ranks));
          wait::Site site;
          int number = 0;
          for (int round = 0; round < 1 + thorough; ++round)
            for (const std::size_t count : counts) {
              if (count == 0) continue;
              // Short calls in a row: roots and depositors run ahead as far as the banks go.
              for (int repeat = 0; repeat < (count < 64 ? 12 : 1); ++repeat, ++number) {
                Call call(descriptor.collective, reduction, rank, ranks, number, count, number % 3 == 0);
                if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
                node.rank(rank).run(call.operands(), site);
                if (!call.is_right()) ++wrong;
              }
            }
        });
        CHECK(wrong == 0);
      }
  });
}

TEST_CASE("a late rank is overtaken by as many calls as there are banks, and finds every one", "[protocol]") {
  // The root of a bcast and the non-roots of a reduce leave before the others come.
  constexpr Collective early_leavers[] = {Collective::bcast, Collective::reduce};
  for_each_algorithm(early_leavers, [](const Descriptor& descriptor, bool arrival_order) {
    constexpr int ranks = 3;
    // One round with the flag, one in a slot, many.
    for (const std::size_t count : {std::size_t{2}, std::size_t{300}, 2 * capacity / sizeof(Matrix)}) {
      if (count * sizeof(Matrix) > descriptor.max_bytes) continue;
      Node node(descriptor, ranks, wait::Mode::block, arrival_order);
      const Reduction reduction = reduction_for(arrival_order, true);
      const bool is_bcast = descriptor.collective == Collective::bcast;
      // The one that the others can do without, and one that waits for nothing but a free bank.
      const int late = is_bcast ? 2 : 0;
      const int fast = is_bcast ? 0 : 1;
      std::atomic<int> ahead{0};
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        for (int i = 0; i < 100; ++i) {
          if (rank == late && i == 0)
            while (ahead.load() < 2 || node.policy(fast).sleeps() == 0) std::this_thread::yield();
          const int number = i * ranks;  // always rank 0's
          Call call(descriptor.collective, reduction, rank, ranks, number, count, false);
          node.rank(rank).run(call.operands(), site);
          if (!call.is_right()) ++wrong;
          if (rank == fast) ahead.store(i + 1);
        }
      });
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("a rank stands still after its deposit while the others are in the next call", "[protocol]") {
  constexpr Collective chosen[] = {Collective::barrier, Collective::allgather, Collective::alltoall,
                                   Collective::allreduce};
  for_each_algorithm(chosen, [](const Descriptor& descriptor, bool arrival_order) {
    if (descriptor.segment != nullptr) return;  // what goes from rank to rank needs each of them again
    for (const int ranks : {2, 3, 5})
      for (const auto& values : ways_to_serve(descriptor)) {
        constexpr int calls = 60;
        Node node(descriptor, ranks, wait::Mode::automatic, arrival_order, values);
        const Reduction reduction = reduction_for(arrival_order, true);
        std::vector<std::atomic<int>> deposits(calls);
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank) {
          wait::Site site;
          for (int number = 0; number < calls; ++number) {
            const std::size_t count = number % 3 == 0 ? 300 : 2;
            Call call(descriptor.collective, reduction, rank, ranks, number, count, number % 2 == 0);
            auto deposited = [&] {
              ++deposits[static_cast<std::size_t>(number)];
              if (number % ranks != rank || number + 1 == calls) return;
              while (deposits[static_cast<std::size_t>(number) + 1].load() < ranks - 1) std::this_thread::yield();
            };
            call.operands().deposited = [](void* context) { (*static_cast<decltype(deposited)*>(context))(); };
            call.operands().context = &deposited;
            node.rank(rank).run(call.operands(), site);
            if (!call.is_right()) ++wrong;
          }
        });
        CHECK(wrong == 0);
      }
  });
}

namespace {

// Operands whose reduction tells orders apart: of very different size, or under an operation that is not commutative.
struct Kind {
  Reduction reduction;
  void (*fill)(int rank, std::size_t count, std::byte* to);
};

template <class Float>
Kind sum_of(kernels::ElementType type) {
  Reduction reduction;
  reduction.element_bytes = sizeof(Float);
  reduction.combine = kernels::find(type, kernels::Operation::sum);
  reduction.by_table = true;
  return {reduction, [](int rank, std::size_t count, std::byte* to) {
            for (std::size_t i = 0; i < count; ++i) {
              const int exponents = std::numeric_limits<Float>::digits + 7;
              const int exponent = (rank * 13 + static_cast<int>(i % 97) * 5) % exponents;
              const Float value = std::ldexp(Float(1) + Float(rank) / 10, exponent);
              std::memcpy(to + i * sizeof value, &value, sizeof value);
            }
          }};
}

Kind product_of_matrices() {
  return {reduction_for(false, false), [](int rank, std::size_t count, std::byte* to) {
            for (std::size_t i = 0; i < count; ++i) {
              const Matrix value = matrix_of(rank, i, 0);
              std::memcpy(to + i * sizeof value, &value, sizeof value);
            }
          }};
}

}  // namespace

TEST_CASE("the same bits on all ranks and in 100 orders of arrival", "[protocol]") {
  constexpr int ranks = 7;
  constexpr int runs = thorough > 1 ? 100 : 12;
  const Kind kinds[] = {sum_of<float>(kernels::ElementType::f32), sum_of<double>(kernels::ElementType::f64),
                        product_of_matrices()};
  for (const Collective collective : {Collective::allreduce, Collective::reduce})
    for (const Descriptor* descriptor : registry()) {
      if (descriptor->collective != collective || descriptor->needs_arrival_order) continue;
      const auto ways = ways_to_serve(*descriptor);
      for (const auto& values : ways)
        for (const bool bound : {false, true})
          for (const Kind& kind : kinds)
            // With the flag, in a slot, in all of it, in several; in one place and on three NUMA nodes.
            for (const std::size_t bytes : {std::size_t{8}, std::size_t{1200}, capacity, 3 * capacity + 1200}) {
              if (descriptor->predefined_only && !kind.reduction.by_table) continue;
              if (bytes > descriptor->max_bytes || (bound && (bytes < 1200 || &kind != &kinds[1]))) continue;
              const std::size_t element = kind.reduction.element_bytes;
              const std::size_t count = std::max(bytes / element, std::size_t{1});
              std::vector<topology::Place> places;
              if (bound) places = {{0, 0}, {1, 0}, {0, 0}, {2, 0}, {1, 0}, {0, 0}, {2, 0}};
              Node node(*descriptor, ranks, wait::Mode::automatic, false,
                        bound ? numa_trees_always(*descriptor) : values, nullptr, 1, places);
              std::vector<std::atomic<int>> arrived(runs);
              std::vector<std::vector<std::byte>> first(ranks);  // result of each rank
              std::atomic<int> different{0};
              on_ranks(ranks, [&](int rank) {
                const auto me = static_cast<std::size_t>(rank);
                wait::Site site;
                std::mt19937 delay(static_cast<unsigned>(rank));
                std::vector<std::byte> operand(count * element);
                std::vector<std::byte> result(count * element);
                kind.fill(rank, count, operand.data());
                for (int run = 0; run < runs; ++run) {
                  std::vector<int> order(ranks);
                  std::iota(order.begin(), order.end(), 0);
                  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(run)));
                  while (arrived[static_cast<std::size_t>(run)].load() < order[me]) std::this_thread::yield();
                  if (delay() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(delay() % 60));
                  arrived[static_cast<std::size_t>(run)].fetch_add(1);
                  const int root = collective == Collective::reduce ? run % ranks : -1;
                  const bool wants = root < 0 || root == rank;
                  std::fill(result.begin(), result.end(), std::byte{0x55});
                  const Operands operands{.send = operand.data(),
                                          .receive = wants ? result.data() : nullptr,
                                          .count = count,
                                          .bytes = count * element,
                                          .root = root,
                                          .reduction = &kind.reduction};
                  node.rank(rank).run(operands, site);
                  if (!wants) continue;
                  if (first[me].empty()) first[me] = result;
                  if (std::memcmp(result.data(), first[me].data(), result.size()) != 0) ++different;
                }
              });
              for (const auto& result : first)
                different += std::memcmp(result.data(), first[0].data(), result.size()) != 0;
              INFO(name_of(collective) << " " << descriptor->name << ", " << count << " elements of " << element);
              CHECK(different == 0);
            }
    }
  // The data do tell orders apart.
  for (const Kind& kind : kinds) {
    const std::size_t size = 40 * kind.reduction.element_bytes;
    std::vector<std::byte> upwards(size), downwards(size), next(size);
    kind.fill(0, 40, upwards.data());
    kind.fill(ranks - 1, 40, downwards.data());
    for (int rank = 1; rank < ranks; ++rank) {
      kind.fill(rank, 40, next.data());
      kind.reduction.combine(kind.reduction, upwards.data(), next.data(), upwards.data(), 40);
      kind.fill(ranks - 1 - rank, 40, next.data());
      kind.reduction.combine(kind.reduction, downwards.data(), next.data(), downwards.data(), 40);
    }
    CHECK(std::memcmp(upwards.data(), downwards.data(), size) != 0);
  }
}

namespace {

std::atomic<int> reads;
std::atomic<int> fails_at;  // the number of the read that fails, 0: none

bool sometimes_read(pid_t pid, const void* address, void* to, std::size_t bytes) {
  const int number = reads.fetch_add(1) + 1;
  return number != fails_at.load() && read_memory(pid, address, to, bytes);
}

}  // namespace

TEST_CASE("single copy: blocks are read from their owner; after a read that fails all go through the window",
          "[protocol]") {
  for (const Collective collective : {Collective::allgather, Collective::alltoall})
    for (const Descriptor* descriptor : algorithms_for(collective, false)) {
      std::vector<std::int64_t> values = default_values(*descriptor);
      bool has_parameter = false;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (descriptor->parameters[i].name == "single_copy_bytes") {
          values[i] = 1;
          has_parameter = true;
        }
      if (!has_parameter) continue;
      for (const int ranks : {2, 3, 5})
        for (const int fail : {0, 1, 7}) {
          reads = 0;
          fails_at = fail;
          Node node(*descriptor, ranks, wait::Mode::automatic, false, values, sometimes_read);
          const Reduction reduction = reduction_for(true, true);
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            std::mt19937 random(static_cast<unsigned>(rank));
            for (int number = 0; number < 40; ++number) {
              const std::size_t count = number % 4 == 0 ? 3 * capacity / sizeof(Matrix) / 2 : 5;
              // Now and then in place, and with a veto.
              const bool vetoed = number % 7 == 3;
              Call call(collective, reduction, rank, ranks, number, count, number % 5 == 0);
              call.operands().veto = vetoed && number % ranks == rank;
              if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
              const bool done = node.rank(rank).run(call.operands(), site);
              if (done == vetoed || (done ? !call.is_right() : !call.is_untouched())) ++wrong;
            }
          });
          CHECK(wrong == 0);
          CHECK(reads > 0);
        }
    }
}

TEST_CASE("elements that leave a part of every chunk empty", "[protocol]") {
  constexpr int ranks = 4;
  for (const Collective collective : {Collective::allreduce, Collective::reduce})
    for (const bool arrival_order : {false, true})
      for (const Descriptor* descriptor : algorithms_for(collective, arrival_order))
        for (const std::size_t element : {std::size_t{3000}, std::size_t{3648}, std::size_t{4096}}) {
          if (element > descriptor->max_element_bytes || descriptor->max_bytes < (std::size_t{1} << 20)) continue;
          INFO(name_of(collective) << " " << descriptor->name << " order " << arrival_order << " element " << element);
          Reduction reduction;
          reduction.element_bytes = element;
          reduction.commutative = true;
          reduction.combine = [](const Reduction& self, const void* left, const void* right, void* out,
                                 std::size_t count) {
            for (std::size_t i = 0; i < count * self.element_bytes / sizeof(double); ++i)
              static_cast<double*>(out)[i] = static_cast<const double*>(left)[i] + static_cast<const double*>(right)[i];
          };
          // As many chunks as a slot may have, in all banks and more.
          const std::size_t most_bytes = std::size_t{1} << 20;
          const std::size_t count = most_bytes / element;
          Node node(*descriptor, ranks, wait::Mode::automatic, arrival_order, {}, nullptr, 1, {}, most_bytes);
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            std::vector<double> send(count * element / sizeof(double)), result(send.size());
            for (int call = 0; call < 6; ++call) {
              std::fill(send.begin(), send.end(), rank + call);
              const int root = collective == Collective::reduce ? call % ranks : -1;
              const bool wants = root < 0 || root == rank;
              node.rank(rank).run({.send = send.data(),
                                   .receive = wants ? result.data() : nullptr,
                                   .count = count,
                                   .bytes = count * element,
                                   .root = root,
                                   .reduction = &reduction},
                                  site);
              const double expected = ranks * (ranks - 1) / 2 + ranks * call;
              if (wants && std::any_of(result.begin(), result.end(), [&](double x) { return x != expected; })) ++wrong;
            }
          });
          CHECK(wrong == 0);
        }
}

TEST_CASE("where the ranks are bound does not show in a result", "[protocol]") {
  constexpr int ranks = 7;
  const Kind kind = sum_of<double>(kernels::ElementType::f64);
  const std::size_t count = 3 * capacity / sizeof(double) + 7;
  // Every default: trees by NUMA node only where they are part of the one tree.
  const std::vector<topology::Place> machines[] = {{},
                                                   {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 0}},
                                                   {{0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}},
                                                   {{0, 0}, {1, 0}, {0, 0}, {1, 0}, {0, 0}, {1, 0}, {0, 0}}};
  for (const Collective collective : {Collective::allreduce, Collective::reduce})
    for (const Descriptor* descriptor : algorithms_for(collective, false)) {
      if (count * sizeof(double) > descriptor->max_bytes) continue;
      std::vector<std::byte> results[std::size(machines)];
      for (std::size_t i = 0; i < std::size(machines); ++i) {
        results[i].resize(count * sizeof(double));
        Node node(*descriptor, ranks, wait::Mode::automatic, false, {}, nullptr, 1, machines[i]);
        on_ranks(ranks, [&](int rank) {
          wait::Site site;
          std::vector<std::byte> operand(count * sizeof(double));
          std::vector<std::byte> result(count * sizeof(double));
          kind.fill(rank, count, operand.data());
          const int root = collective == Collective::reduce ? 0 : -1;
          node.rank(rank).run({.send = operand.data(),
                               .receive = rank == 0 || root < 0 ? result.data() : nullptr,
                               .count = count,
                               .bytes = count * sizeof(double),
                               .root = root,
                               .reduction = &kind.reduction},
                              site);
          if (rank == 0) results[i] = result;
        });
        INFO(name_of(collective) << " " << descriptor->name << " machine " << i);
        CHECK(results[i] == results[0]);
      }
    }
}

TEST_CASE("reductions with a tree for each NUMA node", "[protocol]") {
  // Consecutive ranks, even and uneven; in turn, where what does not commute goes over one tree; one rank
  // that is not bound.
  const std::vector<topology::Place> machines[] = {{{0, 0}, {0, 0}, {1, 1}, {1, 1}},
                                                   {{0, 0}, {1, 1}, {0, 0}, {1, 1}},
                                                   {{0, 0}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                                                   {{2, 0}, {0, 1}, {2, 0}, {0, 1}, {1, 2}, {2, 0}, {-1, -1}, {1, 2}}};
  for (const Collective collective : {Collective::allreduce, Collective::reduce})
    for (const bool arrival_order : {false, true})
      for (const Descriptor* descriptor : algorithms_for(collective, arrival_order))
        for (const auto& places : machines)
          for (const bool commutes : {true, false}) {
            if ((arrival_order && !commutes) || !descriptor->one_node) continue;
            INFO(name_of(collective) << " " << descriptor->name << " order " << arrival_order << " commutes "
                                     << commutes);
            const int ranks = static_cast<int>(places.size());
            const Reduction reduction = reduction_for(commutes, true);
            const std::vector<std::int64_t> values = numa_trees_always(*descriptor);
            if (ranks == 4)
              for (const wait::Mode mode : {wait::Mode::block, wait::Mode::spin}) {
                Node node(*descriptor, ranks, mode, arrival_order, values, nullptr, 1, places);
                CHECK(every_order(node, *descriptor, reduction, mode) == 0);
              }
            Node node(*descriptor, ranks, wait::Mode::automatic, arrival_order, values, nullptr, 1, places);
            std::vector<std::size_t> counts = {1, 5, 63, 1021, capacity / sizeof(Matrix)};
            if (descriptor->max_bytes > capacity) counts.push_back(4 * capacity / sizeof(Matrix) + 77);
            std::atomic<int> wrong{0};
            on_ranks(ranks, [&](int rank) {
              std::mt19937 random(static_cast<unsigned>(rank) * 31);
              wait::Site site;
              for (int number = 0; number < 8 * thorough; ++number) {
                const std::size_t count = counts[static_cast<std::size_t>(number) % counts.size()];
                Call call(collective, reduction, rank, ranks, number, count, number % 3 == 0);
                // Now and then one rank cannot take part: then nobody does.
                const bool vetoed = collective == Collective::allreduce && descriptor->takes_vetoes && number % 7 == 3;
                call.operands().veto = vetoed && rank == number % ranks;
                if (random() % 6 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
                const bool done = node.rank(rank).run(call.operands(), site);
                if (done == vetoed || (done ? !call.is_right() : !call.is_untouched())) ++wrong;
              }
            });
            CHECK(wrong == 0);
          }
}

TEST_CASE("bcast on several NUMA nodes and caches, ancestors late or ahead", "[protocol]") {
  const std::vector<topology::Place> places = {{0, 0}, {1, 2}, {0, 1}, {1, 3}, {0, 0}, {1, 2}, {-1, -1}};
  const int ranks = static_cast<int>(places.size());
  for (const Descriptor* descriptor : algorithms_for(Collective::bcast, false))
    for (const std::int64_t value : {1, 2, 64}) {
      std::vector<std::int64_t> values = default_values(*descriptor);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (descriptor->parameters[i].name == "fanout") values[i] = value;
      Node node(*descriptor, ranks, wait::Mode::automatic, false, values, nullptr, 1, places);
      const Reduction reduction = reduction_for(true, true);
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        std::mt19937 random(static_cast<unsigned>(rank) + 31);
        wait::Site site;
        for (int number = 0; number < 60; ++number) {
          const std::size_t count = number % 6 == 5 ? 3 * capacity / sizeof(Matrix) + 5 : number % 2 == 0 ? 3 : 1021;
          Call call(Collective::bcast, reduction, rank, ranks, number / 2, count, false);
          if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
          node.rank(rank).run(call.operands(), site);
          if (!call.is_right()) ++wrong;
        }
      });
      CHECK(wrong == 0);
    }
}

TEST_CASE("a root that has used up the banks knows whom it waits for", "[protocol]") {
  const int ranks = 3;
  for (const Descriptor* descriptor : algorithms_for(Collective::bcast, false)) {
    if (!descriptor->one_node) continue;  // over the wire a rank knows only whom it waits for itself
    static std::atomic<int> reports;
    static std::atomic<bool> right;
    reports = 0;
    right = true;
    Node node(*descriptor, ranks, wait::Mode::block, false);
    for (int rank = 0; rank < ranks; ++rank)
      node.policy(rank).set_stall(0.2, [](void* prepared, double) {
        const auto* waiting = static_cast<const Prepared*>(prepared);
        if (waiting->is_missing(0) || waiting->is_missing(1) || !waiting->is_missing(2)) right = false;
        ++reports;
        return true;
      });
    const Reduction reduction = reduction_for(true, true);
    std::atomic<int> wrong{0};
    on_ranks(ranks, [&](int rank) {
      wait::Site site;
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (rank == 2 && reports.load() < 2 && std::chrono::steady_clock::now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      // A message of more rounds than there are banks; the root is rank 0.
      Call call(Collective::bcast, reduction, rank, ranks, 0, 40 * capacity / sizeof(Matrix), false);
      node.rank(rank).run(call.operands(), site);
      if (!call.is_right()) ++wrong;
    });
    CHECK(wrong == 0);
    CHECK(reports >= 2);
    CHECK(right);
  }
}

TEST_CASE("no receiver of a bcast waits for another receiver that is late", "[protocol]") {
  const int ranks = 4;
  for (const Descriptor* descriptor : algorithms_for(Collective::bcast, false))
    for (int late = 1; late < ranks && descriptor->one_node; ++late) {  // over the wire some pass it on to others
      std::vector<std::int64_t> values = default_values(*descriptor);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (descriptor->parameters[i].name == "fanout") values[i] = 1;  // a chain: everybody is somebody's parent
      Node node(*descriptor, ranks, wait::Mode::automatic, false, values);
      const Reduction reduction = reduction_for(true, true);
      std::atomic<int> done{0};
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        Call call(Collective::bcast, reduction, rank, ranks, 0, 1021, false);
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (rank == late && done.load() < ranks - 1 && std::chrono::steady_clock::now() < give_up)
          std::this_thread::yield();
        if (rank == late && done.load() < ranks - 1) ++wrong;
        node.rank(rank).run(call.operands(), site);
        done.fetch_add(1);
        if (!call.is_right()) ++wrong;
      });
      CHECK(wrong == 0);
    }
}

namespace {

// One alltoallv of one rank: sizes that differ from pair to pair, in buffers with gaps.
class VaryingCall {
 public:
  VaryingCall(int rank, int ranks, int number)
      : rank_(rank), ranks_(ranks), number_(number), in_place_(number % 3 == 1) {
    const auto place = [&](std::vector<Block>& blocks, std::vector<std::byte>& buffer, auto size) {
      std::size_t all = gap;
      for (int peer = 0; peer < ranks; ++peer) all += size(peer) + gap;
      buffer.assign(all, untouched);
      std::byte* at = buffer.data() + all;
      for (int peer = 0; peer < ranks; ++peer) {
        at -= size(peer) + gap;
        blocks.push_back({at, size(peer)});
      }
    };
    place(receive_, received_, [&](int peer) { return bytes(peer, rank_) + room(peer); });
    if (!in_place_) place(send_, sent_, [&](int peer) { return bytes(rank_, peer); });
    for (int peer = 0; peer < ranks; ++peer)
      for (std::size_t i = 0; i < sends()[peer].bytes; ++i) sends()[peer].at[i] = value(rank_, peer, i);
  }

  Operands operands() {
    Operands all{.send = nullptr, .receive = nullptr, .count = 0, .bytes = 0, .root = -1, .reduction = &none_};
    all.send_blocks = sends();
    all.receive_blocks = receive_.data();
    return all;
  }
  bool is_right() {
    std::vector<std::byte> expected(received_.size(), untouched);
    for (int peer = 0; peer < ranks_; ++peer) {
      if (receive_[static_cast<std::size_t>(peer)].bytes != bytes(peer, rank_)) return false;
      std::byte* const at = expected.data() + (receive_[static_cast<std::size_t>(peer)].at - received_.data());
      for (std::size_t i = 0; i < bytes(peer, rank_); ++i) at[i] = value(peer, rank_, i);
    }
    return received_ == expected;
  }
  bool is_untouched() {
    for (int peer = 0; peer < ranks_; ++peer)
      for (std::size_t i = 0; i < sends()[peer].bytes; ++i)
        if (sends()[peer].at[i] != value(rank_, peer, i)) return false;
    return true;
  }

 private:
  static constexpr std::size_t gap = 24;
  static constexpr std::byte untouched{0xa5};

  Block* sends() { return in_place_ ? receive_.data() : send_.data(); }
  // Nothing, a few bytes, some, a lot between all; a lot from one rank alone.
  std::size_t bytes(int from, int to) const {
    if (in_place_ && from > to) std::swap(from, to);
    std::minstd_rand random(static_cast<unsigned>(number_ * 1009 + from * 101 + to + 1));
    random.discard(3);
    const std::size_t kind = random() % 4;
    const auto up_to = [&](std::size_t most) { return kind == 0 ? 0 : random() % (most + 1); };
    switch (number_ % 8) {
      case 0:
        return 0;
      case 1:
      case 2:
        return up_to(24);
      case 3:
      case 4:
        return up_to(3000);
      case 5:
        return from == number_ / 8 % ranks_ ? up_to(4 * capacity) + kind * capacity : up_to(9);
      case 6:
        return to == number_ / 8 % ranks_ ? up_to(2 * capacity) + 17 : 0;
      default:
        return up_to(kind == 3 ? 3 * capacity : 70000);
    }
  }
  // Some programs leave more room than is sent.
  std::size_t room(int from) const { return !in_place_ && number_ % 5 == 4 && from != rank_ ? 40 : 0; }
  std::byte value(int from, int to, std::size_t i) const {
    return static_cast<std::byte>(static_cast<unsigned>(from * 31 + to * 17 + number_ * 7) + i * 13 + i / 251);
  }

  const int rank_;
  const int ranks_;
  const int number_;
  const bool in_place_;
  const Reduction none_;
  std::vector<Block> send_;
  std::vector<Block> receive_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
};

template <class Body>
void for_each_alltoallv(Body body) {
  for (const Descriptor* descriptor : registry())
    if (descriptor->serves_alltoallv) {
      INFO(name_of(descriptor->collective) << " " << descriptor->name);
      body(*descriptor);
    }
}

}  // namespace

TEST_CASE("alltoallv: sizes of all kinds, in place or not, vetoes, calls of one size between", "[protocol]") {
  for_each_alltoallv([](const Descriptor& descriptor) {
    for (const int ranks : {1, 2, 3, 5, 8})
      for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block}) {
        Node node(descriptor, ranks, mode, false);
        const Reduction reduction = reduction_for(true, true);
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank) {
          wait::Site site;
          std::mt19937 random(static_cast<unsigned>(rank) * 31 + static_cast<unsigned>(ranks));
          for (int number = 0; number < 21 * thorough; ++number) {
            if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
            VaryingCall call(rank, ranks, number);
            Operands operands = call.operands();
            const bool vetoed = descriptor.takes_vetoes && (number % 11 == 7 || number % 16 == 5);
            operands.veto = vetoed && rank == number % ranks;
            const bool done = node.rank(rank).run(operands, site);
            if (done == vetoed || (done ? !call.is_right() : !call.is_untouched())) ++wrong;
            if (number % 6 != 0) continue;
            Call even(descriptor.collective, reduction, rank, ranks, number, number % 4 == 0 ? 5000 : 3,
                      number % 12 == 0);
            if (!node.rank(rank).run(even.operands(), site) || !even.is_right()) ++wrong;
          }
        });
        CHECK(wrong == 0);
      }
  });
}

TEST_CASE("alltoallv: every arrival order of few ranks", "[protocol]") {
  for_each_alltoallv([](const Descriptor& descriptor) {
    for (const int ranks : {2, 3, 4}) {
      std::vector<int> order(static_cast<std::size_t>(ranks));
      std::iota(order.begin(), order.end(), 0);
      Node node(descriptor, ranks, wait::Mode::block, false);
      std::vector<wait::Site> sites(static_cast<std::size_t>(ranks));
      std::atomic<int> wrong{0};
      int number = 0;
      do {
        for (int repeat = 0; repeat < 8; ++repeat, ++number) {
          std::atomic<int> turn{0};
          std::vector<std::uint64_t> sleeps(static_cast<std::size_t>(ranks));
          for (int r = 0; r < ranks; ++r) sleeps[static_cast<std::size_t>(r)] = node.policy(r).sleeps();
          on_ranks(ranks, [&](int rank) {
            const int place = static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
            VaryingCall call(rank, ranks, number);
            while (turn.load() < place) std::this_thread::yield();
            if (place > 0) {
              const int before = order[static_cast<std::size_t>(place - 1)];
              while (node.policy(before).sleeps() == sleeps[static_cast<std::size_t>(before)])
                std::this_thread::yield();
            }
            turn.store(place + 1);
            if (!node.rank(rank).run(call.operands(), sites[static_cast<std::size_t>(rank)]) || !call.is_right())
              ++wrong;
          });
        }
      } while (std::next_permutation(order.begin(), order.end()));
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("no rank leaves a barrier before all have come", "[protocol]") {
  for (const Descriptor* descriptor : algorithms_for(Collective::barrier, false))
    for (const int ranks : {2, 3, 7}) {
      Node node(*descriptor, ranks, wait::Mode::automatic, false);
      std::atomic<int> entered{0};
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        std::mt19937 random(static_cast<unsigned>(rank));
        const Reduction none;
        for (int i = 1; i <= 300; ++i) {
          if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
          entered.fetch_add(1);
          const Operands operands{
              .send = nullptr, .receive = nullptr, .count = 0, .bytes = 0, .root = -1, .reduction = &none};
          node.rank(rank).run(operands, site);
          if (entered.load() < i * ranks) ++wrong;
        }
      });
      CHECK(wrong == 0);
    }
}

TEST_CASE("one rank's veto keeps all out of an exchange, with nothing overwritten", "[protocol]") {
  for (const Collective collective : {Collective::allgather, Collective::alltoall})
    for (const Descriptor* descriptor : algorithms_for(collective, false))
      for (const int ranks : {2, 3, 5})
        for (const std::size_t count : {std::size_t{2}, 3 * capacity / sizeof(Matrix) / 2}) {
          if (!descriptor->takes_vetoes) continue;
          Node node(*descriptor, ranks, wait::Mode::automatic, false);
          const Reduction reduction = reduction_for(true, true);
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            for (int number = 0; number < 30; ++number) {
              Call call(collective, reduction, rank, ranks, number, count, number % 2 == 0);
              call.operands().veto = number % 3 != 0 && number % ranks == rank;
              const bool done = node.rank(rank).run(call.operands(), site);
              if (done != (number % 3 == 0) || (done ? !call.is_right() : !call.is_untouched())) ++wrong;
            }
          });
          CHECK(wrong == 0);
        }
}

}  // namespace papaya
