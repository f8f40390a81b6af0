// MPI_Alltoall: every rank deposits its blocks in shared memory, beginning with its right neighbour's, and takes its
// own from the others as they arrive. After the last arrival only that rank's blocks are left to be copied.
//
// Where all blocks of a rank fit into 112 bytes they travel with the flag. Larger blocks go in fragments, and each is
// announced by itself, so that receivers take the first blocks while the sender copies the next. Cost after the last
// arrival: one transfer and a copy of p blocks in and one out.
//
// MPI_Alltoallv: nobody knows how many rounds its call has. In the first round, in which all wait for all anyway, each
// rank says how large its largest block is and, beside each block, how large that is. So after it all know when the
// call ends, and each pair how long its own stream of fragments is. In later rounds only who has something for somebody
// deposits, who still wants something waits for its senders alone, and who has sent and got everything leaves.

#include <limits>

#include "algorithms/exchange.hpp"

namespace papaya {

namespace {

constexpr std::size_t slot_limit = 512 << 10;
constexpr std::size_t region_limit = 16 << 20;
constexpr std::size_t announced_bytes = 16 << 10;     // blocks at least this large are announced one by one
constexpr std::size_t most_varying_bytes = 64 << 10;  // of a block of an alltoallv in one round
constexpr std::size_t head_bytes = 16;                // of a block of an alltoallv: its size, and the alignment of data

// A slot holds one fragment for each receiver.
Rounds::Shape shape_for(int ranks, std::size_t capacity) {
  const auto p = static_cast<std::size_t>(ranks);
  const std::size_t wanted = std::min({capacity * p, slot_limit, region_limit / (2 * p)});
  const std::size_t slot = std::max<std::size_t>(wanted / p / Rounds::line_bytes, 1) * Rounds::line_bytes * p;
  return {.ranks = ranks,
          .banks = Rounds::banks_for(capacity / slot, slot <= 65536 ? 4 : 2, 8),
          .slots = ranks,
          .slot_bytes = slot};
}

Rounds::Shape borrowing_shape_for(int ranks, std::size_t largest, std::size_t own_bytes) {
  const auto p = static_cast<std::size_t>(ranks);
  const std::size_t wanted = std::min(largest / 4, slot_limit);
  const std::size_t slot = std::max<std::size_t>(wanted / p / Rounds::line_bytes, 1) * Rounds::line_bytes * p;
  constexpr int banks = 4;
  return {.ranks = ranks,
          .banks = banks,
          .slots = ranks,
          .slot_bytes = slot,
          .borrows = true,
          .own_bytes = Rounds::own_slot(own_bytes, banks)};
}

// The smallest block that is read from its owner's memory.
std::size_t least_read_bytes(int ranks, std::int64_t single_copy_bytes) {
  if (single_copy_bytes == 0 || ranks == 1) return std::numeric_limits<std::size_t>::max();
  const auto others = static_cast<std::size_t>(ranks - 1);
  return (static_cast<std::size_t>(single_copy_bytes) + others - 1) / others;
}

// What is not worth announcing block by block.
std::size_t short_for(const Rounds::Shape& shape, std::size_t least_read) {
  const std::size_t fragment = std::min(announced_bytes - 1, shape.slot_bytes / static_cast<std::size_t>(shape.ranks));
  return std::min(fragment, least_read - 1);
}

class ArrivalAlltoall final : public Exchange {
 public:
  ArrivalAlltoall(const Team& team, const Rounds::Shape& shape, std::size_t least_read)
      : Exchange(team, shape, true, short_for(shape, least_read)),
        least_read_(least_read),
        sent_(static_cast<std::size_t>(team.size)),
        ends_(static_cast<std::size_t>(team.size)) {}

  bool run(const Operands& operands, wait::Site& site) override {
    return operands.send_blocks == nullptr ? Exchange::run(operands, site) : run_blocks(operands, site);
  }

 private:
  bool reads_directly(const Operands& operands) const noexcept override {
    // In place blocks are overwritten while others would read them.
    return operands.bytes >= least_read_ && operands.send != operands.receive;
  }
  Direct direct(const Operands& operands, int sender) const noexcept override {
    return {static_cast<std::size_t>(rounds_.team().rank) * operands.bytes,
            static_cast<std::byte*>(operands.receive) + static_cast<std::size_t>(sender) * operands.bytes};
  }

