// MPI_Barrier by flags. Every rank raises its flag, on a cache line of its own, and reads everybody's: after the last
// arrival one cache-line transfer for each rank, and further reads of lines that nobody writes any more. With more
// ranks than cores the last to arrive finds all flags raised and wakes everybody at once.
//
// Cost after the last arrival: L + (p-2)s, where s is a read of a shared line.

#include "algorithms/exchange.hpp"

namespace papaya {

namespace {

Rounds::Shape shape_for(int ranks) {
  return {.ranks = ranks, .banks = 4, .slots = ranks, .slot_bytes = 0};
}

class ArrivalBarrier final : public Exchange {
 public:
  explicit ArrivalBarrier(const Team& team) : Exchange(team, shape_for(team.size), false, 0) {}

 private:
  std::size_t deposit_bytes(const Operands&) const noexcept override { return 0; }
  std::size_t fragment_bytes() const noexcept override { return 1; }
  void deposit(const Operands&, const Fragment& fragment) noexcept override {
    rounds_.publish(fragment.round, rounds_.team().rank, Rounds::complete);
  }
  std::uint64_t needed_progress(const Operands&, const Fragment&, int) const noexcept override {
    return Rounds::complete;
  }
  void take(const Operands&, const Fragment&, int) noexcept override {}
  void keep(const Operands&) noexcept override {}
  bool may_take_early(const Operands&) const noexcept override { return true; }
};

constexpr Descriptor descriptor = {
    .collective = Collective::barrier,
    .name = "arrival_barrier",
    .summary = "a flag for each rank, read by all; after the last arrival one cache-line transfer",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 4: flags of arrival",
    .one_node = true,
    .parameters = {},
    .automatic = {.most_ranks = 64, .lowest_bytes = 0, .highest_bytes = 0},
    .is_node_phase = true,
    .region_bytes = [](int ranks, std::size_t, std::span<const std::int64_t>) { return shape_for(ranks).total(); },
    .prepare = [](const Team& team, std::size_t, std::span<const std::int64_t>) -> std::unique_ptr<Prepared> {
      return std::make_unique<ArrivalBarrier>(team);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
