// The top-k compressed allreduce, with threads as ranks.
#include "algorithms/weak/top_k.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/node.hpp"
#include "tests/protocol/weak_ranks.hpp"

namespace papaya {
namespace {

template <class Element>
Reduction the_sum() {
  Reduction reduction;
  reduction.element_bytes = sizeof(Element);
  reduction.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<Element*>(out)[i] = static_cast<const Element*>(left)[i] + static_cast<const Element*>(right)[i];
  };
  return reduction;
}

template <class Element>
WeakRequest request(int ranks, std::size_t count, const Reduction& reduction, std::span<const std::int64_t> values) {
  return {.ranks = ranks,
          .count = count,
          .element_bytes = sizeof(Element),
          .reduction = &reduction,
          .type = sizeof(Element) == 4 ? kernels::ElementType::f32 : kernels::ElementType::f64,
          .operation = kernels::Operation::sum,
          .values = values};
}

// Few different whole numbers, of which many are equal in magnitude: sums of them are exact.
template <class Element>
Element contribution_of(int rank, std::uint64_t call, std::size_t element) {
  const auto mixed =
      (static_cast<std::uint64_t>(rank) * 7919 + call * 104729 + element * 31 + 17) * 0x9e3779b97f4a7c15u;
  return static_cast<Element>(static_cast<int>(mixed >> 60) - 8);
}

// The same done plainly: a rank's largest elements, by a stable order, taken out of its residual.
template <class Element>
std::vector<Element> taken(std::vector<Element>& residual, std::size_t k) {
  std::vector<std::size_t> order(residual.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(residual[a]) > std::abs(residual[b]); });
  std::vector<Element> sent(residual.size());
  for (std::size_t i = 0; i < k; ++i) std::swap(sent[order[i]], residual[order[i]]);
  return sent;
}

template <class Element>
std::vector<Element> of_bytes(std::span<const std::byte> bytes) {
  std::vector<Element> elements(bytes.size() / sizeof(Element));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

template <class Element>
void check_against_reference() {
  const Reduction sum = the_sum<Element>();
  std::atomic<const char*> fault{nullptr};
  int turn = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) {
    const auto few = static_cast<std::size_t>(ranks);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, few - 1, few, few + 1, std::size_t{1000}})
      for (const std::int64_t per_million : {1, 10000, 250000, 1000000}) {
        ++turn;
        const std::array values{per_million};
        const std::uint64_t before = turn % 5 == 0 ? (std::uint64_t{1} << 32) - 4 : 0;
        WeakRanks all("top_k", request<Element>(ranks, count, sum, values), all_modes[turn % 3], before + 1);
        const auto nearest =
            static_cast<std::size_t>(std::llround(static_cast<double>(count) * static_cast<double>(per_million) / 1e6));
        const std::size_t k = std::max(nearest, std::min<std::size_t>(count, 1));
        const std::uint64_t calls = 8;
        const auto flushes = [&](std::uint64_t call) { return call == 4 || call == calls; };

        // What each call returns, and what is left of each rank's after it.
        std::vector<std::vector<Element>> expected(calls + 1, std::vector<Element>(count));
        std::vector<std::vector<std::vector<Element>>> left(calls + 1, {few, std::vector<Element>(count)});
        for (std::uint64_t call = 1; call <= calls; ++call)
          for (int rank = 0; rank < ranks; ++rank) {
            std::vector<Element>& residual = left[call][static_cast<std::size_t>(rank)];
            residual = left[call - 1][static_cast<std::size_t>(rank)];
            for (std::size_t i = 0; i < count; ++i) residual[i] += contribution_of<Element>(rank, call, i);
            const std::vector<Element> sent = taken(residual, flushes(call) ? count : k);
            for (std::size_t i = 0; i < count; ++i) expected[call][i] += sent[i];
          }

        on_ranks(ranks, [&](int rank) {
          std::minstd_rand random(static_cast<unsigned>(turn * 10 + rank));
          wait::Site site;
          std::vector<Element> contribution(count);
          std::vector<Element> result(count);
          for (std::uint64_t call = 1; call <= calls; ++call) {
            for (std::size_t i = 0; i < count; ++i) contribution[i] = contribution_of<Element>(rank, call, i);
            std::vector<Element>& receive = call % 3 == 0 ? contribution : result;
            stop_at_random(random);
            if (flushes(call)) all[rank].flush();
            all[rank].run({.send = contribution.data(),
                           .receive = receive.data(),
                           .count = count,
                           .bytes = count * sizeof(Element),
                           .root = -1,
                           .reduction = &sum},
                          site);
            if (receive != expected[call]) fault = "a wrong result";
            if (of_bytes<Element>(all[rank].residual()) != left[call][static_cast<std::size_t>(rank)])
              fault = "a wrong residual";
            const WeakStatus& status = all[rank].status();
            const bool is_all = flushes(call) || k == count;
            if (status.clock != before + call || status.ranks != ranks || status.bytes != count * sizeof(Element) ||
                status.share != (is_all ? 1 : static_cast<double>(k) / static_cast<double>(count)))
              fault = "a wrong status";
            if (is_all && status.residual != 0) fault = "a residual where all was sent";
          }
          all.end(rank);
        });
        CAPTURE(ranks, count, per_million);
        const char* const found = fault.load();
        if (found != nullptr) REQUIRE(std::string(found).empty());

        // Nothing is lost: after the last flush the results add up to the contributions.
        std::vector<Element> of_results(count);
        std::vector<Element> of_contributions(count);
        for (std::uint64_t call = 1; call <= calls; ++call)
          for (std::size_t i = 0; i < count; ++i) {
            of_results[i] += expected[call][i];
            for (int rank = 0; rank < ranks; ++rank) of_contributions[i] += contribution_of<Element>(rank, call, i);
          }
        REQUIRE(of_results == of_contributions);
      }
  }
}

