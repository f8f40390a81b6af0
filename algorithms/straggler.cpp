#include "algorithms/straggler.hpp"

#include <algorithm>
#include <cstring>

#include "algorithms/patterns/tree.hpp"

namespace papaya {

namespace {

constexpr std::uint64_t number_with(std::uint64_t number, int rank) noexcept {
  return number * Straggler::most_ranks + static_cast<std::uint64_t>(rank);
}
constexpr int rank_in(std::uint64_t notification) noexcept {
  return static_cast<int>(notification % Straggler::most_ranks);
}

}  // namespace

Straggler::Shape::Shape(int all, std::size_t chunk, int under_way)
    : ranks(all),
      depth(under_way),
      chunk_bytes(in_lines(chunk)),
      slot_bytes(in_lines(chunk_bytes / static_cast<std::size_t>(std::max(all - 1, 1)) + most_element_bytes)),
      results(static_cast<std::size_t>(all) * slot_bytes),
      bank_bytes(results + chunk_bytes) {}

Straggler::Straggler(const Team& team, const Shape& shape, int late)
    : OverWire(team),
      shape_(shape),
      is_fixed_(late >= 0),
      straggler_(is_fixed_ ? std::min(late, team.size - 1) : team.size - 1),
      next_(straggler_),
      told_(straggler_),
      arrivals_(team.size),
      partials_(static_cast<std::size_t>(shape.depth), std::vector<std::byte*>(static_cast<std::size_t>(team.size))),
      has_(static_cast<std::size_t>(shape.depth), std::vector<std::uint8_t>(static_cast<std::size_t>(team.size))),
      chunks_(*this, shape.depth, team.first_round - 1) {
  if (team.size > 1) plan();
}

void Straggler::plan() {
  sends_ = patterns::StragglerSchedule(team_.size).sends_of(scheduled(team_.rank));
}

Steps Straggler::steps(Operands operands) {
  if (team_.size == 1) {
    std::memmove(operands.receive, operands.send, operands.bytes);
    co_return;
  }
  const std::size_t most = shape_.chunk_bytes / operands.reduction->element_bytes;
  first_chunk_ = chunks_.next();
  arrivals_.begin_call();
  std::size_t begun = 0;
  const auto serve = [&] { return chunks_.serve(operands, most, begun); };
  serve();
  if (operands.count != 0) tell_deposited(operands);
  co_await until(serve);
  co_await released(*team_.wire);
  if (operands.count != 0 && !is_fixed_) learn();
}

// What block 0 has told in this call becomes true; its owner has what to tell in the next.
void Straggler::learn() {
  const int before = straggler_;
  const bool tells = owner(0) == team_.rank;
  straggler_ = tells ? next_ : told_;
  if (straggler_ != before) plan();
  if (tells && owner(0) == team_.rank) {
    next_ = arrivals_.end_call(straggler_);
  } else {
    arrivals_.forget();
    next_ = straggler_;
  }
}

// One chunk's arithmetic, without its waits.
struct Straggler::Chunk {
  Straggler& all;
  const std::uint64_t number;
  const std::byte* const operand;
  std::byte* const result;
  const std::size_t count;
  const Reduction& reduction;

  const int me = all.team_.rank;
  const int late = all.straggler_;
  const bool is_late = me == late;
  const int own = is_late ? all.blocks() - 1 : all.scheduled(me) - 1;  // the block that this rank completes
  const int ranks = all.team_.size;
  const int height = patterns::tree_height(ranks);
  const std::size_t turn = static_cast<std::size_t>(number % static_cast<std::uint64_t>(all.shape_.depth));
  const int bank_number = static_cast<int>(number % static_cast<std::uint64_t>(2 * all.shape_.depth));
  const std::size_t bank = static_cast<std::size_t>(bank_number) * all.shape_.bank_bytes;
  const int first_id = bank_number * 2 * ranks;
  std::vector<std::byte*>& partials = all.partials_[turn];
  std::vector<std::uint8_t>& has = all.has_[turn];
  bool is_in_place = false;  // what comes as a result

  Notified& wire() const noexcept { return *all.team_.wire; }

  std::size_t begin_of(int block) const noexcept {
    const auto b = static_cast<std::size_t>(block);
    const auto blocks = static_cast<std::size_t>(all.blocks());
    return b * (count / blocks) + std::min(b, count % blocks);
  }
  std::size_t offset_of(int block) const noexcept { return begin_of(block) * reduction.element_bytes; }
  std::size_t elements_of(int block) const noexcept { return begin_of(block + 1) - begin_of(block); }
  std::size_t bytes_of(int block) const noexcept { return elements_of(block) * reduction.element_bytes; }
  // Of a short message the last blocks are empty, and nobody sends them.
  int blocks() const noexcept {
    return static_cast<int>(std::min<std::size_t>(count, static_cast<std::size_t>(all.blocks())));
  }

  std::size_t slot_of(int writer) const noexcept {
    return bank + static_cast<std::size_t>(writer) * all.shape_.slot_bytes;
  }
  std::byte* slot(int writer) const noexcept { return wire().segment() + slot_of(writer); }
  std::size_t place_of(int block) const noexcept { return bank + all.shape_.results + offset_of(block); }
  int operand_id(int writer) const noexcept { return first_id + writer; }
  int result_id(int block) const noexcept { return first_id + ranks + block; }
  bool has_come(int id) const noexcept { return wire().look(id) >= number_with(number, 0); }
  std::byte*& partial(int first) const noexcept { return partials[static_cast<std::size_t>(first)]; }

