// The stale synchronous parallel algorithms under every schedule of a few calls, and under random ones of more ranks.
//
// Schedules that lead to the same state are followed once. A state is the wire's memory, and of each rank where it has
// stopped, what it has sent last, what it has seen and its result so far: an algorithm that goes on from there does the
// same thing.
#pragma once

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/support/fiber.hpp"
#include "tests/unit/support/ssp_world.hpp"

namespace papaya {

// Every schedule of a job, until one goes wrong.
class Exploration {
 public:
  explicit Exploration(const SspJob& job) : job_(job), fibers_(static_cast<std::size_t>(job.ranks)) {
    world_ = std::make_unique<SspWorld>(job_, fibers_);
    schedules_ = follow();
    world_.reset();
  }
  double schedules() const noexcept { return schedules_; }  // too many for an integer
  std::size_t states() const noexcept { return known_.size(); }
  const std::string& fault() const noexcept { return fault_; }

 private:
  // From where the world stands: how many schedules there are.
  double follow() {
    const StateDigest::Value state = world_->state();
    if (const auto found = known_.find(state); found != known_.end()) return found->second;
    const std::vector<int> choices = world_->can_move();
    if (choices.empty() && !world_->is_over()) fault_ = "deadlock";
    double schedules = choices.empty() ? 1 : 0;
    const std::size_t depth = schedule_.size();
    for (const int choice : choices) {
      if (!fault_.empty()) break;
      if (choice != choices.front()) repeat(depth);
      schedule_.resize(depth);
      schedule_.push_back(choice);
      world_->move(choice);
      fault_ = world_->fault();
      if (fault_.empty()) schedules += follow();
    }
    known_.emplace(state, schedules);
    return schedules;
  }
  // The world as it was after that many steps.
  void repeat(std::size_t steps) {
    world_.reset();
    world_ = std::make_unique<SspWorld>(job_, fibers_);
    for (std::size_t i = 0; i < steps; ++i) world_->move(schedule_[i]);
  }

  const SspJob job_;
  std::vector<Fiber> fibers_;
  std::unique_ptr<SspWorld> world_;
  std::vector<int> schedule_;
  std::unordered_map<StateDigest::Value, double, StateDigest::Hash> known_;
  double schedules_ = 0;
  std::string fault_;
};

inline void explore(std::span<const SspJob> jobs) {
  for (const SspJob& job : jobs) {
    CAPTURE(job.ranks, job.slack, job.calls, job.is_late);
    const Exploration all(job);
    INFO(all.fault());
    CHECK(all.fault().empty());
    std::printf("%s: %d ranks, slack %d, %d calls%s: %.3g schedules, %zu states\n", job.algorithm, job.ranks,
                static_cast<int>(job.slack), static_cast<int>(job.calls), job.is_late ? ", late writes" : "",
                all.schedules(), all.states());
  }
}

// More ranks have too many schedules to follow all. Here the runnable rank of the highest priority moves, and
// priorities change now and then, so that some ranks are far ahead for long.
inline void explore_at_random(std::span<const SspJob> jobs) {
  for (const SspJob& job : jobs) {
    std::vector<Fiber> fibers(static_cast<std::size_t>(job.ranks));
    for (unsigned seed = 1; seed <= 100; ++seed) {
      CAPTURE(job.ranks, job.slack, job.is_late, seed);
      std::minstd_rand random(seed);
      SspWorld world(job, fibers);
      std::vector<std::uint64_t> priorities(static_cast<std::size_t>(job.ranks * (job.ranks + 1)));
      for (std::uint64_t& priority : priorities) priority = random();
      for (std::vector<int> choices = world.can_move(); !choices.empty(); choices = world.can_move()) {
        if (random() % 16 == 0) priorities[random() % priorities.size()] = random();
        world.move(*std::max_element(choices.begin(), choices.end(), [&](int a, int b) {
          return priorities[static_cast<std::size_t>(a)] < priorities[static_cast<std::size_t>(b)];
        }));
        if (!world.fault().empty()) break;
      }
      INFO(world.fault());
      REQUIRE(world.fault().empty());
      REQUIRE(world.is_over());
    }
  }
}

}  // namespace papaya
