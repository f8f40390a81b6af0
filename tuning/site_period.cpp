#include "tuning/site_period.hpp"

#include <algorithm>
#include <bit>

namespace papaya::tuning {

namespace {

// Of what is or'ed: a bit for each period that a rank's calls do not have, the shortest first, then what the sites of
// the last calls are, by their numbers.
constexpr std::size_t periods = 0;
constexpr std::size_t named_sites = 1;
constexpr std::size_t words = named_sites + SitePeriod::longest;
constexpr std::uint64_t all_periods = (std::uint64_t{1} << SitePeriod::longest) - 1;

constexpr std::uint64_t one_unnamed_site = 0;  // a state
constexpr std::uint64_t no_period = 1;         // another

constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

std::size_t index_of(std::int64_t call, std::int64_t among) noexcept {
  return static_cast<std::size_t>(call % among);
}

// 0: none.
std::int64_t shortest(std::uint64_t failing) noexcept {
  const int period = std::countr_one(failing) + 1;
  return period > SitePeriod::longest ? 0 : period;
}

}  // namespace

void SitePeriod::note(std::int64_t call, std::uint64_t site) noexcept {
  if (call != to_) from_ = call;
  to_ = call + 1;
  sites_[index_of(call, window)] = site;
  if (is_one_site_) {
    is_one_site_ = site == only_site_;
  } else if (to_ - from_ >= window && to_ % window == 0) {
    is_one_site_ = std::all_of(sites_.begin(), sites_.end(), [&](std::uint64_t one) { return one == site; });
    only_site_ = site;
  }
}

std::uint64_t SitePeriod::last_site(std::int64_t call) const noexcept {
  return is_one_site_ ? only_site_ : sites_[index_of(call, window)];
}

// Of the last calls: twice as many as a period has.
std::uint64_t SitePeriod::failing(std::int64_t calls) const noexcept {
  if (is_one_site_) return 0;
  const std::int64_t known = to_ == calls ? std::min(to_ - from_, window) : 0;
  std::uint64_t bits = 0;
  for (std::int64_t period = 1; period <= longest; ++period) {
    bool holds = known >= std::max(2 * period, longest);
    for (std::int64_t call = calls - known + period; call < calls && holds; ++call)
      holds = sites_[index_of(call, window)] == sites_[index_of(call - period, window)];
    if (!holds) bits |= std::uint64_t{1} << (period - 1);
  }
  return bits;
}

std::int64_t SitePeriod::own_period(std::int64_t calls) const noexcept {
  return shortest(failing(calls));
}

// What matters of it to others, as one number.
std::uint64_t SitePeriod::state(std::int64_t calls, const Named& named) const {
  const std::int64_t period = own_period(calls);
  if (period == 0) return no_period;
  if (period == 1 && named(last_site(calls - 1)) == 0) return one_unnamed_site;
  std::uint64_t all = static_cast<std::uint64_t>(period);
  for (std::int64_t place = 0; place < period; ++place) {
    const std::int64_t call = calls - 1 - (calls - 1 - place) % period;
    all = mix(all + last_site(call));
  }
  return all | 2;
}

bool SitePeriod::has_news(std::int64_t calls, const Named& named) const {
  const std::uint64_t now = state(calls, named);
  return now != told_ && (now != no_period || period_ != 0);
}

std::vector<std::uint64_t> SitePeriod::bits(std::int64_t calls, const Named& named) const {
  std::vector<std::uint64_t> all(words, 0);
  all[periods] = failing(calls);
  if (shortest(all[periods]) != 0)
    for (std::int64_t call = calls - longest; call < calls; ++call)
      all[named_sites + index_of(call, longest)] = named(last_site(call));
  return all;
}

std::vector<std::uint64_t> SitePeriod::marks(std::int64_t calls, std::span<const std::uint64_t> bits_of_all,
                                             int rank) const {
  const std::int64_t period = shortest(bits_of_all[periods] & all_periods);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(period));
  for (std::int64_t call = calls - period; call < calls; ++call)
    all[index_of(call, period)] = mix(mix(static_cast<std::uint64_t>(rank) + 1) + last_site(call));
  return all;
}

void SitePeriod::take(std::int64_t calls, std::span<const std::uint64_t> bits_of_all,
                      std::span<const std::uint64_t> marks_of_all, const Named& named) {
  period_ = static_cast<std::int64_t>(marks_of_all.size());
  told_ = state(calls, named);
  for (std::int64_t call = calls - period_; call < calls; ++call) {
    const std::size_t place = index_of(call, period_);
    places_[place] = {marks_of_all[place], bits_of_all[named_sites + index_of(call, longest)]};
    expected_[place] = last_site(call);
  }
}

}  // namespace papaya::tuning
