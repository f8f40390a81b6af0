#include "algorithms/transport/deposit_arena.hpp"

#include <algorithm>
#include <bit>
#include <new>

namespace papaya {

namespace {

constexpr std::size_t least_slot_bytes = 4096;

}  // namespace

std::size_t DepositArena::bytes_for(std::size_t window_bytes, int ranks) noexcept {
  if (window_bytes < least_window_bytes) return 0;
  const std::size_t share =
      std::min(window_bytes / 2 / static_cast<std::size_t>(ranks), most_bytes) / granule_bytes * granule_bytes;
  return share < 2 * least_largest_bytes ? 0 : share;
}

std::size_t DepositArena::largest_for(std::size_t bytes, bool concurrent) noexcept {
  return std::clamp(std::bit_floor(bytes / (concurrent ? 4 : 2)), least_largest_bytes, most_largest_bytes);
}

bool DepositArena::open(const Area& area) noexcept {
  if (area.bytes == 0) return true;
  try {
    extents_.assign(area.bytes / granule_bytes, nullptr);
    present_.assign(extents_.size(), area.populate == nullptr);
  } catch (const std::bad_alloc&) {
    return false;
  }
  area_ = area;
  largest_bytes_ = largest_for(area.bytes, area.concurrent);
  return true;
}

void DepositArena::close() noexcept {
  for (Extent* extent = retired_; extent != nullptr;) {
    Extent* const next = extent->next;
    free(extent);
    extent = next;
  }
  retired_ = nullptr;
  kept_.clear();
  area_ = {};
}

bool DepositArena::keep(const std::byte* begin, std::int64_t offset, std::size_t bytes) noexcept {
  if (!exists()) return false;
  const std::lock_guard lock(mutex_);
  reap();
  for (const Extent* extent = retired_; extent != nullptr; extent = extent->next)
    if (extent->readers.first >= begin && extent->readers.first < begin + bytes) {
      try {
        kept_.push_back({begin, offset, bytes});
      } catch (const std::bad_alloc&) {
        // The space stays taken, which harms nobody.
      }
      return true;
    }
  return false;
}

DepositArena::Answer Loan::ask(std::size_t bytes) noexcept {
  const std::size_t slot_bytes = std::bit_ceil(std::max(bytes, least_slot_bytes));
  if (slot_bytes * slots_ > arena_->largest_bytes()) {
    give_back(needed_);
    return DepositArena::Answer::none;
  }
  return arena_->lend(*this, slot_bytes, bytes);
}

bool Loan::borrow_anew(std::size_t bytes, wait::Policy& policy, wait::Site& site) noexcept {
  auto answer = DepositArena::Answer::soon;
  const auto settled = [&] {
    if (answer == DepositArena::Answer::soon) answer = ask(bytes);
    return answer != DepositArena::Answer::soon;
  };
  // Those who still read are in a call that this rank has left: they need nothing of it.
  if (!settled())
    policy.until(
        site, arena_->never_rung_, 1, settled, [] { return false; }, nullptr);
  return answer == DepositArena::Answer::lent;
}

DepositArena::Answer DepositArena::lend(Loan& loan, std::size_t slot_bytes, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  ++lends_;
  reap();
  if (loan.state_.load(std::memory_order_relaxed) == Loan::State::idle)
    loan.state_.store(Loan::State::in_use, std::memory_order_relaxed);
  if (loan.extent_ != nullptr && slot_bytes <= loan.slot_bytes_) {
    loan.settle(area_.offset + loan.extent_->first * granule_bytes, bytes);
    return Answer::lent;
  }
  if (loan.extent_ != nullptr) retire(loan);
  const std::size_t count = std::max(slot_bytes * loan.slots_ / granule_bytes, std::size_t{1});
  std::size_t first = 0;
  if (const Answer answer = find(count, loan.lifetime_, first); answer != Answer::lent) return answer;
  auto* const extent = new (std::nothrow) Extent{.first = first, .count = count, .owner = &loan};
  if (extent == nullptr) return Answer::none;
  std::fill_n(extents_.begin() + static_cast<std::ptrdiff_t>(first), count, extent);
  cursor_ = first + count;
  loan.extent_ = extent;
  loan.slot_bytes_ = slot_bytes;
  loan.settle(area_.offset + first * granule_bytes, bytes);
  loan.state_.store(Loan::State::in_use, std::memory_order_relaxed);
  return Answer::lent;
}

// How often the extents have been taken into use again, which needs no mutex. Acquire: partner of the release in
// reclaim, so that who has been counted is seen to have left the extent before.
std::uint64_t DepositArena::uses() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < extents_.size();) {
    const Extent* const extent = extents_[at];
    if (extent != nullptr && extent->owner != nullptr) sum += extent->owner->uses_.load(std::memory_order_acquire);
    at = extent == nullptr ? at + 1 : extent->first + extent->count;
  }
  return sum;
}

