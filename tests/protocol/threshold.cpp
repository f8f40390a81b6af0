// Threshold broadcast and reduce, with threads as ranks.
#include "algorithms/patterns/threshold.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/node.hpp"
#include "tests/protocol/weak_ranks.hpp"

namespace papaya {
namespace {

// Matrices of integers: their product is associative, and not commutative.
struct Matrix {
  std::array<std::uint32_t, 4> at;
  bool operator==(const Matrix&) const = default;

  static Matrix of(int rank, std::uint64_t call, std::size_t element) {
    const auto seed = static_cast<std::uint32_t>(rank * 7919 + static_cast<int>(call) * 104729) +
                      static_cast<std::uint32_t>(element) * 31;
    return {{seed | 1, seed * 3 + 1, seed * 5 + 2, seed * 7 + 3}};
  }
  static Matrix times(const Matrix& a, const Matrix& b) {
    return {{a.at[0] * b.at[0] + a.at[1] * b.at[2], a.at[0] * b.at[1] + a.at[1] * b.at[3],
             a.at[2] * b.at[0] + a.at[3] * b.at[2], a.at[2] * b.at[1] + a.at[3] * b.at[3]}};
  }
  static Matrix plus(const Matrix& a, const Matrix& b) {
    Matrix sum{};
    for (std::size_t i = 0; i < 4; ++i) sum.at[i] = a.at[i] + b.at[i];
    return sum;
  }
};

template <class Element, Element combine(const Element&, const Element&)>
Reduction reduction_by(bool commutative) {
  Reduction reduction;
  reduction.element_bytes = sizeof(Element);
  reduction.commutative = commutative;
  reduction.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<Element*>(out)[i] =
          combine(static_cast<const Element*>(left)[i], static_cast<const Element*>(right)[i]);
  };
  return reduction;
}

// of_ranks, route, chunk, slots
using Values = std::array<std::int64_t, 4>;

struct Job {
  int ranks;
  int root;
  std::size_t count;
  double share;
  Values values;

  WeakRequest request(const Reduction* reduction) const {
    return {.ranks = ranks,
            .count = count,
            .element_bytes = sizeof(Matrix),
            .root = root,
            .reduction = reduction,
            .share = share,
            .values = values};
  }
  bool is_of_ranks() const { return values[0] != 0; }
  std::size_t elements() const { return is_of_ranks() ? count : patterns::share_of(share, count); }
  std::vector<bool> takes_part() const {
    const std::size_t ranks_of = static_cast<std::size_t>(ranks);
    return patterns::taking_part(ranks, root,
                                 is_of_ranks() ? static_cast<int>(patterns::share_of(share, ranks_of)) : ranks);
  }
};

// Every number of ranks, root, count and share; the ways, chunks, slots and modes of waiting in turn.
template <class Body>
void for_each_job(Body body) {
  int turn = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
    for (int root = 0; root < ranks; ++root) {
      const auto few = static_cast<std::size_t>(ranks);
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, few - 1, few, few + 1, std::size_t{300}})
        for (const double share : {0.01, 0.25, 0.5, 0.75, 1.0}) {
          const Values values{turn % 2, turn / 2 % 3, std::array{64, 512, 8192, 0}[turn % 7 % 4],
                              std::array{2, 3, 8}[turn / 5 % 3]};
          body(Job{ranks, root, count, share, values}, all_modes[turn / 3 % 3], turn);
          ++turn;
        }
    }
}
int calls_of(const Job& job) {
  return (job.count > 100 ? 6 : 3) * (job.root % 3 == 0 ? thorough : 1);
}

bool has_status(const WeakStatus& status, std::uint64_t call, std::uint64_t oldest, std::uint64_t own, int ranks,
                std::size_t bytes) {
  return status.clock == call && status.oldest == oldest && status.own == own && status.ranks == ranks &&
         status.bytes == bytes && (status.has_waited || status.waited_ticks == 0);
}

