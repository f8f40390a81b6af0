// Ranks of a partial allreduce in one thread, one step of one rank at a time, with the class itself running: each rank
// is a fiber that stops before and after every access to a word that ranks share, and while it combines.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/weak/partial_allreduce.hpp"
#include "tests/protocol/partial_contribution.hpp"
#include "tests/unit/support/exploration.hpp"
#include "tests/unit/support/fiber.hpp"

namespace papaya {

struct PartialJob {
  Starter starter;
  int ranks;
  std::uint64_t lag;
  std::uint64_t calls;
  bool stops_often = false;
};
inline std::string describe(const PartialJob& job) {
  return std::string(job.starter == Starter::first ? "solo" : "majority") + "_allreduce: " + std::to_string(job.ranks) +
         " ranks, lag " + std::to_string(job.lag) + ", " + std::to_string(job.calls) + " calls";
}

class PartialWorld {
 public:
  using Job = PartialJob;

  PartialWorld(const PartialJob& job, std::vector<Fiber>& fibers)
      : job_(job),
        shape_{job.ranks, elements * sizeof(PartialContribution), job.lag},
        region_(shape_.region_bytes() / line) {
    current = this;
    reduction_ = PartialContribution::reduction();
    reduction_.combine = combine;
    ranks_.resize(static_cast<std::size_t>(job.ranks));
    for (int rank = 0; rank < job.ranks; ++rank) {
      Rank& one = at(rank);
      one.fiber = &fibers[static_cast<std::size_t>(rank)];
      one.fiber->set([this, rank] { run(rank); });
    }
  }
  // A stopped fiber cannot be destroyed: all are run to their end, with results that do not matter.
  ~PartialWorld() {
    is_abandoned_ = true;
    for (int rank = 0; rank < job_.ranks; ++rank)
      while (!at(rank).fiber->is_done()) resume(rank);
    current = nullptr;
  }
  PartialWorld(const PartialWorld&) = delete;
  PartialWorld& operator=(const PartialWorld&) = delete;

