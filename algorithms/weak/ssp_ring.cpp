#include "algorithms/weak/ssp_ring.hpp"

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"

namespace papaya {

// A message: the clock of its oldest contribution, then for each clock from that one on, `slack` of them, how many of
// the block's first ranks have brought contributions of up to that clock. On lines of their own, before the data.
namespace {
std::uint64_t oldest_in(const std::byte* message) noexcept {
  std::uint64_t oldest = 0;
  std::memcpy(&oldest, message, sizeof oldest);
  return oldest;
}
std::uint32_t* ranks_up_to(std::byte* message) noexcept {
  return reinterpret_cast<std::uint32_t*>(message + sizeof(std::uint64_t));
}
const std::uint32_t* ranks_up_to(const std::byte* message) noexcept {
  return reinterpret_cast<const std::uint32_t*>(message + sizeof(std::uint64_t));
}
}  // namespace

std::size_t SspRing::Shape::part_begin(std::size_t part) const noexcept {
  const auto parts = static_cast<std::size_t>(ranks);
  return part * (count / parts) + std::min(part, count % parts);
}

std::size_t SspRing::Shape::largest_part() const noexcept {
  const auto parts = static_cast<std::size_t>(ranks);
  return (count + parts - 1) / parts;
}

std::size_t SspRing::Shape::blocks_per_part() const noexcept {
  const std::size_t per_block = std::max<std::size_t>(chunk_bytes / element_bytes, 1);
  return std::max<std::size_t>((largest_part() + per_block - 1) / per_block, 1);
}

std::size_t SspRing::Shape::block_begin(std::size_t block) const noexcept {
  const std::size_t blocks = blocks_per_part();
  const std::size_t begin = part_begin(block / blocks);
  const std::size_t elements = part_begin(block / blocks + 1) - begin;
  return begin + block % blocks * (elements / blocks) + std::min(block % blocks, elements % blocks);
}

std::size_t SspRing::Shape::header_bytes() const noexcept {
  return in_lines(sizeof(std::uint64_t) + static_cast<std::size_t>(slack) * sizeof(std::uint32_t));
}

std::size_t SspRing::Shape::message_bytes() const noexcept {
  const std::size_t blocks = blocks_per_part();
  return header_bytes() + in_lines((largest_part() + blocks - 1) / blocks * element_bytes);
}

SegmentShape SspRing::Shape::segment() const noexcept {
  const std::size_t notifications = steps() * blocks_per_part();
  return {std::max<std::size_t>(slots().bytes(notifications), 64), std::max(static_cast<int>(notifications), 1), 0,
          slack > 0};
}

SspRing::SspRing(const Team& team, const Shape& shape)
    : Weak(team),
      shape_(shape),
      per_part_(shape.blocks_per_part()),
      ranks_(static_cast<std::size_t>(shape.ranks)),
      slots_(shape.slots()),
      sources_(shape.blocks() * shape.message_bytes()),
      clock_(team.first_round - 1) {
  for (std::size_t block = 0; block < shape.blocks(); ++block) portions_.push_back({shape.block_begin(block), 0, 0});
}

SspRing::~SspRing() {
  wait::Site site;
  if (!has_heard_all())
    team_.wire->wait(
        *team_.policy, site, [this] { return has_heard_all(); }, nullptr);
}

// Nothing is under way any more to this rank, nor from memory of its own.
bool SspRing::has_heard_all() const noexcept {
  if (!team_.wire->are_sources_free()) return false;
  if (clock_ < team_.first_round) return true;
  for (Portion taken{0, 0}; taken.step < shape_.steps(); ++taken.step)
    for (taken.in_part = 0; taken.in_part < per_part_; ++taken.in_part)
      if (shape_.is_sent(block_at({taken.step + 1, taken.in_part})) && team_.wire->look(id_of(taken)) < clock_)
        return false;
  return true;
}

std::size_t SspRing::part_at(std::size_t step) const noexcept {
  return (static_cast<std::size_t>(team_.rank) + 2 * ranks_ - step) % ranks_;
}

Steps SspRing::steps(Operands operands) {
  ++clock_;
  status_ = {.clock = clock_, .oldest = clock_, .own = clock_, .ranks = team_.size, .bytes = operands.bytes};
  for (WeakPortion& portion : portions_) portion.oldest = portion.own = clock_;
  team_.wire->progress();  // who never waits takes what has come, too
  // The sources of the call before: a message may leave its sender only once the receiver makes progress.
  if (!team_.wire->are_sources_free()) {
    const std::uint64_t begin = clock::ticks();
    co_await released(*team_.wire);
    count_wait(begin);
  }
  const auto* const send_buffer = static_cast<const std::byte*>(operands.send);
  auto* const receive = static_cast<std::byte*>(operands.receive);
  if (ranks_ == 1) {
    if (send_buffer != receive && operands.bytes != 0) std::memcpy(receive, send_buffer, operands.bytes);
    tell_deposited(operands);
    co_return;
  }

  const std::size_t header_bytes = shape_.header_bytes();
  for (Portion sent{0, 0}; sent.in_part < per_part_; ++sent.in_part) {
    const std::size_t block = block_at(sent);
    if (!shape_.is_sent(block)) continue;
    const std::size_t from = shape_.block_begin(block) * shape_.element_bytes;
    const std::size_t bytes = shape_.block_begin(block + 1) * shape_.element_bytes - from;
    begin_block(source(sent));
    if (bytes != 0) std::memcpy(source(sent) + header_bytes, send_buffer + from, bytes);
    send(sent, source(sent), block);
  }
  tell_deposited(operands);

  for (Portion taken{0, 0}; taken.step < shape_.steps(); ++taken.step)
    for (taken.in_part = 0; taken.in_part < per_part_; ++taken.in_part) {
      const Portion next{taken.step + 1, taken.in_part};
      const std::size_t block = block_at(next);
      if (!shape_.is_sent(block)) continue;

      std::uint64_t number = slots_.usable(*team_.wire, id_of(taken), clock_);
      if (number == 0) {
        const std::uint64_t begin = clock::ticks();
        co_await until([&] { return (number = slots_.usable(*team_.wire, id_of(taken), clock_)) != 0; },
                       (team_.rank + team_.size - 1) % team_.size);
        count_wait(begin);
      }
      const std::byte* message = team_.wire->segment() + slots_.offset(id_of(taken), number);
      const std::size_t first = shape_.block_begin(block);
      const std::size_t elements = shape_.block_begin(block + 1) - first;
      const std::size_t from = first * shape_.element_bytes;
      std::uint64_t own = clock_;
      if (next.step < ranks_) {
        std::byte* const sum = source(next);
        std::memcpy(sum, message, header_bytes);
        add_own(sum, next.step + 1);
        if (elements != 0)
          operands.reduction->combine(*operands.reduction, message + header_bytes, send_buffer + from,
                                      sum + header_bytes, elements);
        message = sum;
      } else {
        own = clock_at(message, next.step - ranks_);
      }
      if (next.step + 1 >= ranks_) {
        if (elements != 0) std::memcpy(receive + from, message + header_bytes, elements * shape_.element_bytes);
        note(block, oldest_in(message), own);
      }
      if (next.step < shape_.steps()) send(next, message, block);
    }
}

void SspRing::begin_block(std::byte* message) const noexcept {
  std::memcpy(message, &clock_, sizeof clock_);
  add_own(message, 1);
}

// This rank is the last of so many whose contributions are in the message.
void SspRing::add_own(std::byte* message, std::size_t ranks) const noexcept {
  const std::uint64_t age = std::min(clock_ - oldest_in(message), shape_.slack);
  std::fill(ranks_up_to(message) + age, ranks_up_to(message) + shape_.slack, static_cast<std::uint32_t>(ranks));
}

// Of the contribution of a rank, by its position after the one that the block began at.
std::uint64_t SspRing::clock_at(const std::byte* message, std::size_t position) const noexcept {
  const std::uint32_t* const begin = ranks_up_to(message);
  const auto* const found = std::upper_bound(begin, begin + shape_.slack, position);
  return oldest_in(message) + static_cast<std::uint64_t>(found - begin);
}

void SspRing::note(std::size_t block, std::uint64_t oldest, std::uint64_t own) noexcept {
  portions_[block].oldest = oldest;
  portions_[block].own = own;
  status_.own = std::min(status_.own, own);
  status_.oldest = std::min(status_.oldest, oldest);
}

void SspRing::send(const Portion& portion, const std::byte* message, std::size_t block) noexcept {
  const std::size_t elements = shape_.block_begin(block + 1) - shape_.block_begin(block);
  team_.wire->write_notify((team_.rank + 1) % team_.size, slots_.offset(id_of(portion), clock_), message,
                           shape_.header_bytes() + elements * shape_.element_bytes, id_of(portion), clock_);
}

namespace {

constexpr Parameter parameters[] = {
    slack_parameter,
    {.name = "chunk_bytes",
     .fallback = 262144,
     .lowest = 1024,
     .highest = 1 << 30,
     .help = "bytes that travel at a time; a contribution's clock may differ from one such block to the next"},
};

SspRing::Shape shape_of(const WeakRequest& request) noexcept {
  return {.ranks = request.ranks,
          .count = request.count,
          .element_bytes = request.element_bytes,
          .slack = static_cast<std::uint64_t>(request.values[0]),
          .chunk_bytes = static_cast<std::size_t>(request.values[1])};
}

constexpr WeakDescriptor descriptor = {
    .collective = WeakCollective::ssp_allreduce,
    .name = "ssp_ring",
    .summary = "reduce-scatter and allgather around a ring of stale partial results; 2(p-1)/p S bytes a rank",
    .source = "Iakymchuk et al. 2021, sections III-A, IV-A and VII",
    .commutative_only = true,
    .parameters = parameters,
    .segment = [](const WeakRequest& request) { return shape_of(request).segment(); },
    .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
      return std::make_unique<SspRing>(team, shape_of(request));
    },
};

const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