TEST_CASE("top k: results and residuals are those of a plain reference, and nothing is lost", "[protocol]") {
  check_against_reference<float>();
  check_against_reference<double>();
}

TEST_CASE("top k: the same bits on all ranks, added in rank order", "[protocol]") {
  constexpr std::size_t count = 200;
  constexpr int ranks = 5;
  const Reduction sum = the_sum<double>();
  const std::array<std::int64_t, 1> values{1000000};
  WeakRanks all("top_k", request<double>(ranks, count, sum, values), wait::Mode::automatic);
  std::atomic<int> wrong{0};
  on_ranks(ranks, [&](int rank) {
    std::minstd_rand random(static_cast<unsigned>(rank + 1));
    wait::Site site;
    std::vector<double> contribution(count);
    std::vector<double> result(count);
    const auto of = [](int r, std::size_t i) { return 1.0 / (3.0 + 7.0 * r + static_cast<double>(i)); };
    for (int call = 0; call < 20 * thorough; ++call) {
      for (std::size_t i = 0; i < count; ++i) contribution[i] = of(rank, i);
      stop_at_random(random);
      all[rank].run({.send = contribution.data(),
                     .receive = result.data(),
                     .count = count,
                     .bytes = count * sizeof(double),
                     .root = -1,
                     .reduction = &sum},
                    site);
      for (std::size_t i = 0; i < count; ++i) {
        double expected = 0;
        for (int r = 0; r < ranks; ++r) expected += of(r, i);
        if (std::memcmp(&expected, &result[i], sizeof expected) != 0) ++wrong;
      }
    }
    all.end(rank);
  });
  CHECK(wrong == 0);
}