  std::vector<int> can_move() const {
    std::vector<int> all;
    for (int rank = 0; rank < job_.ranks; ++rank) {
      const Rank& one = ranks_[static_cast<std::size_t>(rank)];
      if (!one.fiber->is_done() && !waits(one)) all.push_back(rank);
    }
    return all;
  }
  void move(int rank) { resume(rank); }
  bool is_over() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.fiber->is_done(); });
  }
  const std::string& fault() const noexcept { return fault_; }

  // What a rank has kept since the calls before, and its accesses in this one with what they found.
  StateDigest::Value state() const {
    StateDigest digest;
    digest.put(reinterpret_cast<const std::byte*>(region_.data()), region_.size() * line);
    for (const Rank& one : ranks_) {
      digest.put(one.history.value().first);
      digest.put(one.history.value().second);
      digest.put(std::uint64_t{one.waits_for_news} << 1 | std::uint64_t{waits(one)});
    }
    return digest.value();
  }

  // A word that ranks share.
  class Word {
   public:
    std::uint64_t load(std::memory_order) noexcept {
      if (current->is_abandoned_) return ~std::uint64_t{0};
      current->stop();
      const std::uint64_t found = value_;
      return current->stop_after(found, ~std::uint64_t{0});
    }
    void store(std::uint64_t value, std::memory_order) noexcept { exchange(value, std::memory_order_relaxed); }
    std::uint64_t exchange(std::uint64_t value, std::memory_order) noexcept {
      if (current->is_abandoned_) return 0;
      current->stop();
      const std::uint64_t found = value_;
      if (found != value) ++current->changes_;
      value_ = value;
      return current->stop_after(found, 0);
    }
    bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t value, std::memory_order,
                                 std::memory_order) noexcept {
      if (current->is_abandoned_) return false;
      current->stop();
      const std::uint64_t found = value_;
      const bool is_expected = found == expected;
      if (is_expected) {
        ++current->changes_;
        value_ = value;
      }
      expected = current->stop_after(found, 0);
      return is_expected;
    }

   private:
    std::uint64_t value_;
  };

 private:
  static constexpr std::size_t elements = 2;  // one in each half of what is combined
  static constexpr std::size_t line = 64;
  struct alignas(line) Line {
    std::byte bytes[line];
  };
  class Watched final : public PartialAllreduceOf<Word> {
   public:
    using PartialAllreduceOf::PartialAllreduceOf;
    void put_in(StateDigest& digest) const noexcept {
      for (const std::uint64_t value : {this->last_, this->used_, this->all_left_}) digest.put(value);
    }
  };
  struct Rank {
    Fiber* fiber = nullptr;
    StateDigest history;
    bool waits_for_news = false;
    std::uint64_t changes_seen = 0;  // before it looked in vain
  };
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  bool waits(const Rank& one) const { return one.waits_for_news && one.changes_seen == changes_; }

  // A rank, in its fiber.
  void run(int rank) {
    Rank& self = at(rank);
    std::vector<PartialContribution> contribution(elements);
    std::vector<PartialContribution> result(elements);
    PartialLedger ledger(rank, job_.ranks);
    const Team team{.rank = rank,
                    .size = job_.ranks,
                    .arrival_order = false,
                    .region = reinterpret_cast<std::byte*>(region_.data()),
                    .policy = &policy_};
    Watched algorithm(team, shape_, job_.starter);
    for (std::uint64_t clock = 1; clock <= job_.calls; ++clock) {
      begin_call(self, clock, algorithm, ledger);
      contribution.assign(elements, PartialContribution::of(rank, clock));
      algorithm.start({.send = contribution.data(),
                       .receive = result.data(),
                       .count = elements,
                       .bytes = elements * sizeof(PartialContribution),
                       .root = -1,
                       .reduction = &reduction_});
      self.changes_seen = changes_;
      bool is_done = algorithm.progress();
      while (!is_done) {
        // Who looks again finds the same until there is news, and keeps nothing of what it found in vain.
        const StateDigest before = self.history;
        self.waits_for_news = true;
        if (!is_abandoned_) stop();
        self.waits_for_news = false;
        self.changes_seen = changes_;
        is_done = algorithm.progress();
        if (!is_done) self.history = before;
      }
      if (is_abandoned_) continue;
      if (const char* const found = ledger.fault_in(result, algorithm.status(), clock)) fail(rank, clock, found);
    }
    begin_call(self, job_.calls + 1, algorithm, ledger);
    // Others may still fetch results, which no longer change what is left.
    const std::uint64_t withdrawn = algorithm.withdraw(result.data());
    if (is_abandoned_) return;
    if (const char* const found = ledger.fault_at_end(result, withdrawn, algorithm.status()))
      fail(rank, job_.calls, found);
  }
  void begin_call(Rank& self, std::uint64_t clock, const Watched& algorithm, const PartialLedger& ledger) const {
    self.history = {};
    self.history.put(clock);
    algorithm.put_in(self.history);
    for (int rank = 0; rank < job_.ranks; ++rank) self.history.put(ledger.used(rank));
  }
  void fail(int rank, std::uint64_t clock, const char* what) {
    if (fault_.empty()) fault_ = "rank " + std::to_string(rank) + ", call " + std::to_string(clock) + ": " + what;
  }

  static void combine(const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
    static const Reduction whole = PartialContribution::reduction();
    for (std::size_t i = 0; i < count; ++i) {
      if (!current->is_abandoned_ && (i > 0 || current->job_.stops_often)) current->stop();
      whole.combine(whole, static_cast<const PartialContribution*>(left) + i,
                    static_cast<const PartialContribution*>(right) + i, static_cast<PartialContribution*>(out) + i, 1);
    }
  }

  void resume(int rank) {
    running_ = rank;
    at(rank).fiber->resume();
  }
  void stop() {
    Rank& self = at(running_);
    self.history.put(1);
    self.fiber->stop();
  }
  std::uint64_t stop_after(std::uint64_t found, std::uint64_t if_abandoned) {
    Rank& self = at(running_);
    self.history.put(found + 2);
    if (job_.stops_often) self.fiber->stop();
    return is_abandoned_ ? if_abandoned : found;
  }

  static inline thread_local PartialWorld* current = nullptr;
  const PartialJob job_;
  const PartialShape shape_;
  std::vector<Line> region_;
  Reduction reduction_;
  wait::Policy policy_;
  std::vector<Rank> ranks_;
  int running_ = 0;
  std::uint64_t changes_ = 0;  // of words that are shared
  bool is_abandoned_ = false;
  std::string fault_;
};

}  // namespace papaya
