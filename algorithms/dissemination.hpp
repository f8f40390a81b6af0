// N-way dissemination (End et al. 2015) among parties that write to each other over the wire: ceil(log_{n+1}
// p) rounds, in each of which every party writes to n others and is written to by n. The parties are the
// ranks of a team or a rank of each node. Peers and rounds are in patterns/dissemination.hpp.
//
// Allreduce in two ways, of which every party takes the same:
//
// Partial results, as in the paper, for operations whose bits do not depend on the order (integers): a
// message is one partial result. The last round is cut by Theorem 1 so that nobody's data counts twice; for
// numbers of parties that no cut fits, and for all other operations:
//
// Nodes of the fixed tree in the parties' order. The data that a party has are those of a range of parties
// that ends at itself, and differ from party to party, so partial results of them would give each other bits.
// Hence what is known of a range is kept and sent as the fewest nodes of the tree that cover it, at most 2
// log2 of its length; two halves of a node become the node as soon as a party has both. Every value is a
// node's, whoever computes it, and what is known twice is known once: the same bits everywhere, by any n, and
// operations need not commute.
//
// Call c has bank c mod 2 of everybody's segment. Who ends call c has heard, directly or not, from all that
// they have entered it, so none of them reads the bank of call c-1 any more.
//
// Cost: ceil(log_{n+1} p) latencies, n messages each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/steps.hpp"
#include "algorithms/ways.hpp"

namespace papaya {

class DisseminatedReduction {
 public:
  static constexpr std::size_t largest_message = 65536;

  static SegmentShape segment(int parties, std::size_t capacity, int ways);

  // `peers`: the rank in the team of each party; `me`: this one's number; `ways` as Ways has them.
  DisseminatedReduction(Notified& wire, std::vector<int> peers, int me, std::size_t capacity, int ways,
                        std::uint64_t calls_before);
  ~DisseminatedReduction();

  // A call by n ways, those of ways() unless they are being measured. `operands` is a copy; its buffers and
  // reduction stay until the steps are done.
  Steps call(Operands operands, int ways);
  const Ways& ways() const noexcept { return ways_; }

  // Where n is to be measured, before the first call, by calls as `like` on nobody's data: run(operands, n)
  // makes one. `takes_part` is false for who runs them without being a party.
  template <class Run>
  void settle(const Operands& like, wait::Policy& policy, wait::Site& site, Prepared* stalled, bool takes_part,
              Run&& run) {
    const Rehearsal rehearsal(like, rehearsed_);
    const auto run_by = [&](int ways) { run(rehearsal.operands, ways); };
    if (!takes_part) return ways_.follow(run_by);
    ways_.settle(wire_, peers_, me_, run_by, [&](int id) {
      wire_.wait(
          policy, site, [&] { return wire_.look(id) != 0; }, stalled);
    });
  }

 private:
  struct Plans;
  // Bytes that nobody reads: what the program's operation does to any bytes is not known.
  struct Rehearsal {
    Rehearsal(const Operands& like, std::vector<std::byte>& buffers);
    Reduction reduction;
    Operands operands;
  };

  Notified& wire_;
  const std::vector<int> peers_;
  const int me_;
  const std::size_t slot_;
  Ways ways_;
  std::uint64_t call_;
  std::vector<std::unique_ptr<Plans>> plans_;  // by ways, from ways_.first()
  std::size_t bank_bytes_;
  std::vector<const std::byte*> at_;  // of each value of this call
  std::vector<std::byte> own_;        // combined values and messages of several
  std::vector<std::byte> rehearsed_;  // an operand and a result, where n is to be measured
};

// A notification is the number of the call. A party that is ahead by a call sets a later number, which says
// as much.
class DisseminatedBarrier {
 public:
  static SegmentShape segment(int parties, int ways);

  DisseminatedBarrier(Notified& wire, std::vector<int> peers, int me, int ways, std::uint64_t calls_before)
      : wire_(wire),
        peers_(std::move(peers)),
        me_(me),
        ways_(static_cast<int>(peers_.size()), ways),
        call_(calls_before) {}

  Steps call(Operands operands) { return call(operands, ways_.chosen()); }
  void settle(wait::Policy& policy, wait::Site& site, Prepared* stalled);
  bool is_settled() const noexcept { return ways_.is_settled(); }
  int awaited_rank() const noexcept { return running_.awaited_rank(); }

 private:
  Steps call(Operands operands, int ways);

  Notified& wire_;
  const std::vector<int> peers_;
  const int me_;
  Ways ways_;
  std::uint64_t call_;
  Steps running_;
};

}  // namespace papaya