TEST_CASE("threshold bcast: what is sent is right, the rest is untouched", "[protocol]") {
  std::atomic<const char*> fault{nullptr};
  for_each_job([&](const Job& job, wait::Mode mode, int turn) {
    const std::vector<bool> takes_part = job.takes_part();
    const auto taking_part = static_cast<int>(std::count(takes_part.begin(), takes_part.end(), true));
    WeakRanks all("threshold_bcast", job.request(nullptr), mode, turn % 5 == 0 ? (std::uint64_t{1} << 32) - 3 : 1);
    const std::uint64_t before = turn % 5 == 0 ? (std::uint64_t{1} << 32) - 4 : 0;
    on_ranks(job.ranks, [&](int rank) {
      std::minstd_rand random(static_cast<unsigned>(turn * 10 + rank));
      wait::Site site;
      std::vector<Matrix> message(job.count);
      const bool is_root = rank == job.root;
      const bool is_in = takes_part[static_cast<std::size_t>(rank)];
      const Matrix untouched{{9, 9, 9, 9}};
      for (int call = 1; call <= calls_of(job); ++call) {
        const std::uint64_t clock = before + static_cast<std::uint64_t>(call);
        for (std::size_t i = 0; i < job.count; ++i) message[i] = is_root ? Matrix::of(0, clock, i) : untouched;
        stop_at_random(random);
        all[rank].run({.send = is_root ? message.data() : nullptr,
                       .receive = is_root ? nullptr : message.data(),
                       .count = 0,
                       .bytes = job.count * sizeof(Matrix),
                       .root = job.root,
                       .reduction = nullptr},
                      site);
        for (std::size_t i = 0; i < job.count; ++i) {
          const bool is_sent = is_in && i < job.elements();
          if (message[i] != (is_root || is_sent ? Matrix::of(0, clock, i) : untouched))
            fault = is_sent ? "wrong data" : "data where none belongs";
        }
        if (!has_status(all[rank].status(), clock, is_in ? clock : 0, is_root ? clock : 0, taking_part,
                        is_in ? job.elements() * sizeof(Matrix) : 0))
          fault = "wrong status";
      }
      all.end(rank);
    });
    CAPTURE(job.ranks, job.root, job.count, job.share, job.values);
    const char* const found = fault.load();
    if (found != nullptr) REQUIRE(std::string(found).empty());
  });
}

TEST_CASE("threshold reduce: what is reduced is right, in rank order, the rest is untouched", "[protocol]") {
  std::atomic<const char*> fault{nullptr};
  const Reduction product = reduction_by<Matrix, Matrix::times>(false);
  const Reduction sum = reduction_by<Matrix, Matrix::plus>(true);
  for_each_job([&](const Job& job, wait::Mode mode, int turn) {
    const bool commutes = turn / 6 % 2 == 0;
    const std::vector<bool> takes_part = job.takes_part();
    const auto taking_part = static_cast<int>(std::count(takes_part.begin(), takes_part.end(), true));
    WeakRanks all("threshold_reduce", job.request(commutes ? &sum : &product), mode,
                  turn % 5 == 0 ? (std::uint64_t{1} << 32) - 3 : 1);
    const std::uint64_t before = turn % 5 == 0 ? (std::uint64_t{1} << 32) - 4 : 0;
    on_ranks(job.ranks, [&](int rank) {
      std::minstd_rand random(static_cast<unsigned>(turn * 10 + rank));
      wait::Site site;
      const Matrix untouched{{9, 9, 9, 9}};
      const bool is_root = rank == job.root;
      std::vector<Matrix> contribution(job.count);
      std::vector<Matrix> result(is_root ? job.count : 0);
      for (int call = 1; call <= calls_of(job); ++call) {
        const std::uint64_t clock = before + static_cast<std::uint64_t>(call);
        for (std::size_t i = 0; i < job.count; ++i) contribution[i] = Matrix::of(rank, clock, i);
        std::fill(result.begin(), result.end(), untouched);
        const bool in_place = is_root && call % 2 == 0;
        std::vector<Matrix>& receive = in_place ? contribution : result;
        stop_at_random(random);
        all[rank].run({.send = contribution.data(),
                       .receive = is_root ? receive.data() : nullptr,
                       .count = job.count,
                       .bytes = job.count * sizeof(Matrix),
                       .root = job.root,
                       .reduction = commutes ? &sum : &product},
                      site);
        for (std::size_t i = 0; i < job.count; ++i) {
          const Matrix own = Matrix::of(rank, clock, i);
          if (!is_root && contribution[i] != own) fault = "a contribution was changed";
          if (!is_root) continue;
          Matrix expected = in_place ? own : untouched;
          if (i < job.elements()) {
            bool is_first = true;
            for (int from = 0; from < job.ranks; ++from) {
              if (!takes_part[static_cast<std::size_t>(from)]) continue;
              const Matrix theirs = Matrix::of(from, clock, i);
              expected = is_first   ? theirs
                         : commutes ? Matrix::plus(expected, theirs)
                                    : Matrix::times(expected, theirs);
              is_first = false;
            }
          }
          if (receive[i] != expected) fault = i < job.elements() ? "a wrong result" : "a result where none belongs";
        }
        if (!has_status(all[rank].status(), clock, is_root ? clock : 0,
                        takes_part[static_cast<std::size_t>(rank)] ? clock : 0, taking_part,
                        is_root ? job.elements() * sizeof(Matrix) : 0))
          fault = "wrong status";
        // The program may change them once it is out of the call.
        std::fill(contribution.begin(), contribution.end(), Matrix{});
      }
      all.end(rank);
    });
    CAPTURE(job.ranks, job.root, job.count, job.share, job.values, commutes);
    const char* const found = fault.load();
    if (found != nullptr) REQUIRE(std::string(found).empty());
  });
}

double add(const double& a, const double& b) {
  return a + b;
}

