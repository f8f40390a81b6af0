#include "algorithms/weak/running_total.hpp"

#include <algorithm>
#include <cstring>

namespace papaya {

RunningTotal::RunningTotal(std::size_t count, const Reduction& reduction, std::uint64_t slack)
    : count_(count), reduction_(reduction), keeps_(slack > 0), total_(count * reduction.element_bytes) {}

const std::byte* RunningTotal::add(const void* contribution) {
  const auto* const mine = static_cast<const std::byte*>(contribution);
  ++clock_;
  if (count_ == 0) return total_.data();
  if (clock_ == 1)
    std::memcpy(total_.data(), mine, total_.size());
  else
    reduction_.combine(reduction_, total_.data(), mine, total_.data(), count_);
  if (!keeps_) return total_.data();
  if (unused_.empty()) unused_.emplace_back(total_.size());
  kept_.push_back(std::move(unused_.back()));
  unused_.pop_back();
  std::memcpy(kept_.back().data(), mine, total_.size());
  return total_.data();
}

void RunningTotal::complete(const Weak& algorithm, std::byte* result) {
  if (!keeps_ || count_ == 0) return;
  std::uint64_t oldest = algorithm.status().own;
  const std::span<const WeakPortion> portions = algorithm.portions();
  if (portions.empty()) complete(result, 0, count_, oldest);
  for (std::size_t i = 0; i < portions.size(); ++i) {
    complete(result, portions[i].begin, i + 1 < portions.size() ? portions[i + 1].begin : count_, portions[i].own);
    oldest = std::min(oldest, portions[i].own);
  }
  // Later results lack no older ones: an algorithm never goes back to an older contribution.
  while (kept_.size() > clock_ - oldest) {
    unused_.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
}

void RunningTotal::complete(std::byte* result, std::size_t begin, std::size_t end, std::uint64_t own) const {
  const std::size_t offset = begin * reduction_.element_bytes;
  for (std::uint64_t clock = own + 1; begin < end && clock <= clock_; ++clock) {
    const std::vector<std::byte>& one = kept_[kept_.size() - static_cast<std::size_t>(clock_ - clock) - 1];
    reduction_.combine(reduction_, result + offset, one.data() + offset, result + offset, end - begin);
  }
}

}  // namespace papaya
