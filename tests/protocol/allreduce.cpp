// The algorithms' protocols with threads as ranks: every reduction algorithm of the registry, all arrival orders of few
// ranks with the schedule forced, random arrivals of more, ranks that lap each other. Built under ThreadSanitizer too.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/kernels/reduce.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

std::vector<const Descriptor*> allreduce_algorithms(bool arrival_order = false) {
  return algorithms_for(Collective::allreduce, arrival_order);
}

Reduction sum_of_doubles() {
  Reduction reduction;
  reduction.element_bytes = sizeof(double);
  reduction.combine = kernels::find(kernels::ElementType::f64, kernels::Operation::sum);
  reduction.by_table = true;
  return reduction;
}

// 2x2 integer matrices modulo 2^32 multiplied: associative, not commutative, exact. What a user-defined operation is.
struct Matrix {
  std::uint32_t a[4];
  bool operator==(const Matrix& other) const { return std::equal(a, a + 4, other.a); }
};

Matrix multiply(const Matrix& x, const Matrix& y) {
  return {{x.a[0] * y.a[0] + x.a[1] * y.a[2], x.a[0] * y.a[1] + x.a[1] * y.a[3], x.a[2] * y.a[0] + x.a[3] * y.a[2],
           x.a[2] * y.a[1] + x.a[3] * y.a[3]}};
}

Reduction matrix_product(bool by_table) {
  Reduction reduction;
  reduction.element_bytes = sizeof(Matrix);
  reduction.commutative = false;
  reduction.by_table = by_table;
  reduction.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const Matrix product = multiply(static_cast<const Matrix*>(left)[i], static_cast<const Matrix*>(right)[i]);
      static_cast<Matrix*>(out)[i] = product;
    }
  };
  return reduction;
}

Matrix matrix_of(int rank, std::size_t element, int call) {
  const auto seed = static_cast<std::uint32_t>(rank) * 7919u + static_cast<std::uint32_t>(element) * 104729u +
                    static_cast<std::uint32_t>(call) * 1299709u;
  return {{seed, seed * 3 + 1, seed * 5 + 2, seed * 7 + 3}};
}

Operands operands_for(const void* send, void* receive, std::size_t count, const Reduction& reduction) {
  return {.send = send,
          .receive = receive,
          .count = count,
          .bytes = count * reduction.element_bytes,
          .root = -1,
          .reduction = &reduction};
}

}  // namespace

TEST_CASE("every arrival order of few ranks gives the rank-order product", "[protocol]") {
  for (const Descriptor* descriptor : allreduce_algorithms())
    for (const int ranks : {2, 3, 4})
      for (const wait::Mode mode : {wait::Mode::block, wait::Mode::spin})
        for (const bool by_table : {true, false}) {
          std::vector<int> order(static_cast<std::size_t>(ranks));
          std::iota(order.begin(), order.end(), 0);
          Node node(*descriptor, ranks, mode);
          const Reduction reduction = matrix_product(by_table);
          int call = 0;
          std::vector<wait::Site> sites(static_cast<std::size_t>(ranks));
          do {
            // Forced: a rank enters once the one before it in the order has deposited and, when ranks block, gone to
            // sleep at least once, so that the lead has been handed back.
            std::atomic<int> turn{0};
            std::vector<std::uint64_t> sleeps_before(static_cast<std::size_t>(ranks));
            for (int r = 0; r < ranks; ++r) sleeps_before[static_cast<std::size_t>(r)] = node.policy(r).sleeps();
            Matrix expected = matrix_of(0, 0, call);
            for (int r = 1; r < ranks; ++r) expected = multiply(expected, matrix_of(r, 0, call));
            std::vector<Matrix> results(static_cast<std::size_t>(ranks));
            on_ranks(ranks, [&](int rank) {
              const auto me = static_cast<std::size_t>(rank);
              const int position = static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
              while (turn.load() < position) std::this_thread::yield();
              if (position > 0 && mode == wait::Mode::block) {
                const int before = order[static_cast<std::size_t>(position - 1)];
                while (node.policy(before).sleeps() == sleeps_before[static_cast<std::size_t>(before)])
                  std::this_thread::yield();
              }
              turn.store(position + 1);
              const Matrix mine = matrix_of(rank, 0, call);
              node.rank(rank).run(operands_for(&mine, &results[me], 1, reduction), sites[me]);
            });
            for (const Matrix& result : results) CHECK(result == expected);
            ++call;
          } while (std::next_permutation(order.begin(), order.end()));
        }
}

