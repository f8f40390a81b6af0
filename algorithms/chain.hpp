// The chain of arrivals: Mohammadalizadehbakhtevari 2021, Algorithm 5.1. Ranks are links in the order in which they
// arrive; each adds its operand to the partial result and passes it on, chunk by chunk, so that a rank that comes while
// its predecessor is still at it follows one chunk behind. The result depends on the order of arrival: only for
// commutative operations under PAPAYA_ORDER=arrival.
//
// The partial result lies in one shared slot. A link's position is the number of links before it; a chunk's count says
// how many links it has seen. Nobody waits for who has not come. Cost for a link: a pass of S bytes, at most one chunk
// later than its predecessor's; after the last arrival one pass, and a copy for who wants the result.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"

namespace papaya {

class Chain : public Prepared {
 public:
  static constexpr std::size_t max_element_bytes = 4096;  // the smallest slot

  static Rounds::Shape shape_for(int ranks, std::size_t capacity);
  Chain(const Team& team, std::size_t capacity) : rounds_(team, shape_for(team.size, capacity)) {}

  // Ranks whose operands have a `receive` wait for the result.
  bool run(const Operands& operands, wait::Site& site) final;
  bool is_missing(int rank) const final { return !rounds_.has_entered(rank); }

 private:
  int join(std::uint64_t round) noexcept;
  template <class WaitFor, class IsWhole, class Add>
  void add_messages(std::uint64_t round, std::size_t bytes, const WaitFor& wait_for, const IsWhole& is_whole,
                    const Add& add);

  Rounds rounds_;
  std::uint64_t next_ = rounds_.team().first_round;
};

}  // namespace papaya
