// Stale synchronous parallel (SSP) allreduce on a hypercube: Iakymchuk et al. 2021, Algorithm 1; Faustino 3.2.
//
// A rank's calls are its clock: 1, 2, 3 and so on. What it brings to a call is its contribution of that clock. A result
// has one contribution of every rank; those of the others may be up to `slack` clocks old. A rank waits only where its
// partner's newest message holds an older one. The partner itself may be fewer calls behind: it has used older
// contributions in its turn.
//
// In step k of a call the ranks whose numbers differ in bit k exchange partial results. Each sends what it has combined
// so far, with the clock of the oldest contribution in it, and takes the partner's newest message that is no newer than
// its own call. If that holds a contribution of before clock - slack, it waits for the partner's next one. In the first
// call all wait for all. Later the contributions of a result lie in [clock - slack, clock]. The partner's message of
// the same call is always fresh enough, so no two ranks wait for each other.
//
// The lower ranks' operand is on the left, on both sides of an exchange. With slack 0 a call takes the messages of the
// same clock only, hence both partners combine the same operands, and all ranks have the same bits in every run.
//
// Any number of ranks. With P = 2^d + E the first 2E ranks pair up: the odd one of a pair, the extra rank, sends its
// contribution to the even one, which takes it before the steps and sends back the result after them. Both ends follow
// the same rule: the newest message no newer than the own call, or wait. So an extra rank's result is at most `slack`
// clocks old as well, its own contribution in it included.
//
// Slots. The message of clock n goes to slot n mod (2 slack + 2) of its edge. What a rank takes in call a has the
// number a - slack at least, for a message is never older than the contributions in it. A rank that sends message n to
// a partner has left call n-1, in which it took the partner's n-1-slack or a later one. So the partner has come to call
// n-1-slack and sent in it, and what it still reads on this edge, in that call or a later one, has a number of n-1-2
// slack at least: it does not share the slot of n. Between an extra rank and its partner one slot fewer would do. The
// extra rank has taken the result of call n-1-slack or a later one, before which the partner had read in that call. And
// before the partner sends the result n, it has taken the extra rank's n-slack or a later one.
//
// All ranks make the same number of calls. A rank that ends waits for the messages of its last call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/weak/ssp.hpp"
#include "algorithms/weak/weak.hpp"

namespace papaya {

class SspHypercube final : public Weak {
 public:
  static SegmentShape segment(int ranks, std::size_t bytes, std::uint64_t slack) noexcept;

  // Every call has so many bytes, and the same reduction on all ranks.
  SspHypercube(const Team& team, std::size_t bytes, std::uint64_t slack);
  ~SspHypercube() override;
  SspHypercube(const SspHypercube&) = delete;
  SspHypercube& operator=(const SspHypercube&) = delete;

  bool may_end() noexcept override { return has_heard_all(); }

 private:
  // The operand that a rank takes from its peer in an exchange.
  enum class Taken : std::uint8_t { nothing, left, right, result };
  struct Exchange {
    int peer;
    int edge;  // both ends number it alike
    bool sends;
    Taken taken;
  };
  static std::vector<Exchange> exchanges_of(int rank, int ranks);

  Steps steps(Operands operands) override;
  void send(const Exchange& exchange, std::byte* source, const std::byte* partial, std::uint64_t of_peer) noexcept;
  bool has_heard_all() const noexcept;

  const std::size_t bytes_;
  const SspSlots slots_;
  const std::vector<Exchange> exchanges_;  // of a call, in order
  std::vector<std::byte> sources_;         // what each of them sends: a slot's contents
  std::uint64_t clock_;
};

}  // namespace papaya