// Other threads go from one extent to another while this one looks: a thread that leaves an extent which has been
// looked at for one that has not would count twice, and all could seem to be in use. If none has gone anywhere, what
// was seen was so at one moment.
DepositArena::Answer DepositArena::find(std::size_t count, Lifetime lifetime, std::size_t& first) noexcept {
  const bool is_unbounded = lifetime == Lifetime::unbounded;
  // Who finds nothing falls back, and does not look again at each call.
  if (is_unbounded && count >= searched_count_ && lends_ < next_search_) return Answer::none;
  Answer answer = Answer::none;
  for (std::uint64_t before = is_concurrent() ? uses() : 0;;) {
    answer = search(count, lifetime, first);
    // The deposits of rooted calls stay without limit: there nothing is promised.
    if (answer != Answer::none || is_unbounded || !is_concurrent()) break;
    const std::uint64_t after = uses();
    if (after == before) break;
    before = after;
  }
  if (is_unbounded && answer == Answer::none) {
    searched_count_ = count;
    next_search_ = lends_ + 16;
  }
  return answer;
}

// Memory that nobody has, at best pages that are there; else what its teams need no more, the oldest first.
DepositArena::Answer DepositArena::search(std::size_t count, Lifetime lifetime, std::size_t& first) noexcept {
  const bool is_unbounded = lifetime == Lifetime::unbounded;
  const std::size_t begin =
      is_unbounded ? unbounded_from(area_.bytes, largest_bytes_, area_.concurrent) / granule_bytes : 0;
  const std::size_t lowest = (begin + count - 1) / count;
  const std::size_t positions = extents_.size() / count - std::min(extents_.size() / count, lowest);
  const std::size_t start = std::max((cursor_ + count - 1) / count, lowest) - lowest;
  const auto at = [&](std::size_t i) { return first = (lowest + (start + i) % positions) * count; };
  for (std::size_t i = 0; i < positions; ++i)
    if (is_free(at(i), count) && is_present(first, count)) return Answer::lent;
  for (std::size_t i = 0; i < positions; ++i)
    if (is_free(at(i), count) && make_present(first, count)) return Answer::lent;
  for (const bool more_pages : {false, true}) {
    Answer answer = Answer::none;
    for (std::size_t i = 0; i < positions; ++i) {
      if (is_present(at(i), count) == more_pages || (more_pages && !make_present(first, count))) continue;
      const State state = make_free(first, count);
      if (state == State::returned) return Answer::lent;
      if (state == State::awaited) answer = Answer::soon;
    }
    if (answer == Answer::soon) return answer;
  }
  return Answer::none;
}

bool DepositArena::is_free(std::size_t first, std::size_t count) const noexcept {
  const auto begin = extents_.begin() + static_cast<std::ptrdiff_t>(first);
  return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(count),
                     [](const Extent* extent) { return extent == nullptr; });
}