  std::size_t deposit_bytes(const Operands& operands) const noexcept override {
    return std::min(operands.bytes, fragment_bytes()) * static_cast<std::size_t>(rounds_.team().size);
  }
  std::size_t fragment_bytes() const noexcept override {
    return rounds_.shape().slot_bytes / static_cast<std::size_t>(rounds_.team().size);
  }

  void deposit(const Operands& operands, const Fragment& fragment) noexcept override {
    const Team& team = rounds_.team();
    const bool one_by_one = fragment.bytes >= announced_bytes;
    const auto* const send = static_cast<const std::byte*>(operands.send) + fragment.offset;
    std::byte* const data = rounds_.own_data(fragment.round, fragment.bytes * static_cast<std::size_t>(team.size));
    for (int i = 1; i < team.size; ++i) {
      const auto receiver = static_cast<std::size_t>((team.rank + i) % team.size);
      std::memcpy(data + receiver * fragment.bytes, send + receiver * operands.bytes, fragment.bytes);
      if (one_by_one && i + 1 < team.size) rounds_.publish(fragment.round, team.rank, static_cast<std::uint64_t>(i));
    }
    rounds_.publish(fragment.round, team.rank, Rounds::complete);
  }

  std::uint64_t needed_progress(const Operands&, const Fragment& fragment, int sender) const noexcept override {
    const Team& team = rounds_.team();
    const int turn = (team.rank - sender + team.size) % team.size;
    return fragment.bytes >= announced_bytes && turn + 1 < team.size ? static_cast<std::uint64_t>(turn)
                                                                     : Rounds::complete;
  }

  void take(const Operands& operands, const Fragment& fragment, int sender) noexcept override {
    const Team& team = rounds_.team();
    const std::byte* const data =
        rounds_.data(fragment.round, sender, fragment.bytes * static_cast<std::size_t>(team.size));
    std::memcpy(
        static_cast<std::byte*>(operands.receive) + static_cast<std::size_t>(sender) * operands.bytes + fragment.offset,
        data + static_cast<std::size_t>(team.rank) * fragment.bytes, fragment.bytes);
  }

  void keep(const Operands& operands) noexcept override {
    if (operands.send == operands.receive) return;
    const std::size_t offset = static_cast<std::size_t>(rounds_.team().rank) * operands.bytes;
    std::memcpy(static_cast<std::byte*>(operands.receive) + offset,
                static_cast<const std::byte*>(operands.send) + offset, operands.bytes);
  }

  // In place what is taken overwrites what MPI would have to send, should somebody decline.
  bool may_take_early(const Operands& operands) const noexcept override { return operands.send != operands.receive; }

  // MPI_Alltoallv.

  // What a rank says in its cell in the first round. Few bytes follow it at once, after the size of each block in a
  // byte.
  struct Head {
    std::uint64_t largest : 63;
    std::uint64_t is_short : 1;
  };
  static constexpr std::size_t most_short_bytes = Rounds::inline_bytes - sizeof(Head);

  std::size_t stride() const noexcept { return std::min(fragment_bytes(), most_varying_bytes); }
  std::size_t varying_fragment() const noexcept { return stride() - head_bytes; }
  // Of a slot; never so few that they would travel with the flag.
  std::size_t varying_bytes() const noexcept { return stride() * static_cast<std::size_t>(rounds_.team().size); }
  std::uint64_t rounds_for(std::uint64_t bytes) const noexcept {
    return std::max<std::uint64_t>((bytes + varying_fragment() - 1) / varying_fragment(), 1);
  }
  // How many receivers a sender serves before `receiver`, plus one: the progress that announces its block.
  std::uint64_t turn(int sender, int receiver) const noexcept {
    const int size = rounds_.team().size;
    return static_cast<std::uint64_t>((receiver - sender + size) % size);
  }
  std::byte* head_of(std::uint64_t first, int rank) const noexcept { return rounds_.data(first, rank, sizeof(Head)); }
  std::byte* block_of(std::uint64_t round, int sender, int receiver) const noexcept {
    return rounds_.data(round, sender, varying_bytes()) + static_cast<std::size_t>(receiver) * stride();
  }
  void say(std::uint64_t first, Head head) const noexcept {
    std::memcpy(head_of(first, rounds_.team().rank), &head, sizeof head);
  }
  Head head(std::uint64_t first, int sender) const noexcept {
    Head head;
    std::memcpy(&head, head_of(first, sender), sizeof head);
    return head;
  }

