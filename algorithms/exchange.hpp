// Collectives in which every rank waits for every other: all deposit, all take from all. Allgather, alltoall and
// barrier say what is deposited and taken; the order of things is here.
//
// Each rank deposits its rounds as far ahead as the banks allow and takes from the others in the order in which they
// arrive. Once a rank has seen all flags of a call's first round, all ranks have left the call before: with two banks
// and calls of one round nobody ever waits for a bank.
//
// Large blocks may be read straight from their owner's memory instead: then a rank deposits an address, and leaves once
// all others have said that they have read. Should one of them be unable to, all go through the window after all, now
// and from then on.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/rounds.hpp"

namespace papaya {

class Exchange : public Prepared {
 public:
  // Blocks of up to `short_bytes` go in one round, announced at once and copied through the window: what a rank
  // deposits is what lies at Operands::send, a block for each rank or one for all.
  Exchange(const Team& team, const Rounds::Shape& shape, bool has_block_for_each, std::size_t short_bytes)
      : rounds_(team, shape),
        waiting_(static_cast<std::size_t>(team.size)),
        has_block_for_each_(has_block_for_each),
        short_bytes_(short_bytes) {}

  bool run(const Operands& operands, wait::Site& site) override;
  bool is_missing(int rank) const final { return !rounds_.has_entered(rank); }

 protected:
  // Of blocks that are not short, or not of one size.
  bool run_long(const Operands& operands, wait::Site& site);

  // One round of one call: bytes [offset, offset + bytes) of each block.
  struct Fragment {
    std::uint64_t round;
    std::size_t offset;
    std::size_t bytes;
  };

  // Where a rank's memory begins that others may read.
  struct Source {
    pid_t process;
    const void* address;
  };

  // Are blocks of this call read straight from their owner? Equal on all ranks.
  virtual bool reads_directly(const Operands&) const noexcept { return false; }
  // What lies at Source::address + offset of `sender` is this rank's, and goes to the pointer.
  struct Direct {
    std::size_t offset;
    std::byte* to;
  };
  virtual Direct direct(const Operands&, int) const noexcept { return {}; }

  // What this rank deposits in one round, at most.
  virtual std::size_t deposit_bytes(const Operands& operands) const noexcept = 0;
  // The largest fragment of a block that one round takes.
  virtual std::size_t fragment_bytes() const noexcept = 0;
  // The same for this call, which may have to cut blocks at elements.
  virtual std::size_t round_bytes(const Operands&) const noexcept { return fragment_bytes(); }
  // Deposits this rank's share and publishes it.
  virtual void deposit(const Operands& operands, const Fragment& fragment) noexcept = 0;
  // What `sender` must have published before take() may be called for it.
  virtual std::uint64_t needed_progress(const Operands& operands, const Fragment& fragment,
                                        int sender) const noexcept = 0;
  virtual void take(const Operands& operands, const Fragment& fragment, int sender) noexcept = 0;
  // What this rank has for itself; before any take.
  virtual void keep(const Operands& operands) noexcept = 0;
  // May a fragment be taken before it is known that no rank declines?
  virtual bool may_take_early(const Operands& operands) const noexcept = 0;

  Rounds rounds_;
  std::vector<int> waiting_;  // senders of the present round not taken from yet
  int waiting_count_ = 0;
  std::uint64_t next_ = rounds_.team().first_round;  // the next call's first round

 private:
  bool run_left_out(const Operands& operands, wait::Site& site) noexcept;
  bool run_in_fragments(const Operands& operands, wait::Site& site) noexcept;
  bool run_short(const Operands& operands, wait::Site& site) noexcept;
  void offer(const Operands& operands, std::uint64_t round) noexcept;
  void read(const Operands& operands, std::uint64_t round, int sender) noexcept;
  void take_any(const Operands& operands, const Fragment& fragment, int sender) noexcept;
  bool take_ready(const Operands& operands, const Fragment& fragment, bool may_take, bool& declined) noexcept;

  const bool has_block_for_each_;
  const std::size_t short_bytes_;
  bool may_read_ = true;  // nobody has refused yet
  bool reading_ = false;  // this call's blocks are read straight from their owners
};

}  // namespace papaya