// One thread makes the calls of two ranks, a part at a time.
TEST_CASE("top k: a rank waits for the other's message of the same call", "[protocol]") {
  const Reduction sum = the_sum<double>();
  const std::array<std::int64_t, 1> values{500000};
  WeakRanks all("top_k", request<double>(2, 4, sum, values), wait::Mode::yield);
  std::vector<std::vector<double>> data{{1, 2, 3, 4}, {4, 3, 2, 1}};
  const auto start = [&](int rank) {
    double* const mine = data[static_cast<std::size_t>(rank)].data();
    all[rank].start({.send = mine, .receive = mine, .count = 4, .bytes = 32, .root = -1, .reduction = &sum});
    return all[rank].progress();
  };
  CHECK_FALSE(start(0));
  wait::Site site;
  CHECK_FALSE(all[0].finish(clock::ticks(), site));
  CHECK(all[0].is_missing(1));
  CHECK_FALSE(all[0].is_missing(0));
  CHECK(start(1));
  CHECK_FALSE(all[1].status().has_waited);
  CHECK(all[0].progress());
  CHECK(all[0].status().has_waited);
  CHECK(data[0] == std::vector<double>{4, 3, 3, 4});
  CHECK(data[1] == data[0]);
  // 1 and 2 of 1, 2, 3, 4 are left.
  CHECK(all[0].status().residual == Approx(std::sqrt(5.0 / 30)));
  CHECK(all[0].status().share == 0.5);
  CHECK(all[0].may_end());
}

template <class Element>
void check_extremes() {
  constexpr Element infinity = std::numeric_limits<Element>::infinity();
  constexpr Element nan = std::numeric_limits<Element>::quiet_NaN();
  constexpr Element tiny = std::numeric_limits<Element>::denorm_min();
  LargestElements<Element> largest(8);
  std::vector<Element> values(8);
  std::vector<std::uint32_t> indices(8);
  const std::vector<Element> contribution{1, -infinity, tiny, nan, std::numeric_limits<Element>::max(), -0.0, -2, 2};
  largest.add(contribution.data());
  largest.take(3, values.data(), indices.data());
  CHECK(std::vector<std::uint32_t>(indices.begin(), indices.begin() + 3) == std::vector<std::uint32_t>{1, 3, 4});
  CHECK(values[0] == -infinity);
  CHECK(std::isnan(values[1]));
  // They are gone: the next ones are the numbers that were left, of equal ones the first.
  const std::vector<Element> none(8);
  largest.add(none.data());
  largest.take(1, values.data(), indices.data());
  CHECK(indices[0] == 6);
  largest.add(none.data());
  largest.take(3, values.data(), indices.data());
  CHECK(std::vector<std::uint32_t>(indices.begin(), indices.begin() + 3) == std::vector<std::uint32_t>{0, 2, 7});
  CHECK(values[1] == tiny);
  for (const Element left : largest.residual()) CHECK(left == 0);
}

TEST_CASE("top k: what is not a number goes first, and is not kept", "[protocol]") {
  check_extremes<float>();
  check_extremes<double>();
}

TEST_CASE("top k: refuses what it cannot serve", "[protocol]") {
  const Reduction sum = the_sum<double>();
  const std::array<std::int64_t, 1> values{10000};
  const WeakDescriptor& top_k = *find_weak("top_k");
  WeakRequest good = request<double>(2, 10, sum, values);
  CHECK(top_k.refusal(good) == nullptr);
  good.type = kernels::ElementType::f32;
  CHECK(top_k.refusal(good) == nullptr);
  WeakRequest bad = good;
  bad.type = kernels::ElementType::i32;
  CHECK(std::string(top_k.refusal(bad)).find("float or double") != std::string::npos);
  bad.type = std::nullopt;
  CHECK(top_k.refusal(bad) != nullptr);
  bad = good;
  bad.operation = kernels::Operation::max;
  CHECK(std::string(top_k.refusal(bad)).find("sum") != std::string::npos);
  bad = good;
  bad.count = std::size_t{1} << 32;
  CHECK(top_k.refusal(bad) != nullptr);
}

}  // namespace
}  // namespace papaya