  // Do all blocks fit beside the flag?
  bool are_short(const Block* blocks) const noexcept {
    const Team& team = rounds_.team();
    std::size_t used = static_cast<std::size_t>(team.size);
    for (int receiver = 0; receiver < team.size && used <= most_short_bytes; ++receiver)
      if (receiver != team.rank) used += std::min(blocks[receiver].bytes, most_short_bytes + 1);
    return used <= most_short_bytes;
  }

  void deposit_short(const Block* blocks, std::uint64_t first, std::uint64_t largest) noexcept {
    const Team& team = rounds_.team();
    say(first, {largest, 1});
    auto* const sizes = reinterpret_cast<std::uint8_t*>(head_of(first, team.rank) + sizeof(Head));
    auto* to = reinterpret_cast<std::byte*>(sizes + team.size);
    for (int receiver = 0; receiver < team.size; ++receiver) {
      const std::size_t bytes = receiver == team.rank ? 0 : blocks[receiver].bytes;
      sizes[receiver] = static_cast<std::uint8_t>(bytes);
      if (bytes > 0) std::memcpy(to, blocks[receiver].at, bytes);
      to += bytes;
    }
    rounds_.publish(first, team.rank, Rounds::complete);
  }

  void deposit_blocks(const Block* blocks, std::uint64_t first, std::uint64_t round) noexcept {
    const Team& team = rounds_.team();
    const std::size_t offset = static_cast<std::size_t>(round - first) * varying_fragment();
    std::byte* const slot = rounds_.own_data(round, varying_bytes());
    for (int i = 1; i < team.size; ++i) {
      const int receiver = (team.rank + i) % team.size;
      const Block& block = blocks[receiver];
      std::byte* const data = slot + static_cast<std::size_t>(receiver) * stride();
      if (round == first) std::memcpy(data, &block.bytes, sizeof block.bytes);
      const std::size_t bytes = block.bytes > offset ? std::min(block.bytes - offset, varying_fragment()) : 0;
      if (bytes > 0) std::memcpy(data + head_bytes, block.at + offset, bytes);
      if (bytes >= announced_bytes && i + 1 < team.size)
        rounds_.publish(round, team.rank, static_cast<std::uint64_t>(i));
    }
    rounds_.publish(round, team.rank, Rounds::complete);
  }

  // What a pair exchanges. They agree, unless the program is wrong: then no more than there is room for.
  std::uint64_t wanted(const Block* blocks, int sender) const noexcept {
    return std::min<std::uint64_t>(sent_[static_cast<std::size_t>(sender)], blocks[sender].bytes);
  }

  void take_block(const Block* blocks, std::uint64_t first, std::uint64_t round, int sender) noexcept {
    const int rank = rounds_.team().rank;
    std::uint64_t& sent = sent_[static_cast<std::size_t>(sender)];
    const std::byte* from = block_of(round, sender, rank);
    if (round == first) {
      if (head(first, sender).is_short) {
        const auto* const sizes = reinterpret_cast<const std::uint8_t*>(head_of(first, sender) + sizeof(Head));
        sent = sizes[rank];
        from = reinterpret_cast<const std::byte*>(sizes + rounds_.team().size);
        for (int before = 0; before < rank; ++before) from += sizes[before];
      } else {
        std::memcpy(&sent, from, sizeof sent);
        from += head_bytes;
      }
    } else {
      from += head_bytes;
    }
    const std::size_t offset = static_cast<std::size_t>(round - first) * varying_fragment();
    const std::uint64_t all = wanted(blocks, sender);
    if (all > offset)
      std::memcpy(blocks[sender].at + offset, from, std::min<std::size_t>(all - offset, varying_fragment()));
  }

