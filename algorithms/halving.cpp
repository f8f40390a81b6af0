#include "algorithms/halving.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace papaya {

namespace {

// Notifications of a chunk, by their writer: each is set once a chunk. Chunks that are under way together have their
// own.
enum Notification : int { folded, unfolded, first_half };

struct Range {
  std::size_t low;
  std::size_t high;
  std::size_t size() const noexcept { return high - low; }
};

// What a member has before each step and after the last one, and what it gives in each.
struct Halves {
  Range kept[33];
  Range given[32];

  Halves(std::size_t count, int steps, int me) noexcept {
    kept[0] = {0, count};
    for (int k = 0; k < steps; ++k) {
      const Range lower = {kept[k].low, kept[k].low + kept[k].size() / 2};
      const Range upper = {lower.high, kept[k].high};
      const bool keeps_upper = (me >> k & 1) != 0;
      kept[k + 1] = keeps_upper ? upper : lower;
      given[k] = keeps_upper ? lower : upper;
    }
  }
};

}  // namespace

Halving::Shape::Shape(int all, std::size_t chunk, int under_way)
    : participants(all),
      members(static_cast<int>(std::bit_floor(static_cast<unsigned>(all)))),
      extra(all - members),
      steps(std::bit_width(static_cast<unsigned>(members)) - 1),
      depth(under_way),
      chunk_bytes(in_lines(chunk)) {
  std::size_t half = chunk_bytes;
  for (int k = 0; k < steps; ++k) {
    halves.push_back(bank_bytes);
    half = half / 2 + 1;  // an element more, at most, than the half
    bank_bytes += in_lines(half + most_element_bytes);
  }
  results = bank_bytes;
  bank_bytes += chunk_bytes;
}

SegmentShape Halving::Shape::segment() const {
  const auto banks = static_cast<std::size_t>(2 * depth);
  return {std::max<std::size_t>(banks * bank_bytes, 64), depth * (first_half + 2 * steps)};
}

std::size_t Halving::Shape::largest_doubled() const noexcept {
  return results / static_cast<std::size_t>(std::max(steps, 1)) / 64 * 64;
}

Steps Halving::chunk(std::uint64_t number, const std::byte* operand, std::byte* result, std::size_t count,
                     const Reduction& reduction) {
  const std::size_t element = reduction.element_bytes;
  const std::size_t bytes = count * element;
  const std::size_t bank =
      static_cast<std::size_t>(number % static_cast<std::uint64_t>(2 * shape_.depth)) * shape_.bank_bytes;
  const int first_id =
      static_cast<int>(number % static_cast<std::uint64_t>(shape_.depth)) * (first_half + 2 * shape_.steps);
  const auto half_id = [&](int k) { return first_id + first_half + k; };
  const auto doubled_id = [&](int k) { return first_id + first_half + shape_.steps + k; };
  const auto peer = [&](int participant) { return peers_[static_cast<std::size_t>(participant)]; };
  const std::byte* const results = wire_.segment() + bank + shape_.results;
  const bool is_folded = me_ < 2 * shape_.extra;
  const int me = member_of(me_);

  if (is_folded) {
    const int other = peer(me_ ^ 1);
    if (me < 0) {
      const bool is_in_place = wire_.redirect(bank + shape_.results, bytes, result);
      wire_.write_notify(other, bank + shape_.results, operand, bytes, first_id + folded, number);
      co_await heard(wire_, first_id + unfolded, number, other);
      if (!is_in_place) std::memcpy(result, results, bytes);
      co_return;
    }
    co_await heard(wire_, first_id + folded, number, other);
    reduction.combine(reduction, results, operand, result, count);
    operand = result;
  }

  if (bytes <= std::min(recursive_doubling_bytes_, shape_.largest_doubled())) {
    for (int k = 0; k < shape_.steps; ++k) {
      const int other = peer(participant_of(me ^ (1 << k)));
      const std::size_t offset = bank + static_cast<std::size_t>(k) * in_lines(bytes);
      wire_.write_notify(other, offset, operand, bytes, half_id(k), number);
      co_await heard(wire_, half_id(k), number, other);
      co_await released(wire_);
      const std::byte* const theirs = wire_.segment() + offset;
      const bool is_upper = (me >> k & 1) != 0;
      reduction.combine(reduction, is_upper ? theirs : operand, is_upper ? operand : theirs, result, count);
      operand = result;
    }
    if (operand != result) std::memcpy(result, operand, bytes);
  } else {
    const Halves halves(count, shape_.steps, me);
    bool is_in_place = false;
    for (int k = 0; k < shape_.steps; ++k) {  // what is given comes back as a result
      const Range& given = halves.given[k];
      is_in_place = wire_.redirect(bank + shape_.results + given.low * element, given.size() * element,
                                   result + given.low * element);
    }
    for (int k = 0; k < shape_.steps; ++k) {
      const int other = peer(participant_of(me ^ (1 << k)));
      const bool keeps_upper = (me >> k & 1) != 0;
      const Range& given = halves.given[k];
      const Range& kept = halves.kept[k + 1];
      const std::size_t offset = bank + shape_.halves[static_cast<std::size_t>(k)];
      wire_.write_notify(other, offset, operand + given.low * element, given.size() * element, half_id(k), number);
      co_await heard(wire_, half_id(k), number, other);
      const std::byte* const theirs = wire_.segment() + offset;
      const std::byte* const mine = operand + kept.low * element;
      reduction.combine(reduction, keeps_upper ? theirs : mine, keeps_upper ? mine : theirs,
                        result + kept.low * element, kept.size());
      operand = result;
    }
    if (shape_.steps == 0 && operand != result) std::memcpy(result, operand, bytes);
    for (int k = shape_.steps - 1; k >= 0; --k) {
      const int other = peer(participant_of(me ^ (1 << k)));
      const std::size_t mine = halves.kept[k + 1].low * element;
      wire_.write_notify(other, bank + shape_.results + mine, result + mine, halves.kept[k + 1].size() * element,
                         doubled_id(k), number);
      co_await heard(wire_, doubled_id(k), number, other);
      const std::size_t theirs = halves.given[k].low * element;
      if (!is_in_place) std::memcpy(result + theirs, results + theirs, halves.given[k].size() * element);
    }
  }
  if (is_folded) wire_.write_notify(peer(me_ ^ 1), bank + shape_.results, result, bytes, first_id + unfolded, number);
}

}  // namespace papaya
