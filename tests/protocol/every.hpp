// Bodies of tests that go over the algorithms of the registry and over the orders in which ranks arrive.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

constexpr Collective collectives_but_allreduce[] = {Collective::barrier,        Collective::bcast,
                                                    Collective::allgather,      Collective::allgatherv,
                                                    Collective::alltoall,       Collective::reduce,
                                                    Collective::gather,         Collective::scatter,
                                                    Collective::reduce_scatter, Collective::reduce_scatter_block};

constexpr bool reduces(Collective collective) {
  return collective == Collective::reduce || collective == Collective::allreduce || scatters_result(collective);
}

// body(collective, descriptor, arrival_order)
template <class Body>
void for_each_algorithm(std::span<const Collective> chosen, Body body) {
  for (const Collective collective : chosen)
    for (const bool arrival_order : {false, true})
      for (const Descriptor* descriptor : algorithms_for(collective, arrival_order)) {
        // Nothing to reorder.
        if (arrival_order && !reduces(collective)) continue;
        INFO(name_of(collective) << " " << descriptor->name << " order " << arrival_order);
        body(collective, *descriptor, arrival_order);
      }
}

// For every order of arrival `calls` calls: body(rank, number, enter) makes one, and enters it once enter() returns.
template <class Body>
void in_every_order(Node& node, int calls, wait::Mode mode, Body body) {
  const int ranks = node.size();
  // Of all calls together: how often ranks have entered, and have left.
  std::atomic<int> entered{0};
  std::atomic<int> ended{0};
  std::vector<std::atomic<int>> left(static_cast<std::size_t>(ranks));              // calls of each rank
  std::vector<std::atomic<std::uint64_t>> sleeps(static_cast<std::size_t>(ranks));  // before its latest call
  // The same threads make all calls: under a sanitizer a new one takes longer than a call.
  on_ranks(ranks, [&](int rank) {
    const auto me = static_cast<std::size_t>(rank);
    std::vector<int> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    int number = 0;
    do {
      const int position = static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
      for (int call = 0; call < calls; ++call, ++number) {
        while (ended.load() < number * ranks) std::this_thread::yield();
        body(rank, number, [&] {
          // Forced: a rank enters once the one before it in the order has left, gone to sleep or waited a while.
          while (entered.load() < number * ranks + position) std::this_thread::yield();
          if (position > 0 && mode == wait::Mode::block) {
            const int before = order[static_cast<std::size_t>(position - 1)];
            const auto at = static_cast<std::size_t>(before);
            while (left[at].load() <= number && node.policy(before).sleeps() == sleeps[at].load())
              std::this_thread::yield();
          }
          sleeps[me].store(node.policy(rank).sleeps());
          entered.fetch_add(1);
        });
        left[me].store(number + 1);
        ended.fetch_add(1);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  });
}

// One call for every order of arrival and every root. Returns how many results were wrong.
inline int every_order(Node& node, Collective collective, const Reduction& reduction, wait::Mode mode) {
  const int ranks = node.size();
  std::vector<wait::Site> sites(static_cast<std::size_t>(ranks));
  std::atomic<int> wrong{0};
  in_every_order(node, ranks, mode, [&](int rank, int number, auto enter) {
    Call call(collective, reduction, rank, ranks, number, 3, number % 2 == 1);
    enter();
    node.rank(rank).run(call.operands(), sites[static_cast<std::size_t>(rank)]);
    if (!call.is_right()) ++wrong;
  });
  return wrong;
}

}  // namespace papaya
