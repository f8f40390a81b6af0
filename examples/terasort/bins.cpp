#include "bins.hpp"

#include <algorithm>
#include <bit>

namespace terasort {

namespace {

constexpr std::uint64_t most_in_piece = 512;

}  // namespace

Bins::Bins(const std::vector<Key>& bounds, std::uint64_t expected, Times& times)
    : bounds_(bounds),
      in_piece_(static_cast<std::uint32_t>(std::bit_floor(std::clamp<std::uint64_t>(expected / 8, 1, most_in_piece)))),
      least_sorted_(std::max<std::uint64_t>(expected / 2, 1)),
      most_sorted_(2 * expected),
      times_(times),
      bins_(bounds.size() + 1) {}

void Bins::grow(Bin& bin) {
  if (stored_ % in_block == 0) store_.emplace_back(in_block);
  bin.pieces.push_back(stored_);
  bin.next = store_.back().data() + stored_ % in_block;
  bin.end = bin.next + in_piece_;
  stored_ += in_piece_;
}

void Bins::add(std::span<const Record> records) {
  for (const Record& record : records) {
    Bin& bin = bins_[bounds_.part_of(record.key())];
    if (bin.next == bin.end) grow(bin);
    *bin.next++ = record;
    ++bin.size;
  }
}

void Bins::sort_from(const Bin& bin, std::uint64_t first, std::vector<Place>& order) {
  const Within phase(times_, Phase::sort);
  order.reserve(bin.size);
  for (std::uint64_t i = first; i < bin.size; ++i) {
    const auto index = static_cast<std::uint32_t>(bin.pieces[i / in_piece_] + i % in_piece_);
    const Key key = at(index).key();
    order.push_back({key.high, index, key.low});
  }
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(middle, order.end());
  std::inplace_merge(order.begin(), middle, order.end());
}

bool Bins::sort_one() {
  for (std::size_t seen = 0; seen < bins_.size(); ++seen) {
    Bin& bin = bins_[looked_];
    looked_ = (looked_ + 1) % bins_.size();
    const std::uint64_t added = bin.size - bin.order.size();
    if (added < least_sorted_ || bin.size > most_sorted_) continue;
    sort_from(bin, bin.order.size(), bin.order);
    return true;
  }
  return false;
}

}  // namespace terasort
