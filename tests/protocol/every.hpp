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

constexpr Collective collectives_but_allreduce[] = {Collective::barrier, Collective::bcast, Collective::allgather,
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
inline int every_order(Node& node, const Descriptor& descriptor, const Reduction& reduction, wait::Mode mode) {
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
        const int position = static_cast<int>(std::find(order.begin(), order.end(), rank) - order.begin());
        Call call(descriptor.collective, reduction, rank, ranks, number, 3, number % 2 == 1);
        while (turn.load() < position) std::this_thread::yield();
        if (position > 0) {
          const auto before = static_cast<std::size_t>(order[static_cast<std::size_t>(position - 1)]);
          if (mode == wait::Mode::block)
            while (!left[before].load() && node.policy(static_cast<int>(before)).sleeps() == sleeps[before])
              std::this_thread::yield();
        }
        turn.store(position + 1);
        node.rank(rank).run(call.operands(), sites[me]);
        left[me].store(true);
        if (!call.is_right()) ++wrong;
      });
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return wrong;
}

}  // namespace papaya
