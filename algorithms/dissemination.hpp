// N-way dissemination (End et al. 2015) among participants that write to each other over the wire: ceil(log_{n+1}
// p) rounds, in each of which every participant writes to n others and is written to by n. The participants are the
// ranks of a team or a rank of each node. Peers and rounds are in patterns/dissemination.hpp.
//
// Two kinds of allreduce, of which every participant takes the same:
//
// Partial results, as in the paper, for operations whose bits do not depend on the order (integers): a
// message is one partial result. The last round is cut by Theorem 1 so that nobody's data counts twice; for
// numbers of participants that no cut fits, and for all other operations:
//
// Nodes of the fixed tree in the participants' order. The data that a participant has are those of a range of
// participants that ends at itself, and differ from participant to participant, so partial results of them would give
// each other bits. Hence what is known of a range is kept and sent as the fewest nodes of the tree that cover it, at
// most 2 log2 of its length; two halves of a node become the node as soon as a participant has both. Every value is a
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

#include "algorithms/radix.hpp"
#include "algorithms/steps.hpp"

namespace papaya {

class DisseminatedReduction {
 public:
  static constexpr std::size_t largest_message = 65536;

  static SegmentShape segment(int participants, std::size_t capacity, int radix);

  // `peers`: the rank in the team of each participant; `me`: this one's number; `radix` as RadixChoice has it.
  DisseminatedReduction(Notified& wire, std::vector<int> peers, int me, std::size_t capacity, int radix,
                        std::uint64_t calls_before);
  ~DisseminatedReduction();

  // A call with a radix: that of radix() unless it is being measured. `operands` is a copy; its buffers and
  // reduction stay until the steps are done.
  Steps call(Operands operands, int radix);
  const RadixChoice& radix() const noexcept { return radix_; }

  // Where n is to be measured, before the first call, by calls as `like` on nobody's data: run(operands, n)
  // makes one. `takes_part` is false for who runs them without being a participant.
  template <class Run>
  void settle(const Operands& like, wait::Policy& policy, wait::Site& site, Prepared* stalled, bool takes_part,
              Run&& run) {
    const Rehearsal rehearsal(like, rehearsed_);
    const auto run_by = [&](int radix) { run(rehearsal.operands, radix); };
    if (!takes_part) return radix_.follow(run_by);
    radix_.settle(wire_, peers_, me_, run_by, [&](int id) {
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
  RadixChoice radix_;
  std::uint64_t call_;
  std::vector<std::unique_ptr<Plans>> plans_;  // by radix, from radix_.first()
  std::size_t bank_bytes_;
  std::vector<const std::byte*> at_;  // of each value of this call
  std::vector<std::byte> own_;        // combined values and messages of several
  std::vector<std::byte> rehearsed_;  // an operand and a result, where n is to be measured
};

// A notification is the number of the call. A participant that is ahead by a call sets a later number, which says
// as much.
class DisseminatedBarrier {
 public:
  static SegmentShape segment(int participants, int radix);

  DisseminatedBarrier(Notified& wire, std::vector<int> peers, int me, int radix, std::uint64_t calls_before)
      : wire_(wire),
        peers_(std::move(peers)),
        me_(me),
        radix_(static_cast<int>(peers_.size()), radix),
        call_(calls_before) {}

  Steps call(Operands operands) { return call(operands, radix_.chosen()); }
  void settle(wait::Policy& policy, wait::Site& site, Prepared* stalled);
  bool is_settled() const noexcept { return radix_.is_settled(); }
  int awaited_rank() const noexcept { return running_.awaited_rank(); }

 private:
  Steps call(Operands operands, int radix);

  Notified& wire_;
  const std::vector<int> peers_;
  const int me_;
  RadixChoice radix_;
  std::uint64_t call_;
  Steps running_;
};

}  // namespace papaya
