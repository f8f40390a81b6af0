// From where in the program the calls of one collective and one class of sizes come, as all ranks of a communicator see
// it. Where a rank calls from is its own knowledge, and others may make the same call elsewhere: a place is what all
// ranks call from together, each from its own call site.
//
// Places are known ahead where they come in turn: if the last calls of every rank had the same period, the next ones
// will most likely have it, too. Each rank notes the call sites of its calls; now and then, with what else they
// exchange, the ranks find the period that all of them have, and number its places by the calls, which are the same on
// all ranks. From then on until the next exchange the place of a call is a function of its number alone. A rank that
// comes from elsewhere than expected changes nothing by itself: the exchange shows that there is no such period any
// more, or another one. It knows no MPI, and is tested without (tests/unit/site_period.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace papaya::tuning {

class SitePeriod {
 public:
  static constexpr std::int64_t longest = 16;          // period, in calls
  static constexpr std::int64_t window = 2 * longest;  // calls that show one

  // This rank makes call number `call` of these from `site`, a number of its own.
  void note(std::int64_t call, std::uint64_t site) noexcept;
  // All calls are to be noted. If not, this rank has one site for all, and only some calls are looked at.
  bool notes_all() const noexcept { return !is_one_site_; }

  // Which call sites that rules are for a site of this rank's is, a bit for each.
  using Named = std::function<std::uint64_t(std::uint64_t site)>;
  // Before call number `calls`: this rank's sites are others than when they were last exchanged, as far as it matters.
  // If so on any rank, all exchange: the bits of all ranks, or'ed, then their marks, xor'ed.
  bool has_news(std::int64_t calls, const Named& named) const;
  std::vector<std::uint64_t> bits(std::int64_t calls, const Named& named) const;
  std::vector<std::uint64_t> marks(std::int64_t calls, std::span<const std::uint64_t> bits_of_all, int rank) const;
  void take(std::int64_t calls, std::span<const std::uint64_t> bits_of_all, std::span<const std::uint64_t> marks_of_all,
            const Named& named);

  // What all ranks know. Equal marks: the same place. `named`: the call sites of rules that some rank calls from there.
  struct Place {
    std::uint64_t mark = 0;
    std::uint64_t named = 0;
    bool operator==(const Place&) const = default;
  };
  std::int64_t period() const noexcept { return period_; }  // 0: there is none
  const Place& place_of(std::int64_t call) const noexcept { return places_[static_cast<std::size_t>(call % period_)]; }

  // This rank's site there, when the period was found.
  std::uint64_t site_of(std::int64_t call) const noexcept {
    return expected_[static_cast<std::size_t>(call % period_)];
  }

 private:
  std::int64_t own_period(std::int64_t calls) const noexcept;
  std::uint64_t failing(std::int64_t calls) const noexcept;
  std::uint64_t last_site(std::int64_t call) const noexcept;
  std::uint64_t state(std::int64_t calls, const Named& named) const;

  // This rank's.
  std::array<std::uint64_t, window> sites_{};  // by number of the call
  std::int64_t from_ = 0;                      // calls that were noted without a gap,
  std::int64_t to_ = 0;                        // the last one excluded
  bool is_one_site_ = false;
  std::uint64_t only_site_ = 0;  // then
  std::uint64_t told_ = 0;       // state() at the last exchange
  std::array<std::uint64_t, longest> expected_{};

  // Equal on all ranks.
  std::int64_t period_ = 0;
  std::array<Place, longest> places_{};
};

}  // namespace papaya::tuning
