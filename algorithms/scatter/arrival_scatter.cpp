// MPI_Scatter through shared slots: the root deposits each rank's block, first those of the ranks that have arrived,
// and leaves; who comes late finds its block. The root may be ahead of the slowest rank by as many calls as there are
// banks; what goes beyond is left to MPI.
//
// A block of up to 112 bytes travels with its flag; larger ones go in fragments. Root: a copy of its p - 1 blocks of S
// bytes. Others, after the later of their arrival and the deposit: one transfer and a copy of S bytes, which overlaps
// with the root's.

#include "algorithms/root_deposits.hpp"
#include "base/copy.hpp"

namespace papaya {

namespace {

Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const std::size_t slot = root_deposits::slot_for(capacity);
  return {.ranks = ranks, .banks = slot <= 4096 ? 32 : slot <= 65536 ? 8 : 4, .slots = ranks, .slot_bytes = slot};
}

class ArrivalScatter final : public root_deposits::Fragmented {
 public:
  ArrivalScatter(const Team& team, std::size_t capacity)
      : Fragmented(team, shape_for(team.size, capacity)), later_(static_cast<std::size_t>(team.size)) {}

  bool run(const Operands& operands, wait::Site& site) override {
    if (!Fragmented::run(operands, site)) return false;
    const int rank = rounds_.team().rank;
    if (rank == operands.root && operands.receive != nullptr && operands.receive != block(operands, rank))
      copy_bytes(operands.receive, block(operands, rank), operands.bytes);
    return true;
  }

 private:
  static const std::byte* block(const Operands& operands, int rank) noexcept {
    return static_cast<const std::byte*>(operands.send) + static_cast<std::size_t>(rank) * operands.bytes;
  }

  bool start(const Operands&, bool is_root) override { return is_root; }

  void deposit(const Operands& operands, std::size_t offset, std::size_t bytes, std::uint64_t round,
               wait::Site& site) override {
    wait_until_free(round, site);
    const auto put_block = [&](int rank) { put(block(operands, rank) + offset, 0, bytes, bytes, round, rank); };
    later_.clear();
    for (int rank = 0; rank < rounds_.team().size; ++rank) {
      if (rank == operands.root) continue;
      if (rounds_.has_entered(rank))
        put_block(rank);
      else
        later_.push_back(rank);
    }
    for (const int rank : later_) put_block(rank);
    rounds_.ring(round);
  }

  bool receive(std::byte* to, std::size_t bytes, std::uint64_t round, int root, wait::Site& site) override {
    const int rank = rounds_.team().rank;
    for (std::size_t done = 0; done < bytes;) {
      std::size_t there = 0;
      wait_until([&] { return (there = bytes_in(round, rank, bytes)) > done || is_left_to_mpi(round, root); }, round,
                 site);
      if (there <= done) return false;
      copy_bytes(to + done, rounds_.data(round, rank, bytes) + done, there - done);
      done = there;
    }
    return true;
  }

  std::vector<int> later_;  // ranks that have not arrived yet
};

constexpr Descriptor descriptor = {
    .collective = Collective::scatter,
    .name = "arrival_scatter",
    .summary = "the root deposits, for who has arrived first, and leaves; one transfer and a pipelined copy of a block",
    .source = "Proficz 2019: blocks in the order of arrival; Mohammadalizadehbakhtevari 2021, chapter 4: shared memory",
    .one_node = true,
    .parameters = {},
    .automatic = {.most_ranks = 64, .lowest_bytes = 512},
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return shape_for(ranks, capacity).total(); },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t>) -> std::unique_ptr<Prepared> {
      return std::make_unique<ArrivalScatter>(team, capacity);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
