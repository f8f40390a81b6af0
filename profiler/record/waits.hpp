// For whom a rank waits in a collective: one place that says so, for the figures of a run and for those made while it
// runs.
#pragma once

#include <cstddef>
#include <vector>

#include "base/collective.hpp"

namespace papaya::report {

// Two arrivals on one node closer than this are a tie: a clock read and a cache miss or two.
inline constexpr double tie_ns = 300;

// Whose data a rank needs before it may leave: all ranks', the root's (who needs none), as root all ranks' (the others
// none), those of the ranks below it.
enum class Need { all, root, root_needs_all, lower_ranks };

constexpr Need need_of(Collective collective) {
  switch (collective) {
    case Collective::bcast:
    case Collective::scatter:
    case Collective::scatterv:
      return Need::root;
    case Collective::reduce:
    case Collective::gather:
    case Collective::gatherv:
      return Need::root_needs_all;
    case Collective::scan:
    case Collective::exscan:
      return Need::lower_ranks;
    default:
      return Need::all;
  }
}

// What may be compared of a call's times: who takes part, in which role.
struct Roles {
  Collective collective{};
  std::size_t root = 0;  // index among the call's ranks; their number if it is not there, or there is none
  std::vector<std::size_t>
      by_rank{};  // indices by rank in the communicator, where those below matter; empty: they are in that order
};

// Calls `wait(i, j)` for each of `size` ranks: the i-th may leave once the j-th has arrived, which may be itself.
// `arrival(i)` is when the i-th arrived; the j-th never arrived before the i-th.
template <class Arrival, class Wait>
void for_each_wait(const Roles& roles, std::size_t size, Arrival&& arrival, Wait&& wait) {
  const auto later = [&](std::size_t i, std::size_t j) { return arrival(j) > arrival(i) ? j : i; };
  const auto last = [&] {
    std::size_t found = 0;
    for (std::size_t i = 1; i < size; ++i) found = later(found, i);
    return found;
  };
  switch (need_of(roles.collective)) {
    case Need::all: {
      const std::size_t all = size == 0 ? 0 : last();
      for (std::size_t i = 0; i < size; ++i) wait(i, later(i, all));
      break;
    }
    case Need::root:
      for (std::size_t i = 0; i < size; ++i) wait(i, roles.root < size ? later(i, roles.root) : i);
      break;
    case Need::root_needs_all:
      for (std::size_t i = 0; i < size; ++i) wait(i, i == roles.root ? later(i, last()) : i);
      break;
    case Need::lower_ranks: {
      const auto index = [&](std::size_t k) { return roles.by_rank.empty() ? k : roles.by_rank[k]; };
      for (std::size_t k = 0, found = size == 0 ? 0 : index(0); k < size; ++k) {
        found = later(index(k), found);
        wait(index(k), found);
      }
      break;
    }
  }
}

}  // namespace papaya::report