  // A result that comes contains this rank's operand, so none comes before the rank has sent that.
  void expect_results() {
    std::fill(has.begin(), has.end(), std::uint8_t{0});
    for (int block = 0; block < blocks(); ++block)
      if (block != own) is_in_place = wire().redirect(place_of(block), bytes_of(block), result + offset_of(block));
  }
  void send_operands() const noexcept {
    for (int i = 1; i <= all.blocks(); ++i) {
      const int block = (own + i) % all.blocks();
      if ((block == own && !is_late) || block >= blocks()) continue;
      wire().write_notify(all.owner(block), slot_of(me), operand + offset_of(block), bytes_of(block), operand_id(me),
                          number_with(number, 0));
    }
  }
  int told_with(int block) const noexcept { return block != 0 ? 0 : own == 0 && !is_late ? all.next_ : all.told_; }

  // Calls visit(first, middle) for each node of the tree with the straggler in it that has two halves, upwards.
  template <class Visit>
  void above_straggler(Visit&& visit) const {
    for (int level = 1; level <= height; ++level) {
      const int first = late >> level << level;
      const int middle = first + (1 << (level - 1));
      if (middle < ranks) visit(first, middle);
    }
  }

  // In the own block: the nodes of the tree that the straggler is not in, and its operand, each in its first rank's
  // slot, which is this rank's alone once the operand has come.
  void begin_own() const noexcept {
    for (int rank = 0; rank < ranks; ++rank) partial(rank) = slot(rank);
    partial(me) = const_cast<std::byte*>(operand) + offset_of(own);  // not written to
  }
  // All up to `rank` have come.
  void add_up_to(int rank) const {
    for (int level = 1; level <= height; ++level) {
      const int first = rank >> level << level;
      const int middle = first + (1 << (level - 1));
      const int end = std::min(first + (1 << level), ranks);
      if (end != rank + 1 || (first <= late && late < end)) return;
      if (middle >= ranks) continue;
      reduction.combine(reduction, partial(first), partial(middle), slot(first), elements_of(own));
      partial(first) = slot(first);
    }
  }
  // The straggler completes the last block as well: to it what the others come to.
  void give_partials() const noexcept {
    above_straggler([&](int first, int middle) {
      const int sibling = late >= middle ? first : middle;
      wire().write_notify(late, slot_of(sibling), partial(sibling), bytes_of(own), operand_id(sibling),
                          number_with(number, told_with(own)));
    });
  }
  bool have_partials_come() const noexcept {
    bool have = true;
    above_straggler(
        [&](int first, int middle) { have = have && has_come(operand_id(late >= middle ? first : middle)); });
    return have;
  }
  // All operands are there. Where partial results are they may still be sent from: the straggler's slot is not.
  void complete_own() const {
    above_straggler([&](int first, int middle) {
      std::byte* const to = first == 0 && 2 * middle >= ranks ? result + offset_of(own) : slot(late);
      reduction.combine(reduction, partial(first), partial(middle), to, elements_of(own));
      partial(first) = to;
    });
    // With two ranks there is no other block that tells the straggler.
    if (is_late && own == 0) all.told_ = rank_in(wire().look(operand_id(all.owner(0))));
  }

  // A result, once what it takes has come.
  bool is_there(int block) const noexcept { return has[static_cast<std::size_t>(block)] != 0; }
  bool may_take(int block) const noexcept {
    if (block != own) return has_come(result_id(block));
    if (!(is_late ? have_partials_come() : has_come(operand_id(late)))) return false;
    // Of the last block the operand itself may be on its way.
    return operand != result || own != all.blocks() - 1 || wire().are_sources_free();
  }
  int awaited_rank(int block) const noexcept { return block == own && !is_late ? late : all.owner(block); }
  void take(int block) const {
    has[static_cast<std::size_t>(block)] = 1;
    if (block == own) return complete_own();
    if (block == 0) all.told_ = rank_in(wire().look(result_id(0)));
    if (!is_in_place) std::memcpy(result + offset_of(block), wire().segment() + place_of(block), bytes_of(block));
  }
  void send(int block, int to) const noexcept {
    wire().write_notify(to, place_of(block), result + offset_of(block), bytes_of(block), result_id(block),
                        number_with(number, told_with(block)));
  }
};

Steps Straggler::chunk(std::uint64_t number, const std::byte* operand, std::byte* result, std::size_t count,
                       const Reduction& reduction) {
  Chunk c{*this, number, operand, result, count, reduction};
  const bool measures = c.own == 0 && !c.is_late && number == first_chunk_ && !is_fixed_;
  const auto look = [this, &c, measures] {
    if (measures) arrivals_.look(c.me, [&c](int rank) { return c.has_come(c.operand_id(rank)); });
  };
  const auto may_take = [&c, look](int block) {
    return until(
        [&c, look, block] {
          look();
          return c.may_take(block);
        },
        c.awaited_rank(block));
  };

  c.expect_results();
  c.send_operands();
  if (c.own < c.blocks()) {
    c.begin_own();
    for (int rank = 0; rank < c.ranks && !c.is_late; ++rank) {
      if (rank == c.late) continue;
      if (rank != c.me)
        co_await until(
            [&c, look, rank] {
              look();
              return c.has_come(c.operand_id(rank));
            },
            rank);
      c.add_up_to(rank);
    }
    if (c.own == blocks() - 1 && !c.is_late) c.give_partials();
  }
  for (const patterns::BlockSend& send : sends_) {
    if (send.block >= c.blocks()) continue;
    if (!c.is_there(send.block)) {
      co_await may_take(send.block);
      c.take(send.block);
    }
    c.send(send.block, rank_of(send.to));
  }
  for (int block = 0; block < c.blocks(); ++block)
    if (!c.is_there(block)) {
      co_await may_take(block);
      c.take(block);
    }
}

}  // namespace papaya