TEST_CASE("random arrivals, odd rank counts, all sizes, ranks lapping each other", "[protocol]") {
  for (const Descriptor* descriptor : allreduce_algorithms())
    for (const int ranks : {1, 2, 3, 5, 7, 8})
      for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::yield}) {
        Node node(*descriptor, ranks, mode);
        const Reduction reduction = matrix_product(true);
        const auto p = static_cast<std::size_t>(ranks);
        std::vector<std::size_t> counts = {1, p, p + 1, 4, 63, 1021, capacity / sizeof(Matrix)};
        // Several rounds, the last one not full.
        if (descriptor->max_bytes > capacity) counts.push_back(4 * capacity / sizeof(Matrix) + 77);
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank) {
          std::mt19937 random(static_cast<unsigned>(rank) * 977 + static_cast<unsigned>(ranks));
          wait::Site site;
          int call = 0;
          for (int round = 0; round < 6; ++round)
            for (const std::size_t count : counts) {
              std::vector<Matrix> buffer(count);
              for (std::size_t i = 0; i < count; ++i) buffer[i] = matrix_of(rank, i, call);
              if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
              // In place: the result overwrites the operand.
              node.rank(rank).run(operands_for(buffer.data(), buffer.data(), count, reduction), site);
              for (const std::size_t i : {std::size_t{0}, count / 2, count - 1}) {
                Matrix expected = matrix_of(0, i, call);
                for (int r = 1; r < ranks; ++r) expected = multiply(expected, matrix_of(r, i, call));
                if (!(buffer[i] == expected)) ++wrong;
              }
              ++call;
            }
        });
        CHECK(wrong == 0);
      }
}

TEST_CASE("arrival order sums every operand once", "[protocol]") {
  for (const Descriptor* descriptor : allreduce_algorithms(true))
    for (const int ranks : {2, 5, 8}) {
      std::vector<std::int64_t> values = default_values(*descriptor);
      for (std::size_t i = 0; i < values.size(); ++i)
        if (descriptor->parameters[i].name == "self_serve_bytes") values[i] = 0;
      Node node(*descriptor, ranks, wait::Mode::automatic, {.arrival_order = true, .values = values});
      const Reduction reduction = sum_of_doubles();
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        for (int call = 0; call < 200; ++call) {
          // Some that are cut in halves, which are not of one size.
          std::vector<double> buffer(call % 8 == 7 ? 1021 : 20);
          for (std::size_t i = 0; i < buffer.size(); ++i)
            buffer[i] = std::ldexp(1.0, rank) * (call + 1) + static_cast<double>(i);
          node.rank(rank).run(operands_for(buffer.data(), buffer.data(), buffer.size(), reduction), site);
          for (std::size_t i = 0; i < buffer.size(); ++i)
            if (buffer[i] != (std::ldexp(1.0, ranks) - 1) * (call + 1) + ranks * static_cast<double>(i)) ++wrong;
        }
      });
      CHECK(wrong == 0);
    }
}

