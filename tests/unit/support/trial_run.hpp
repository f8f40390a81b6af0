// Online selection without MPI: every rank has a Trial of its own, and here they share nothing but what is exchanged.
// After each call all must stand alike. Costs come from a model, whose truth the choice is compared with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tuning/trial.hpp"

namespace papaya::tuning::support {

inline constexpr std::int64_t one_percent = 10'000;

// Ranks that compute for `computing_ns` between calls, arrive over `spread_ns`, and leave `cost` after the last one.
struct Job {
  int ranks = 3;
  std::size_t candidates = 4;
  std::size_t in_use = 0;
  std::int64_t share = one_percent;
  std::int64_t computing_ns = 20'000;
  std::int64_t exchange_ns = 10'000;
  std::int64_t begin_ns = 300'000'000;  // MPI_Init took that
  std::int64_t elsewhere_ns = 0;
  std::int64_t foreseen_ns = 0;  // to be lost by others that are under way
  std::int64_t trials = 1;
  std::int64_t others_ns = 0;  // in their calls
  bool has_one_clock = true;   // else each rank's is off by seconds
  bool is_rooted = false;      // the ranks leave when they have done their share
  std::int64_t guessed_set_up_ns = 200'000;
  std::int64_t set_up_ns = 0;     // as the first rank measured it; 0: it did not
  bool lacks_candidates = false;  // until all ranks find that preparing them may pay
  std::int64_t preparing_ns = 20'000'000;
  std::function<std::int64_t(std::size_t candidate, std::int64_t call)> cost;
  std::function<std::int64_t(std::int64_t call)> spread = [](std::int64_t) { return 500; };
  double noise = 0.05;
  // May the ranks exchange in this call?
  std::function<bool(std::int64_t call)> meets = [](std::int64_t) { return true; };
  // Does the candidate serve it?
  std::function<bool(std::size_t candidate, std::int64_t call)> serves = [](std::size_t, std::int64_t) { return true; };
};

class Run {
 public:
  explicit Run(Job job, unsigned seed = 1) : job_(std::move(job)), random_(seed), now_(job_.begin_ns) {
    served.assign(job_.candidates, 0);
    for (int rank = 0; rank < job_.ranks; ++rank)
      ranks_.emplace_back(Trial::Terms{.candidates = job_.lacks_candidates ? 1 : job_.candidates,
                                       .in_use = job_.lacks_candidates ? 0 : job_.in_use,
                                       .share = job_.share,
                                       .clocks = job_.has_one_clock ? Clocks::one
                                                 : job_.is_rooted   ? Clocks::several_rooted
                                                                    : Clocks::several,
                                       .set_up_ns = job_.guessed_set_up_ns,
                                       .lacks_candidates = job_.lacks_candidates});
  }

  void make(std::int64_t calls) {
    for (std::int64_t i = 0; i < calls; ++i) make_one();
  }

  Trial& first() { return ranks_.front(); }
  std::vector<Trial>& all() { return ranks_; }
  std::int64_t now() const { return now_; }
  std::int64_t lost_ns = 0;  // beside the candidate that is the quickest at that time
  std::int64_t exchanged_ns = 0;
  std::int64_t exchanges = 0;
  std::int64_t admitted = -1;  // in this call
  std::vector<std::int64_t> served;

 private:
  void exchange() {
    std::vector<std::int64_t> largest;
    if (job_.set_up_ns != 0) first().note_set_up(job_.set_up_ns);
    for (Trial& one : ranks_) {
      // Ranks do not agree on how long the run has lasted.
      const std::vector<std::int64_t> mine = one.largest(now_ - static_cast<std::int64_t>(random_() % 1000),
                                                         job_.elsewhere_ns, job_.trials, job_.others_ns);
      if (largest.empty()) largest = mine;
      REQUIRE(largest.size() == mine.size());
      for (std::size_t i = 0; i < mine.size(); ++i) largest[i] = std::max(largest[i], mine[i]);
    }
    std::vector<std::int64_t> sums;
    for (int rank = 0; rank < job_.ranks; ++rank) {
      const std::vector<std::int64_t> mine = ranks_[static_cast<std::size_t>(rank)].sums(largest, rank);
      if (sums.empty()) sums.assign(mine.size(), 0);
      REQUIRE(sums.size() == mine.size());
      for (std::size_t i = 0; i < mine.size(); ++i) sums[i] += mine[i];
    }
    for (Trial& one : ranks_) {
      one.take(largest, sums, job_.ranks, job_.foreseen_ns);
      one.note_exchange(job_.exchange_ns + static_cast<std::int64_t>(random_() % 1000));
    }
    for (const Trial& one : ranks_)
      REQUIRE(std::equal(one.seen().begin(), one.seen().end(), first().seen().begin(), first().seen().end()));
    now_ += job_.exchange_ns;
    exchanged_ns += job_.exchange_ns;
    ++exchanges;
    admit();
  }

  void admit() {
    if (!first().lacks_candidates()) return;
    const bool may_pay = first().may_pay(job_.preparing_ns);
    for (Trial& one : ranks_) {
      REQUIRE(one.lacks_candidates());
      REQUIRE(one.may_pay(job_.preparing_ns) == may_pay);
      REQUIRE_FALSE(one.is_trying());
      if (may_pay) one.admit(job_.candidates, job_.in_use);
    }
    if (!may_pay) return;
    admitted = call_;
    now_ += job_.preparing_ns;
    exchanged_ns += job_.preparing_ns;
  }

  void make_one() {
    if (first().wants_exchange() && job_.meets(call_)) exchange();
    const std::size_t candidate = first().candidate();
    for (Trial& one : ranks_) {
      REQUIRE(one.candidate() == candidate);
      REQUIRE(one.slot() == first().slot());
      REQUIRE(one.wants_exchange() == first().wants_exchange());
    }
    ++served[candidate];
    const bool serves = job_.serves(candidate, call_);
    std::uniform_real_distribution<double> noise(1 - job_.noise, 1 + job_.noise);
    const std::int64_t usual = job_.cost(serves ? candidate : 0, call_);
    std::vector<std::int64_t> arrivals;
    for (int rank = 0; rank < job_.ranks; ++rank)
      arrivals.push_back(now_ + job_.computing_ns + static_cast<std::int64_t>(random_() % 200) +
                         (rank == 0 ? job_.spread(call_) : 0));
    const std::int64_t last = *std::max_element(arrivals.begin(), arrivals.end());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto cost = static_cast<std::int64_t>(static_cast<double>(usual) * noise(random_));
      const std::int64_t off_ns = job_.has_one_clock ? 0 : static_cast<std::int64_t>(rank) * -3'000'000'000;
      const std::int64_t exit = (job_.is_rooted ? std::max(arrivals[0], arrivals[rank]) : last) + cost;
      if (serves)
        ranks_[rank].keep(ranks_[rank].slot(), candidate, {arrivals[rank] + off_ns, exit + off_ns, true, true});
      ranks_[rank].count_call();
    }
    std::int64_t least = usual;
    for (std::size_t i = 0; i < job_.candidates; ++i) least = std::min(least, job_.cost(i, call_));
    lost_ns += usual - least;
    now_ = last + usual;
    ++call_;
  }

  Job job_;
  std::mt19937 random_;
  std::int64_t now_;
  std::int64_t call_ = 0;
  std::vector<Trial> ranks_;
};

inline std::function<std::int64_t(std::size_t, std::int64_t)> costs(std::vector<std::int64_t> of) {
  return [of = std::move(of)](std::size_t candidate, std::int64_t) { return of[candidate]; };
}

}  // namespace papaya::tuning::support
