// Ranks that meet in words of a node's memory, in one thread, one step of one rank at a time, with the class itself
// running: each rank is a fiber that stops before every access to such a word, and in the middle of what it combines.
// For random schedules it stops after every access as well. ThreadSanitizer checks that what a rank does in between
// touches nothing that others do (tests/protocol).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/weak/weak.hpp"
#include "tests/unit/support/exploration.hpp"
#include "tests/unit/support/fiber.hpp"

namespace papaya {

// A word that ranks share, in a world that runs their fibers one at a time.
class WordWorld {
 public:
  WordWorld(const WordWorld&) = delete;
  WordWorld& operator=(const WordWorld&) = delete;

  class Word {
   public:
    std::uint64_t load(std::memory_order) noexcept {
      if (current->is_abandoned_) return beyond;
      current->stop();
      const std::uint64_t found = value_;
      current->stop_after(found);
      return current->is_abandoned_ ? beyond : found;
    }
    void store(std::uint64_t value, std::memory_order) noexcept { exchange(value, std::memory_order_relaxed); }
    std::uint64_t exchange(std::uint64_t value, std::memory_order) noexcept {
      if (current->is_abandoned_) return 0;
      current->stop();
      const std::uint64_t found = value_;
      if (found != value) ++current->changes_;
      value_ = value;
      current->stop_after(found);
      return current->is_abandoned_ ? 0 : found;
    }
    bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t value, std::memory_order,
                                 std::memory_order) noexcept {
      if (current->is_abandoned_) return true;  // who tries until it succeeds does so
      current->stop();
      const std::uint64_t found = value_;
      const bool is_expected = found == expected;
      if (is_expected) {
        ++current->changes_;
        value_ = value;
      }
      expected = found;
      current->stop_after(found);
      return is_expected || current->is_abandoned_;
    }

   private:
    static constexpr std::uint64_t beyond = (std::uint64_t{1} << 40) + 1;  // all calls, and the first of some buffers
    std::uint64_t value_;
  };

 protected:
  WordWorld() { current = this; }
  ~WordWorld() { current = nullptr; }
  virtual void stop() = 0;
  // Once it has found that.
  virtual void stop_after(std::uint64_t found) = 0;

  static inline thread_local WordWorld* current = nullptr;
  std::uint64_t changes_ = 0;
  bool is_abandoned_ = false;
};

// `Subject` says what is to be run: Job, Element and Algorithm, how these are made, and a Ledger of each rank that
// checks its results.
template <class Subject>
class NodeWorld final : public WordWorld {
 public:
  using Job = typename Subject::Job;

  NodeWorld(const Job& job, std::vector<Fiber>& fibers)
      : job_(job),
        bytes_(elements * sizeof(Element)),
        region_(Subject::region_bytes(job, bytes_) / line),
        reduction_(Subject::reduction()),
        whole_(reduction_) {
    reduction_.combine = combine;
    reduction_.context = this;
    ranks_.resize(static_cast<std::size_t>(job.ranks));
    for (int rank = 0; rank < job.ranks; ++rank) {
      Rank& one = at(rank);
      one.fiber = &fibers[static_cast<std::size_t>(rank)];
      one.fiber->set([this, rank] { run(rank); });
    }
  }
  // A stopped fiber cannot be destroyed: all are run to their end, with results that do not matter.
  ~NodeWorld() {
    is_abandoned_ = true;
    for (int rank = 0; rank < job_.ranks; ++rank)
      while (!at(rank).fiber->is_done()) resume(rank);
  }

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

 private:
  using Element = typename Subject::Element;
  static constexpr std::size_t elements = 2;  // one in each half of what is combined
  static constexpr std::size_t line = 64;
  struct alignas(line) Line {
    std::byte bytes[line];
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
    std::vector<Element> contribution(elements);
    std::vector<Element> result(elements);
    typename Subject::Ledger ledger(rank, job_);
    const Team team{.rank = rank,
                    .size = job_.ranks,
                    .arrival_order = false,
                    .region = reinterpret_cast<std::byte*>(region_.data()),
                    .policy = &policy_};
    typename Subject::Algorithm algorithm(team, job_, bytes_);
    for (std::uint64_t clock = 1; clock <= job_.calls; ++clock) {
      begin_call(self, clock, algorithm, ledger);
      contribution.assign(elements, Element::of(rank, clock));
      algorithm.start({.send = contribution.data(),
                       .receive = result.data(),
                       .count = elements,
                       .bytes = elements * sizeof(Element),
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
  void begin_call(Rank& self, std::uint64_t clock, const typename Subject::Algorithm& algorithm,
                  const typename Subject::Ledger& ledger) const {
    self.history = {};
    self.history.put(clock);
    algorithm.put_in(self.history);
    ledger.put_in(self.history);
  }
  void fail(int rank, std::uint64_t clock, const char* what) {
    if (fault_.empty()) fault_ = "rank " + std::to_string(rank) + ", call " + std::to_string(clock) + ": " + what;
  }

  static void combine(const Reduction& reduction, const void* left, const void* right, void* out, std::size_t count) {
    auto& world = *static_cast<NodeWorld*>(const_cast<void*>(reduction.context));
    for (std::size_t i = 0; i < count; ++i) {
      if (!world.is_abandoned_ && (i > 0 || world.job_.stops_often)) world.stop();
      world.whole_.combine(world.whole_, static_cast<const Element*>(left) + i, static_cast<const Element*>(right) + i,
                           static_cast<Element*>(out) + i, 1);
    }
  }

  void resume(int rank) {
    running_ = rank;
    at(rank).fiber->resume();
  }
  void stop() override {
    Rank& self = at(running_);
    self.history.put(1);
    self.fiber->stop();
  }
  void stop_after(std::uint64_t found) override {
    Rank& self = at(running_);
    self.history.put(found + 2);
    if (job_.stops_often) self.fiber->stop();
  }

  const Job job_;
  const std::size_t bytes_;
  std::vector<Line> region_;
  Reduction reduction_;    // with stops
  const Reduction whole_;  // without
  wait::Policy policy_;
  std::vector<Rank> ranks_;
  int running_ = 0;
  std::string fault_;
};

}  // namespace papaya