TEST_CASE("threshold reduce: the same bits in every run, on the tree for every root", "[protocol]") {
  const Reduction sum = reduction_by<double, add>(true);
  constexpr std::size_t count = 50;
  for (const int ranks : {3, 5, 8})
    for (const std::int64_t route : {1, 2}) {
      std::vector<double> first(count);
      for (int root = 0; root < ranks; ++root) {
        const Values values{0, route, 128, 4};
        WeakRanks all("threshold_reduce",
                      {.ranks = ranks,
                       .count = count,
                       .element_bytes = sizeof(double),
                       .root = root,
                       .reduction = &sum,
                       .values = values},
                      wait::Mode::automatic);
        std::vector<double> result(count);
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank) {
          std::minstd_rand random(static_cast<unsigned>(rank + 1));
          wait::Site site;
          std::vector<double> contribution(count);
          for (std::size_t i = 0; i < count; ++i)
            contribution[i] = 1.0 / static_cast<double>(static_cast<std::size_t>(rank * 7) + i + 3);
          for (int call = 0; call < 10; ++call) {
            stop_at_random(random);
            all[rank].run({.send = contribution.data(),
                           .receive = rank == root ? result.data() : nullptr,
                           .count = count,
                           .bytes = count * sizeof(double),
                           .root = root,
                           .reduction = &sum},
                          site);
            if (rank != root) continue;
            if (call == 0 && (root == 0 || route == 2)) first = result;
            if (std::memcmp(first.data(), result.data(), count * sizeof(double)) != 0) ++wrong;
          }
          all.end(rank);
        });
        CAPTURE(ranks, route, root);
        CHECK(wrong == 0);
      }
    }
}

// One thread makes the calls of one rank, a part at a time, while another has not come.
TEST_CASE("threshold: who may leave early does, and waits for its neighbour alone", "[protocol]") {
  const Reduction sum = reduction_by<Matrix, Matrix::plus>(true);
  for (const char* const name : {"threshold_bcast", "threshold_reduce"})
    for (const std::int64_t slots : {2, 3, 8})
      for (const std::int64_t of_ranks : {0, 1}) {
        CAPTURE(name, slots, of_ranks);
        const bool is_bcast = name == std::string("threshold_bcast");
        const Values values{of_ranks, 1, 65536, slots};
        // Of three quarters of four ranks rank 3 is left out.
        const Job job{4, 0, 4, 0.75, values};
        WeakRanks all(name, job.request(&sum), wait::Mode::yield);
        std::vector<std::vector<Matrix>> data(4, std::vector<Matrix>(4));
        const auto start = [&](int rank) {
          std::vector<Matrix>& mine = data[static_cast<std::size_t>(rank)];
          all[rank].start({.send = mine.data(),
                           .receive = mine.data(),
                           .count = 4,
                           .bytes = 4 * sizeof(Matrix),
                           .root = 0,
                           .reduction = &sum});
          return all[rank].progress();
        };
        const int early = is_bcast ? 0 : 1;
        const int late = is_bcast ? 2 : 0;  // the first of the root's children, or the parent
        const int calls = static_cast<int>(slots);
        for (int call = 1; call <= calls; ++call) REQUIRE(start(early));
        CHECK_FALSE(all[early].status().has_waited);
        CHECK_FALSE(start(early));
        wait::Site site;
        CHECK_FALSE(all[early].finish(clock::ticks(), site));
        for (int rank = 0; rank < 4; ++rank) {
          // A bcast's root names one child of two.
          const bool may_be = rank == late || (is_bcast && rank == 1);
          if (!may_be) CHECK_FALSE(all[early].is_missing(rank));
        }
        CHECK((all[early].is_missing(late) || (is_bcast && all[early].is_missing(1))));
        CHECK_FALSE(all[early].may_end());
        // Who is left out is done at once.
        if (of_ranks == 1) {
          for (int call = 0; call <= calls; ++call) CHECK(start(3));
          CHECK(all[3].may_end());
        }

        const auto others = [&](int rank) { return rank != early && (of_ranks == 0 || rank != 3); };
        for (int call = 1; call <= calls + 1; ++call) {
          for (int rank = 0; rank < 4; ++rank)
            if (others(rank)) start(rank);
          bool are_done = false;
          for (int turn = 0; turn < 20 && !are_done; ++turn) {
            are_done = true;
            for (int rank = 0; rank < 4; ++rank)
              if (others(rank) && !all[rank].progress()) are_done = false;
            all[early].progress();
          }
          REQUIRE(are_done);
        }
        CHECK(all[early].progress());
        CHECK(all[early].status().has_waited);
        CHECK_FALSE(all[early].is_missing(late));
        for (int rank = 0; rank < 4; ++rank) CHECK(all[rank].may_end());
        // Credit comes for half of the slots at a time: so many calls ahead again, at least.
        for (int call = 1; call <= calls / 2 + 1; ++call) CHECK(start(early));
        for (int call = 1; call <= calls / 2 + 1; ++call)
          for (int turn = 0; turn < 20; ++turn)
            for (int rank = 0; rank < 4; ++rank)
              if (others(rank) && all[rank].progress() &&
                  all[rank].status().clock < static_cast<std::uint64_t>(calls + 1 + call))
                start(rank);
        for (int rank = 0; rank < 4; ++rank) CHECK(all[rank].progress());
      }
}

}  // namespace
}  // namespace papaya
