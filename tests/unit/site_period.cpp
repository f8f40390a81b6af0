// From where calls come, as all ranks of a communicator see it: each rank has a SitePeriod of its own, and here they
// share nothing but what is exchanged.
#include "tuning/site_period.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace papaya::tuning {

namespace {

// Each rank's sites, call by call: letters.
using Sites = std::vector<std::string>;

class Run {
 public:
  explicit Run(std::size_t ranks, std::uint64_t named_site = 0) : ranks_(ranks), named_site_(named_site) {}

  // One more call, in which the ranks exchange before they make it, if they are to.
  void make(const std::vector<char>& sites, bool is_exchange_due) {
    if (is_exchange_due) exchange();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (ranks_[rank].notes_all() || is_checked_) ranks_[rank].note(calls_, static_cast<std::uint64_t>(sites[rank]));
    ++calls_;
    REQUIRE(agree());
  }

  // From the first letter of each on, again and again; the ranks exchange every so many calls, and look at eight before
  // that as trials do.
  void make(const Sites& sites, std::int64_t calls, std::int64_t every) {
    for (std::int64_t i = 0; i < calls; ++i) {
      std::vector<char> now;
      for (const std::string& of_rank : sites) now.push_back(of_rank[static_cast<std::size_t>(i) % of_rank.size()]);
      is_checked_ = calls_ % every >= every - 8;
      make(now, calls_ > 0 && calls_ % every == 0);
    }
  }

  void exchange() {
    const auto named = [&](std::uint64_t site) { return std::uint64_t{site == named_site_ ? 1u : 0u}; };
    bool has_news = false;
    for (const SitePeriod& one : ranks_) has_news = has_news || one.has_news(calls_, named);
    if (!has_news) return;
    ++exchanges;
    std::vector<std::uint64_t> bits = ranks_[0].bits(calls_, named);
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
      const std::vector<std::uint64_t> mine = ranks_[rank].bits(calls_, named);
      REQUIRE(mine.size() == bits.size());
      for (std::size_t i = 0; i < bits.size(); ++i) bits[i] |= mine[i];
    }
    std::vector<std::uint64_t> marks = ranks_[0].marks(calls_, bits, 0);
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
      const std::vector<std::uint64_t> mine = ranks_[rank].marks(calls_, bits, static_cast<int>(rank));
      REQUIRE(mine.size() == marks.size());
      for (std::size_t i = 0; i < marks.size(); ++i) marks[i] ^= mine[i];
    }
    for (SitePeriod& one : ranks_) one.take(calls_, bits, marks, named);
  }

  bool agree() const {
    for (const SitePeriod& one : ranks_) {
      if (one.period() != first().period()) return false;
      for (std::int64_t i = 0; i < first().period(); ++i)
        if (!(one.place_of(i) == first().place_of(i))) return false;
    }
    return true;
  }

  // The places of the next calls, as letters: the first one's is a.
  std::string places(std::int64_t calls) const {
    std::string text;
    std::vector<std::uint64_t> marks;
    for (std::int64_t call = calls_; call < calls_ + calls && first().period() > 0; ++call) {
      const std::uint64_t mark = first().place_of(call).mark;
      std::size_t i = 0;
      while (i < marks.size() && marks[i] != mark) ++i;
      if (i == marks.size()) marks.push_back(mark);
      text += static_cast<char>('a' + i);
    }
    return text;
  }
  // Which of them come from the named site.
  std::string named(std::int64_t calls) const {
    std::string text;
    for (std::int64_t call = calls_; call < calls_ + calls && first().period() > 0; ++call)
      text += first().place_of(call).named != 0 ? 'n' : '-';
    return text;
  }

  const SitePeriod& first() const { return ranks_.front(); }
  const SitePeriod& of(std::size_t rank) const { return ranks_[rank]; }
  std::int64_t calls() const { return calls_; }
  int exchanges = 0;

 private:
  std::vector<SitePeriod> ranks_;
  std::uint64_t named_site_;
  std::int64_t calls_ = 0;
  bool is_checked_ = false;
};

}  // namespace

TEST_CASE("call sites: where all calls come from one place there is nothing to exchange, nor to note") {
  Run run(3);
  run.make({"A", "B", "A"}, 200, 32);
  CHECK(run.exchanges == 0);
  CHECK_FALSE(run.first().notes_all());
}