TEST_CASE("one rank that declines keeps all ranks out, and the next call is as ever", "[protocol]") {
  for (const Descriptor* descriptor : allreduce_algorithms(true))
    for (const bool arrival_order : {false, true})
      for (const bool by_table : {true, false})
        for (const int ranks : {2, 3, 5}) {
          if (!descriptor->serves_declines || (descriptor->needs_arrival_order && !arrival_order)) continue;
          Node node(*descriptor, ranks, wait::Mode::automatic, {.arrival_order = arrival_order});
          Reduction reduction = sum_of_doubles();
          reduction.by_table = by_table;
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            for (int call = 0; call < 60; ++call) {
              // Who declines changes; in every third call nobody does.
              const bool declines = call % 3 != 0 && call % ranks == rank;
              std::vector<double> buffer(30, rank + call);
              Operands operands = operands_for(buffer.data(), buffer.data(), buffer.size(), reduction);
              operands.declines = declines;
              const bool done = node.rank(rank).run(operands, site);
              const double expected = done ? ranks * call + ranks * (ranks - 1) / 2.0 : rank + call;
              if (done != (call % 3 == 0) || buffer.front() != expected || buffer.back() != expected) ++wrong;
            }
          });
          CHECK(wrong == 0);
        }
}

TEST_CASE("a sleeper wakes at the event, and doorbell numbers wrap around", "[protocol]") {
  alignas(64) wait::Doorbell bell{};
  // From the third on events in which nobody slept lie between: the bell stands far behind.
  for (const std::uint32_t start : {0u, 0x3ffffffeu, 0xbffffffeu, 0x7ffffffeu, 0xfffffffeu, 0xf0000000u}) {
    for (std::uint32_t step = 1; step <= 4; ++step) {
      const std::uint32_t event = start + step;
      std::atomic<bool> happened{false};
      wait::Policy sleeper;
      wait::Policy waker;
      sleeper.configure(wait::Mode::block, {.cores = 1, .ranks = 2}, nullptr);
      waker.configure(wait::Mode::block, {.cores = 1, .ranks = 2}, nullptr);
      std::thread thread([&] {
        wait::Site site;
        sleeper.until(
            site, bell, event, [&] { return happened.load(std::memory_order_acquire); }, [] { return false; }, nullptr);
      });
      while (sleeper.sleeps() == 0) std::this_thread::yield();
      happened.store(true, std::memory_order_release);
      waker.ring(bell, event);
      thread.join();
      CHECK(bell.sleepers.load() == 0);
    }
  }
}

TEST_CASE("a rank that waits knows who is missing", "[protocol]") {
  for (int turn = 0; turn < 5; ++turn)  // of some_nodes()
    for (const Descriptor* descriptor : allreduce_algorithms()) {
      INFO(descriptor->name << ", turn " << turn);
      static std::atomic<unsigned> reporters;  // a bit for each rank
      static std::atomic<bool> right;
      static thread_local int own_rank;
      reporters = 0;
      right = false;
      Node node(*descriptor, 3, wait::Mode::block);
      const Reduction reduction = sum_of_doubles();
      for (int rank = 0; rank < 3; ++rank)
        node.policy(rank).set_stall(0.02, [](void* prepared, double seconds) {
          const auto* waiting = static_cast<const Prepared*>(prepared);
          if (waiting->phase_of != nullptr) waiting = waiting->phase_of;
          if (seconds >= 0.02) reporters |= 1U << own_rank;
          // Who waits for another that waits for rank 1 names that one, or is asked again; so is a rank while the
          // system holds up rank 0 or 2.
          if (waiting->is_missing(0) || !waiting->is_missing(1) || waiting->is_missing(2)) return false;
          right = true;
          return true;
        });
      constexpr unsigned both = 1U << 0 | 1U << 2;
      std::atomic<int> wrong{0};
      on_ranks(3, [&](int rank) {
        own_rank = rank;
        double value = rank;
        wait::Site site;
        if (rank == 1)  // comes when both have reported, and one of them that rank 1 alone is missing
          while (reporters.load() != both || !right.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        node.rank(rank).run(operands_for(&value, &value, 1, reduction), site);
        if (value != 3.0) ++wrong;
      });
      CHECK(wrong == 0);
    }
}

}  // namespace papaya