  // Wakes those who sleep until all of a later round is there. Every depositor looks, so that the last of
  // them sees all flags.
  void ring_if_complete(std::uint64_t round) const noexcept {
    if (!rounds_.is_anybody_asleep()) return;
    for (int rank = 0; rank < rounds_.team().size; ++rank)
      if (ends_[static_cast<std::size_t>(rank)] > round && !rounds_.is_complete(round, rank)) return;
    rounds_.ring(round);
  }

  bool run_blocks(const Operands& operands, wait::Site& site) noexcept {
    const bool is_short = !operands.declines && are_short(operands.send_blocks);
    if (!operands.declines && !is_short && !rounds_.borrow(varying_bytes(), site)) {
      Operands left_out = operands;
      left_out.declines = true;
      return exchange_blocks(left_out, false, site);
    }
    const bool done = exchange_blocks(operands, is_short, site);
    rounds_.give_back(next_);
    return done;
  }

  bool exchange_blocks(const Operands& operands, bool is_short, wait::Site& site) noexcept {
    const Team& team = rounds_.team();
    Prepared* const self = this;
    const Block* const send = operands.send_blocks;
    Block* const receive = operands.receive_blocks;
    const std::uint64_t first = next_;
    std::uint64_t largest = 0;
    // In place what is taken overwrites what MPI would have to send, should somebody decline.
    bool early = true;
    for (int rank = 0; rank < team.size && !operands.declines; ++rank) {
      if (rank != team.rank) largest = std::max<std::uint64_t>(largest, send[rank].bytes);
      early = early && (send[rank].bytes == 0 || send[rank].at != receive[rank].at);
    }
    const std::uint64_t send_end = first + rounds_for(largest);
    ends_[static_cast<std::size_t>(team.rank)] = send_end;

    rounds_.enter(first);
    rounds_.wait_until_free(first, site, self);
    if (operands.declines) {
      say(first, {0, 0});
      rounds_.publish(first, team.rank, Rounds::declined);
    } else if (is_short) {
      deposit_short(send, first, largest);
    } else {
      say(first, {largest, 0});
      deposit_blocks(send, first, first);
    }
    if (operands.deposited != nullptr) operands.deposited(operands.context);
    if (!operands.declines) {
      const Block& from = send[team.rank];
      const Block& to = receive[team.rank];
      const std::size_t bytes = std::min(from.bytes, to.bytes);
      if (bytes > 0 && from.at != to.at) std::memcpy(to.at, from.at, bytes);
      sent_[static_cast<std::size_t>(team.rank)] = bytes;
    }

    // All wait for all: afterwards it is known when the call ends and that nobody declines. Even if somebody does, who
    // ran ahead has used up the rounds of its deposits.
    bool declined = operands.declines;
    std::uint64_t end = send_end;
    std::uint64_t deposited = first + 1;
    const auto run_ahead = [&] {
      if (declined || deposited >= send_end || !rounds_.is_free(deposited)) return;
      deposit_blocks(send, first, deposited++);
    };
    waiting_count_ = 0;
    for (int i = 1; i < team.size; ++i)
      waiting_[static_cast<std::size_t>(waiting_count_++)] = (team.rank + i) % team.size;
    const auto all_there = [&] {
      int kept = 0;
      for (int i = 0; i < waiting_count_; ++i) {
        const int sender = waiting_[static_cast<std::size_t>(i)];
        const std::uint64_t progress = rounds_.progress_of(first, sender);
        if (progress < (early && !declined ? turn(sender, team.rank) : Rounds::complete)) {
          waiting_[static_cast<std::size_t>(kept++)] = sender;
          continue;
        }
        if (progress == Rounds::declined)
          declined = true;
        else if (early && !declined)
          take_block(receive, first, first, sender);
        const std::uint64_t ends = first + rounds_for(head(first, sender).largest);
        ends_[static_cast<std::size_t>(sender)] = ends;
        end = std::max(end, ends);
      }
      waiting_count_ = kept;
      if (kept > 0) run_ahead();
      return kept == 0;
    };
    if (!all_there())
      team.policy->until(
          site, rounds_.bell(), static_cast<std::uint32_t>(first), all_there, [] { return false; }, self);
    rounds_.all_have_released(first);
    next_ = end;
    if (!declined && !early)
      for (int i = 1; i < team.size; ++i) take_block(receive, first, first, (team.rank + i) % team.size);
    rounds_.ring(first);
    if (declined) {
      rounds_.return_credit(end);
      return false;
    }

    std::uint64_t receive_end = first + 1;
    for (int sender = 0; sender < team.size; ++sender)
      if (sender != team.rank) receive_end = std::max(receive_end, first + rounds_for(wanted(receive, sender)));
    receive_end = std::min(receive_end, end);
    for (std::uint64_t round = first + 1; round < deposited; ++round) ring_if_complete(round);
    for (std::uint64_t round = first + 1; round < std::max(send_end, receive_end); ++round) {
      // What is received comes without gaps: after the last of it nothing of this call is needed any more.
      if (round <= receive_end) rounds_.return_credit(round < receive_end ? round : end);
      if (deposited == round && round < send_end) {
        rounds_.wait_until_free(round, site, self);
        deposit_blocks(send, first, deposited++);
        ring_if_complete(round);
      }
      const std::uint64_t offset = (round - first) * varying_fragment();
      waiting_count_ = 0;
      for (int i = 1; i < team.size; ++i)
        if (const int sender = (team.rank + i) % team.size; wanted(receive, sender) > offset)
          waiting_[static_cast<std::size_t>(waiting_count_++)] = sender;
      const auto taken = [&] {
        int kept = 0;
        for (int i = 0; i < waiting_count_; ++i) {
          const int sender = waiting_[static_cast<std::size_t>(i)];
          if (rounds_.progress_of(round, sender) < turn(sender, team.rank))
            waiting_[static_cast<std::size_t>(kept++)] = sender;
          else
            take_block(receive, first, round, sender);
        }
        waiting_count_ = kept;
        if (kept == 0) return true;
        if (deposited < send_end && rounds_.is_free(deposited)) {
          deposit_blocks(send, first, deposited);
          ring_if_complete(deposited++);
        }
        return false;
      };
      if (waiting_count_ > 0 && !taken())
        team.policy->until(
            site, rounds_.bell(), static_cast<std::uint32_t>(round), taken, [] { return false; }, self);
      ring_if_complete(round);
    }
    rounds_.return_credit(end);
    for (int sender = 0; sender < team.size; ++sender) receive[sender].bytes = wanted(receive, sender);
    return true;
  }