// Takes these granules from the teams that have them, if all of those can do without. What may stay unread is not
// awaited: it is in use until it has been read.
DepositArena::State DepositArena::make_free(std::size_t first, std::size_t count) noexcept {
  State state = State::returned;
  std::size_t claimed = first;  // up to there
  const auto step = [&](std::size_t at) {
    return extents_[at] == nullptr ? at + 1 : extents_[at]->first + extents_[at]->count;
  };
  for (; claimed < first + count && state != State::in_use; claimed = step(claimed)) {
    const Extent* const extent = extents_[claimed];
    if (extent == nullptr) continue;
    if (extent->owner == nullptr) {
      state =
          extent->lifetime == Lifetime::unbounded ? State::in_use : State::awaited;  // else reap() would have freed it
    } else if (!extent->owner->claim()) {
      state = State::in_use;
      break;
    } else if (!extent->owner->readers_.have_released(extent->owner->needed_)) {
      state = extent->owner->lifetime_ == Lifetime::unbounded ? State::in_use : State::awaited;
    }
  }
  for (std::size_t at = first; at < claimed;) {
    Extent* const extent = extents_[at];
    at = step(at);
    if (extent == nullptr || extent->owner == nullptr) continue;
    Loan& loan = *extent->owner;
    if (state != State::returned) {
      loan.state_.store(Loan::State::idle,
                        std::memory_order_release);  // partner: the compare-exchange of the next claim
      continue;
    }
    loan.extent_ = nullptr;
    loan.slot_bytes_ = 0;
    loan.state_.store(Loan::State::none, std::memory_order_relaxed);  // its thread comes by the mutex
    free(extent);
  }
  return state;
}

bool DepositArena::is_present(std::size_t first, std::size_t count) const noexcept {
  const auto begin = present_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  return std::find(begin, end, false) == end;
}

// What is there is not asked for again, and after a refusal not soon: to ask takes longer than a call.
bool DepositArena::make_present(std::size_t first, std::size_t count) noexcept {
  const std::size_t promised = promised_of(area_.bytes) / granule_bytes;
  const auto is_same = [&](std::size_t a, std::size_t b) {
    return present_[a] == present_[b] && (a < promised) == (b < promised);
  };
  for (std::size_t begin = first; begin < first + count;) {
    std::size_t end = begin + 1;
    while (end < first + count && is_same(begin, end)) ++end;
    if (!present_[begin]) {
      const bool is_promised = begin < promised;
      std::uint64_t& next_try = next_try_[is_promised ? 1 : 0];
      if (lends_ < next_try) return false;
      if (!area_.populate(area_.window + area_.offset + begin * granule_bytes, (end - begin) * granule_bytes,
                          is_promised)) {
        next_try = lends_ + 64;
        return false;
      }
      std::fill(present_.begin() + static_cast<std::ptrdiff_t>(begin),
                present_.begin() + static_cast<std::ptrdiff_t>(end), true);
    }
    begin = end;
  }
  return true;
}

void DepositArena::end(Loan& loan) noexcept {
  const std::lock_guard lock(mutex_);
  if (loan.extent_ != nullptr) retire(loan);
  reap();
}

// The extent is the team's no more, and the arena's again once all members have released it.
void DepositArena::retire(Loan& loan) noexcept {
  Extent* const extent = loan.extent_;
  loan.extent_ = nullptr;
  loan.slot_bytes_ = 0;
  loan.state_.store(Loan::State::none, std::memory_order_relaxed);
  extent->owner = nullptr;
  extent->readers = loan.readers_;
  extent->needed = loan.needed_;
  extent->lifetime = loan.lifetime_;
  extent->next = retired_;
  retired_ = extent;
}

void DepositArena::reap() noexcept {
  for (Extent** link = &retired_; *link != nullptr;) {
    Extent* const extent = *link;
    if (!extent->readers.have_released(extent->needed)) {
      link = &extent->next;
      continue;
    }
    *link = extent->next;
    free(extent);
  }
  std::erase_if(kept_, [this](const Kept& kept) {
    for (const Extent* extent = retired_; extent != nullptr; extent = extent->next)
      if (extent->readers.first >= kept.begin && extent->readers.first < kept.begin + kept.bytes) return false;
    if (area_.release != nullptr) area_.release(kept.offset, kept.bytes);
    return true;
  });
}

void DepositArena::free(Extent* extent) noexcept {
  std::fill_n(extents_.begin() + static_cast<std::ptrdiff_t>(extent->first), extent->count, nullptr);
  delete extent;
}

}  // namespace papaya
