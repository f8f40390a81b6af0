// The bits of a reduction depend neither on the order of arrival nor on where the ranks are bound.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/kernels/reduce.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

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
  constexpr int runs = thorough > 1 ? 100 : 6;
  const Kind kinds[] = {sum_of<float>(kernels::ElementType::f32), sum_of<double>(kernels::ElementType::f64),
                        product_of_matrices()};
  for (const Collective collective : {Collective::allreduce, Collective::reduce})
    for (const Descriptor* descriptor : registry()) {
      if (descriptor->collective != collective || descriptor->needs_arrival_order) continue;
      const auto sets = parameter_sets(*descriptor);
      for (const auto& values : sets)
        for (const bool bound : {false, true})
          for (const Kind& kind : kinds)
            // With the flag, in a slot, in all of it, in several; in one location and on three NUMA nodes.
            for (const std::size_t bytes : {std::size_t{8}, std::size_t{1200}, capacity, 3 * capacity + 1200}) {
              if (descriptor->predefined_only && !kind.reduction.by_table) continue;
              if (bytes > descriptor->max_bytes || (bound && (bytes < 1200 || &kind != &kinds[1]))) continue;
              const std::size_t element = kind.reduction.element_bytes;
              const std::size_t count = std::max(bytes / element, std::size_t{1});
              std::vector<topology::Location> locations;
              if (bound) locations = {{0, 0}, {1, 0}, {0, 0}, {2, 0}, {1, 0}, {0, 0}, {2, 0}};
              Node node(*descriptor, ranks, wait::Mode::automatic,
                        {.values = bound ? numa_trees_always(*descriptor) : values, .locations = locations});
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
              // A rank that was no root has none.
              for (const auto& result : first)
                if (!result.empty()) different += std::memcmp(result.data(), first[0].data(), result.size()) != 0;
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
          Node node(*descriptor, ranks, wait::Mode::automatic,
                    {.arrival_order = arrival_order, .most_bytes = most_bytes});
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
  const std::vector<topology::Location> machines[] = {{},
                                                      {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 0}},
                                                      {{0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}},
                                                      {{0, 0}, {1, 0}, {0, 0}, {1, 0}, {0, 0}, {1, 0}, {0, 0}}};
  for (const Collective collective : {Collective::allreduce, Collective::reduce})
    for (const Descriptor* descriptor : algorithms_for(collective, false)) {
      if (count * sizeof(double) > descriptor->max_bytes) continue;
      std::vector<std::byte> results[std::size(machines)];
      for (std::size_t i = 0; i < std::size(machines); ++i) {
        results[i].resize(count * sizeof(double));
        Node node(*descriptor, ranks, wait::Mode::automatic, {.locations = machines[i]});
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

}  // namespace papaya
