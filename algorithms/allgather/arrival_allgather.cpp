// MPI_Allgather: every rank deposits its block in shared memory and takes the others' as they arrive. After the last
// arrival only that rank's block is left to be copied.
//
// A block of up to 112 bytes travels with its flag. Larger ones go in fragments; a rank that waits deposits further
// ones ahead. Cost after the last arrival: one transfer and a copy of S bytes in and out.
//
// MPI_Allgatherv: all ranks know the sizes of all blocks. There are as many fragments as the largest block has, and of
// a shorter one the last ones are empty.

#include <algorithm>
#include <limits>

#include "algorithms/exchange.hpp"

namespace papaya {

namespace {

constexpr std::size_t fragment_limit = 256 << 10;  // in, and out by p - 1 readers, from the second-level cache

Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const std::size_t slot = Rounds::round_up(std::min(capacity, fragment_limit), Rounds::line_bytes);
  return {.ranks = ranks,
          .banks = Rounds::banks_for(capacity / slot, slot <= 65536 ? 4 : 2, 16),
          .slots = ranks,
          .slot_bytes = slot};
}

Rounds::Shape borrowing_shape_for(int ranks, std::size_t largest, std::size_t own_bytes) {
  constexpr int banks = 4;
  return {.ranks = ranks,
          .banks = banks,
          .slots = ranks,
          .slot_bytes = std::min(largest / banks, fragment_limit),
          .borrows = true,
          .own_bytes = Rounds::own_slot(own_bytes, banks)};
}

// The smallest block that is read from its owner's memory.
std::size_t least_read_bytes(int ranks, std::int64_t single_copy_bytes) {
  if (single_copy_bytes == 0 || ranks == 1) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(single_copy_bytes) * static_cast<std::size_t>(ranks - 1);
}

class ArrivalAllgather final : public Exchange {
 public:
  ArrivalAllgather(const Team& team, const Rounds::Shape& shape, std::size_t least_read)
      : Exchange(team, shape, false, std::min(shape.slot_bytes, least_read - 1)), least_read_(least_read) {}

  bool run(const Operands& operands, wait::Site& site) override {
    return operands.receive_blocks == nullptr ? Exchange::run(operands, site) : run_long(operands, site);
  }

 private:
  bool reads_directly(const Operands& operands) const noexcept override {
    return operands.receive_blocks == nullptr && operands.bytes >= least_read_;
  }
  Direct direct(const Operands& operands, int sender) const noexcept override { return {0, block(operands, sender)}; }

  std::size_t deposit_bytes(const Operands& operands) const noexcept override {
    return std::min(operands.bytes, fragment_bytes());
  }
  std::size_t fragment_bytes() const noexcept override { return rounds_.shape().slot_bytes; }

  void deposit(const Operands& operands, const Fragment& fragment) noexcept override {
    const int rank = rounds_.team().rank;
    std::byte* const data = rounds_.own_data(fragment.round, fragment.bytes);
    if (const std::size_t bytes = bytes_of(operands, fragment, rank); bytes > 0)
      std::memcpy(data, static_cast<const std::byte*>(operands.send) + fragment.offset, bytes);
    rounds_.publish(fragment.round, rank, Rounds::complete);
  }
  std::uint64_t needed_progress(const Operands&, const Fragment&, int) const noexcept override {
    return Rounds::complete;
  }
  void take(const Operands& operands, const Fragment& fragment, int sender) noexcept override {
    if (const std::size_t bytes = bytes_of(operands, fragment, sender); bytes > 0)
      std::memcpy(block(operands, sender) + fragment.offset, rounds_.data(fragment.round, sender, fragment.bytes),
                  bytes);
  }
  void keep(const Operands& operands) noexcept override {
    const int rank = rounds_.team().rank;
    std::byte* const own = block(operands, rank);
    const std::size_t bytes = operands.receive_blocks == nullptr ? operands.bytes : operands.receive_blocks[rank].bytes;
    if (own != operands.send && bytes > 0) std::memcpy(own, operands.send, bytes);
  }
  bool may_take_early(const Operands&) const noexcept override { return true; }

  static std::byte* block(const Operands& operands, int rank) noexcept {
    if (operands.receive_blocks != nullptr) return operands.receive_blocks[rank].at;
    return static_cast<std::byte*>(operands.receive) + static_cast<std::size_t>(rank) * operands.bytes;
  }

  // Of a fragment of this rank's block.
  static std::size_t bytes_of(const Operands& operands, const Fragment& fragment, int rank) noexcept {
    if (operands.receive_blocks == nullptr) return fragment.bytes;
    const std::size_t all = operands.receive_blocks[rank].bytes;
    return std::min(fragment.bytes, all - std::min(all, fragment.offset));
  }

  const std::size_t least_read_;
};

constexpr Parameter parameters[] = {
    {"single_copy_bytes", 2 << 20, 0, std::int64_t{1} << 37,
     "blocks of at least so much for each reader are read straight from their owner's memory; 0: none"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::allgather,
    .name = "arrival_allgather",
    .summary = "blocks are taken as their senders arrive; after the last arrival only its block is left",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 4: deposits in shared memory",
    .one_node = true,
    .serves_allgatherv = true,
    .parameters = parameters,
    .automatic = {.most_ranks = 32},
    .is_node_phase = true,
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return shape_for(ranks, capacity).total(); },
    .control_bytes = [](int ranks, std::size_t largest,
                        std::size_t own_bytes) { return borrowing_shape_for(ranks, largest, own_bytes).total(); },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      const Rounds::Shape shape = team.deposits != nullptr ? borrowing_shape_for(team.size, capacity, team.own_bytes)
                                                           : shape_for(team.size, capacity);
      return std::make_unique<ArrivalAllgather>(team, shape, least_read_bytes(team.size, values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