TEST_CASE("call sites: places in turn are found at the first exchange, and told once") {
  struct Case {
    Sites sites;
    std::int64_t period;
    std::string places;
    int exchanges = 1;
  };
  const Case cases[] = {
      {{"AAB", "AAB"}, 3, "aabaab"},          {{"AB", "C"}, 2, "abab"},  // one rank alone calls from two
      {{"ABAB", "ABAC"}, 4, "abac"},                                     // two places for one rank are one for another
      {{"AB", "ABC"}, 6, "abcdef"},                                      // the period that all have
      {{"AABB", "ABAB", "AAAB"}, 4, "abcd"},  {{"ABCDEFGHIJKLMNOP", "A"}, 16, "abcdefghijklmnop"},
      {{"ABCDEFGHIJKLMNOPQ", "A"}, 0, "", 0},  // too long
      {{"ABCDEF", "ABCDEFG"}, 0, ""},          // as is the period that both have
  };
  for (const Case& one : cases) {
    Run run(one.sites.size());
    run.make(one.sites, 48, 48);
    run.exchange();
    INFO(one.sites[0]);
    CHECK(run.first().period() == one.period);
    CHECK(run.places(static_cast<std::int64_t>(one.places.size())) == one.places);
    for (std::size_t rank = 0; rank < one.sites.size(); ++rank)
      for (std::int64_t call = run.calls(); one.period != 0 && call < run.calls() + 20; ++call)
        CHECK(run.of(rank).site_of(call) ==
              static_cast<std::uint64_t>(one.sites[rank][static_cast<std::size_t>(call) % one.sites[rank].size()]));
    run.exchange();
    CHECK(run.exchanges == one.exchanges);
  }
}

TEST_CASE("call sites: a rule is for calls that some rank makes from its site") {
  Run run(3, 'B');
  run.make({"AAC", "AAB", "AAC"}, 48, 48);
  run.exchange();
  CHECK(run.named(6) == "--n--n");
  // One place, which is named.
  Run whole(2, 'B');
  whole.make({"A", "B"}, 64, 32);
  CHECK(whole.exchanges == 1);
  CHECK(whole.first().period() == 1);
  CHECK(whole.named(3) == "nnn");
  CHECK_FALSE(whole.first().notes_all());
}

TEST_CASE("call sites: another order, and one without, are found by the exchange after it") {
  Run run(2, 'B');
  run.make({"AB", "AB"}, 64, 64);
  run.exchange();
  REQUIRE(run.named(4) == "-n-n");
  // One call more from elsewhere: the places lie otherwise.
  run.make({"C", "C"}, 1, 64);
  run.make({"AB", "AB"}, 63, 64);
  run.exchange();
  CHECK(run.first().period() == 2);
  CHECK(run.named(4) == "n-n-");
  // One rank alone comes from elsewhere, once.
  run.make({"BA", "BA"}, 60, 64);
  run.make({"C", "B"}, 1, 64);
  run.make({"A", "A"}, 1, 64);
  run.make({"BA", "BA"}, 2, 64);
  run.exchange();
  CHECK(run.first().period() == 0);
  run.make({"BA", "BA"}, 64, 64);
  run.exchange();
  CHECK(run.first().period() == 2);
  // All from one place again.
  run.make({"A", "A"}, 128, 64);
  run.exchange();
  CHECK(run.first().period() == 1);
  CHECK_FALSE(run.first().notes_all());
  // A rank that notes none but a few sees it by these.
  run.make({"A", "BC"}, 128, 64);
  run.exchange();
  CHECK(run.first().period() == 2);
}

TEST_CASE(
    "call sites: what is known never differs between ranks, whatever they call from, and holds where it repeats") {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const std::size_t ranks = 2 + random() % 3;
    Run run(ranks, 'B');
    for (int phase = 0; phase < 6; ++phase) {
      Sites sites(ranks);
      // Each rank of a period of its own, most the same; some have none.
      const std::size_t period = 1 + random() % 8;
      for (std::string& of_rank : sites) {
        const bool has_none = random() % 8 == 0;
        for (std::size_t i = 0; i < (has_none ? 500 : period); ++i) of_rank += static_cast<char>('A' + random() % 3);
      }
      const std::int64_t every = 16 + static_cast<std::int64_t>(random() % 64);
      run.make(sites, static_cast<std::int64_t>(random() % 300), every);
    }
    // In the end all repeat for long enough.
    const Sites last(ranks, "AAB");
    run.make(last, 96, 16);
    run.exchange();
    CHECK(run.first().period() == 3);
    CHECK(run.named(3) == "--n");
  }
}

// All sequences of two sites on two ranks that are short enough, with an exchange after each call or after some.
TEST_CASE("call sites: every short schedule leaves all ranks with the same") {
  constexpr int length = 5;
  for (unsigned one = 0; one < 1u << length; ++one)
    for (unsigned other = 0; other < 1u << length; ++other)
      for (const std::int64_t every : {9, 17, 40}) {
        Run run(2, 'B');
        Sites sites(2);
        for (int i = 0; i < length; ++i) {
          sites[0] += (one >> i & 1) != 0 ? 'B' : 'A';
          sites[1] += (other >> i & 1) != 0 ? 'B' : 'A';
        }
        run.make(sites, 60, every);
        run.exchange();
        const bool is_constant = (one == 0 || one == 31) && (other == 0 || other == 31);
        if (run.exchanges > 0) {
          REQUIRE(run.first().period() == (is_constant ? 1 : length));
          for (std::int64_t call = 60; call < 60 + length; ++call) {
            const auto i = static_cast<std::size_t>(call % length);
            REQUIRE((run.first().place_of(call).named != 0) == (sites[0][i] == 'B' || sites[1][i] == 'B'));
          }
        } else {
          REQUIRE((one == 0 && other == 0));
        }
      }
}

}  // namespace papaya::tuning