  const std::size_t least_read_;
  // Of the present alltoallv, by sender: bytes for this rank, and the round after its last.
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> ends_;
};

constexpr Parameter parameters[] = {
    {"single_copy_bytes", 768 << 10, 0, std::int64_t{1} << 40,
     "where an MPI_Alltoall brings a rank at least so much from others, it reads their memory straight; 0: never"},
};

constexpr Descriptor descriptor = {
    .collective = Collective::alltoall,
    .name = "arrival_alltoall",
    .summary = "blocks are taken as their senders arrive; after the last arrival only its blocks are left",
    .source = "Mohammadalizadehbakhtevari 2021, chapter 4: deposits in shared memory",
    .one_node = true,
    .serves_alltoallv = true,
    .parameters = parameters,
    // Where ranks outnumber cores and all are busy, large blocks are copied as fast by an MPI that yields.
    .automatic = {.most_ranks = 32, .highest_oversubscribed = 131072},
    .region_bytes = [](int ranks, std::size_t capacity,
                       std::span<const std::int64_t>) { return shape_for(ranks, capacity).total(); },
    .control_bytes = [](int ranks, std::size_t largest,
                        std::size_t own_bytes) { return borrowing_shape_for(ranks, largest, own_bytes).total(); },
    .prepare = [](const Team& team, std::size_t capacity,
                  std::span<const std::int64_t> values) -> std::unique_ptr<Prepared> {
      const Rounds::Shape shape = team.deposits != nullptr ? borrowing_shape_for(team.size, capacity, team.own_bytes)
                                                           : shape_for(team.size, capacity);
      return std::make_unique<ArrivalAlltoall>(team, shape, least_read_bytes(team.size, values[0]));
    },
};
const Registration registration(descriptor);

}  // namespace

}  // namespace papaya
