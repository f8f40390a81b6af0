// MPI_Bcast through a ring of shared slots: the root deposits and leaves, whoever is there takes chunk by chunk as it
// is deposited, and who comes late finds the data. The root may be ahead of the slowest rank by the whole ring; what
// goes beyond is left to MPI.
//
// A message of up to 112 bytes travels with its flag; larger ones go in fragments. Root: a copy of S bytes. Others,
// after the later of their arrival and the root's: one transfer and a copy of S bytes, which overlaps with the root's.

#include "algorithms/root_deposits.hpp"

namespace papaya {

namespace {

Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const std::size_t slot = root_deposits::slot_for(capacity);
  // One rank deposits at a time, in all ranks' share.
  const std::size_t bytes = std::min<std::size_t>(capacity * static_cast<std::size_t>(ranks), 16 << 20);
  const int banks = Rounds::banks_for(bytes / slot, slot <= 4096 ? 64 : 16, 64);
  return {.ranks = ranks, .banks = banks, .slots = 1, .slot_bytes = slot};
}

class ArrivalBcast final : public root_deposits::Fragmented {
 public:
  ArrivalBcast(const Team& team, std::size_t capacity) : Fragmented(team, shape_of(team, capacity)) {}

 private:
  static Rounds::Shape shape_of(const Team& team, std::size_t capacity) {
    return team.deposits == nullptr
               ? shape_for(team.size, capacity)
               : root_deposits::borrowing_shape_for(team.size, 1, capacity, team.deposits->largest_bytes());
  }

  bool start(const Operands&, bool is_root) override { return is_root; }

  void deposit(const Operands& operands, std::size_t offset, std::size_t bytes, std::uint64_t round,
               wait::Site& site) override {
    wait_until_free(round, site);
    put(static_cast<const std::byte*>(operands.send) + offset, 0, bytes, bytes, round, 0);
    rounds_.ring(round);
  }

  bool receive(std::byte* to, std::size_t bytes, std::uint64_t round, int root, wait::Site& site) override {
    for (std::size_t done = 0; done < bytes;) {
      std::size_t there = 0;
      wait_until([&] { return (there = bytes_in(round, 0, bytes)) > done || is_left_to_mpi(round, root); }, round,
                 site);
      if (there <= done) return false;
      std::memcpy(to + done, rounds_.data(round, 0, bytes) + done, there - done);
      done = there;
    }
    return true;
  }
};

constexpr Descriptor descriptor = {
    .collective = Collective::bcast,
    .name = "arrival_bcast",
    .summary = "the root deposits and leaves; the others take as they arrive; one transfer and a pipelined copy",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 4: deposits in shared memory",
    .one_node = true,
    .parameters = {},
    .automatic = {.most_ranks = 64},
    .is_node_phase = true,
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return shape_for(ranks, capacity).total(); },
    .lean_bytes =
        [](int ranks, std::size_t capacity, std::size_t largest) {
          return root_deposits::borrowing_shape_for(ranks, 1, capacity, largest).total();
        },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t>) -> std::unique_ptr<Prepared> {
      return std::make_unique<ArrivalBcast>(team, capacity);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
