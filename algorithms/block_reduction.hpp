// Reductions whose result is scattered: every rank deposits its operand, a block for each rank, in shared memory, and
// combines its own block of all operands as they arrive, over the fixed tree in rank order. After the last arrival one
// copy of its operand is left, and its path to the tree's root, of one block.
//
// What is combined stands in memory of the rank's own: nobody writes to a deposit of another rank. Operands go in
// fragments, one of each block at a time; larger ones are announced block by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/exchange.hpp"

namespace papaya {

class BlockReduction final : public Exchange {
 public:
  static constexpr std::size_t max_element_bytes = 256;  // the smallest fragment of a block

  // For the descriptors. `capacity` is of a block.
  static std::size_t region_bytes(int ranks, std::size_t capacity, std::span<const std::int64_t> values);
  static std::size_t control_bytes(int ranks, std::size_t largest, std::size_t own_bytes);
  static std::unique_ptr<Prepared> prepare(const Team& team, std::size_t capacity,
                                           std::span<const std::int64_t> values);

  BlockReduction(const Team& team, const Rounds::Shape& shape);

 private:
  // Of a block: what one round takes of it.
  struct Part {
    std::size_t begin;
    std::size_t bytes;
  };
  static Part part(const Operands& operands, const Fragment& fragment, int rank) noexcept;
  // From one block to the next in a slot, and bytes of all of them.
  std::size_t stride(std::size_t fragment_bytes) const noexcept;
  std::size_t slot_bytes(std::size_t fragment_bytes) const noexcept;

  std::size_t fragment_bytes() const noexcept override { return piece_; }
  std::size_t round_bytes(const Operands& operands) const noexcept override;
  std::size_t deposit_bytes(const Operands& operands) const noexcept override;
  void deposit(const Operands& operands, const Fragment& fragment) noexcept override;
  std::uint64_t needed_progress(const Operands& operands, const Fragment& fragment, int sender) const noexcept override;
  void take(const Operands& operands, const Fragment& fragment, int sender) noexcept override;
  void keep(const Operands& operands) noexcept override;
  // In place the result overwrites what MPI would have to reduce, should somebody decline.
  bool may_take_early(const Operands& operands) const noexcept override { return operands.send != operands.receive; }

  void begin(const Operands& operands, const Fragment& fragment) noexcept;
  void add(const Operands& operands, int rank, const std::byte* operand) noexcept;
  void climb(const Reduction& reduction, int rank) noexcept;
  std::byte* own_memory(int rank) noexcept { return scratch_.data() + static_cast<std::size_t>(rank) * stride_; }

  const std::size_t piece_;  // of a block, at most
  std::vector<std::byte> scratch_;
  // Of the round that is combined. `levels_`: levels of the tree combined so far, plus one, of the subtree that begins
  // at each rank, and where its result stands.
  std::uint64_t round_ = 0;
  Part mine_{};
  std::size_t stride_ = 0;
  std::byte* result_ = nullptr;
  int added_ = 0;
  const std::byte* total_ = nullptr;  // of those added, in the order of arrival
  std::vector<std::uint8_t> levels_;
  std::vector<const std::byte*> at_;
};

}  // namespace papaya
