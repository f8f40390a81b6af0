// MPI_Alltoall: every rank deposits its blocks in shared memory, beginning with its right neighbour's, and takes its own
// from the others as they arrive. After the last arrival only that rank's blocks are left to be copied.
//
// Where all blocks of a rank fit into 112 bytes they travel with the flag. Larger blocks go in parts, and each part is
// announced by itself, so that receivers take the first blocks while the sender copies the next. Cost after the last
// arrival: one transfer and a copy of p blocks in and one out.

#include "algorithms/exchange.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 512 << 10;
constexpr std::size_t region_limit = 16 << 20;
constexpr std::size_t announced_bytes = 16 << 10;  // blocks at least this large are announced one by one

// A slot holds one part for each receiver.
Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const auto p = static_cast<std::size_t>(ranks);
  const std::size_t wanted = std::min({capacity * p, slot_limit, region_limit / (2 * p)});
  const std::size_t slot = std::max<std::size_t>(wanted / p / Rounds::line_bytes, 1) * Rounds::line_bytes * p;
  const auto banks = std::clamp<std::size_t>(capacity / slot, 2, 8);
  return {.ranks = ranks, .banks = static_cast<int>(banks), .slots = ranks, .slot_bytes = slot};
}

class ArrivalAlltoall final : public Exchange {
 public:
  ArrivalAlltoall(const Team& team, std::size_t capacity, std::int64_t single_copy_bytes)
      : Exchange(team, shape_for(team.size, capacity)), single_copy_bytes_(static_cast<std::size_t>(single_copy_bytes)) {}

 private:
  bool reads_directly(const Operands& operands) const noexcept override {
    // In place blocks are overwritten while others would read them.
    return single_copy_bytes_ != 0 && operands.bytes >= single_copy_bytes_ && operands.send != operands.receive;
  }
  Direct direct(const Operands& operands, int sender) const noexcept override {
    return {static_cast<std::size_t>(rounds_.team().rank) * operands.bytes,
            static_cast<std::byte*>(operands.receive) + static_cast<std::size_t>(sender) * operands.bytes};
  }

  std::size_t part_bytes() const noexcept override {
    return rounds_.shape().slot_bytes / static_cast<std::size_t>(rounds_.team().size);
  }

  void deposit(const Operands& operands, const Part& part) noexcept override {
    const Team& team = rounds_.team();
    const bool one_by_one = part.bytes >= announced_bytes;
    const auto* const send = static_cast<const std::byte*>(operands.send) + part.offset;
    std::byte* const place = rounds_.place(part.round, team.rank, part.bytes * static_cast<std::size_t>(team.size));
    for (int i = 1; i < team.size; ++i) {
      const auto receiver = static_cast<std::size_t>((team.rank + i) % team.size);
      std::memcpy(place + receiver * part.bytes, send + receiver * operands.bytes, part.bytes);
      if (one_by_one && i + 1 < team.size) rounds_.publish(part.round, team.rank, static_cast<std::uint64_t>(i));
    }
    rounds_.publish(part.round, team.rank, Rounds::complete);
  }

  std::uint64_t needed_progress(const Operands&, const Part& part, int sender) const noexcept override {
    const Team& team = rounds_.team();
    const int turn = (team.rank - sender + team.size) % team.size;
    return part.bytes >= announced_bytes && turn + 1 < team.size ? static_cast<std::uint64_t>(turn) : Rounds::complete;
  }

  void take(const Operands& operands, const Part& part, int sender) noexcept override {
    const Team& team = rounds_.team();
    const std::byte* const place = rounds_.place(part.round, sender, part.bytes * static_cast<std::size_t>(team.size));
    std::memcpy(static_cast<std::byte*>(operands.receive) + static_cast<std::size_t>(sender) * operands.bytes + part.offset,
                place + static_cast<std::size_t>(team.rank) * part.bytes, part.bytes);
  }

  void keep(const Operands& operands) noexcept override {
    if (operands.send == operands.receive) return;
    const std::size_t offset = static_cast<std::size_t>(rounds_.team().rank) * operands.bytes;
    std::memcpy(static_cast<std::byte*>(operands.receive) + offset, static_cast<const std::byte*>(operands.send) + offset,
                operands.bytes);
  }

  // In place what is taken overwrites what MPI would have to send, should somebody veto.
  bool may_take_early(const Operands& operands) const noexcept override { return operands.send != operands.receive; }

  const std::size_t single_copy_bytes_;
};

constexpr Parameter parameters[] = {
    {"single_copy_bytes", 0, 0, std::int64_t{1} << 40,
     "blocks of at least this size are read straight from their owner's memory; 0: none"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::alltoall,
    .name = "arrival_alltoall",
    .summary = "blocks are taken as their senders arrive; after the last arrival its blocks alone",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 4: deposits in shared memory",
    .one_node = true,
    .parameters = parameters,
    .region_bytes = [](int ranks, std::size_t capacity) { return shape_for(ranks, capacity).total(); },
    .prepare = [](const Team& team, std::size_t capacity, std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      return std::make_unique<ArrivalAlltoall>(team, capacity, values[0]);
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
