// A world of ranks under every schedule of a few calls, and under random ones of more ranks. A world has one thread;
// who moves next is for this to choose. Its Job says what it is to do, and describe() says so to people.
//
// Schedules that lead to the same state are followed once. A state is the memory that ranks share, and of each rank
// where it has stopped and what else decides how it goes on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/support/fiber.hpp"

namespace papaya {

// Two numbers by what has been put in: states are told apart by both.
class StateDigest {
 public:
  using Value = std::pair<std::uint64_t, std::uint64_t>;
  void put(std::uint64_t word) noexcept {
    a_ = (a_ ^ word) * 0x9e3779b97f4a7c15u;
    a_ ^= a_ >> 29;
    b_ = (b_ + word) * 0xc2b2ae3d27d4eb4fu;
    b_ ^= b_ >> 31;
  }
  void put(const std::byte* data, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, data + at, std::min(sizeof word, bytes - at));
      put(word);
    }
  }
  Value value() const noexcept { return {a_, b_}; }
  struct Hash {
    std::size_t operator()(const Value& value) const noexcept { return value.first; }
  };

 private:
  std::uint64_t a_ = 1;
  std::uint64_t b_ = 2;
};

// One for each rank, if the world does not say so.
template <class World>
std::size_t fibers_for(const typename World::Job& job) {
  if constexpr (requires { World::fibers_for(job); })
    return World::fibers_for(job);
  else
    return static_cast<std::size_t>(job.ranks);
}

// Every schedule of a job, until one goes wrong.
template <class World>
class Exploration {
 public:
  explicit Exploration(const typename World::Job& job) : job_(job), fibers_(fibers_for<World>(job)) {
    world_ = std::make_unique<World>(job_, fibers_);
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
    world_ = std::make_unique<World>(job_, fibers_);
    for (std::size_t i = 0; i < steps; ++i) world_->move(schedule_[i]);
  }

  const typename World::Job job_;
  std::vector<Fiber> fibers_;
  std::unique_ptr<World> world_;
  std::vector<int> schedule_;
  std::unordered_map<StateDigest::Value, double, StateDigest::Hash> known_;
  double schedules_ = 0;
  std::string fault_;
};

template <class World, std::size_t n>
void explore(const typename World::Job (&jobs)[n]) {
  for (const auto& job : jobs) {
    const std::string what = describe(job);
    CAPTURE(what);
    const Exploration<World> all(job);
    INFO(all.fault());
    CHECK(all.fault().empty());
    std::printf("%s: %.3g schedules, %zu states\n", what.c_str(), all.schedules(), all.states());
  }
}

// More ranks have too many schedules to follow all. Here the runnable rank of the highest priority moves, and
// priorities change now and then, so that some ranks are far ahead for long.
template <class World, std::size_t n>
void explore_at_random(const typename World::Job (&jobs)[n]) {
  for (const auto& job : jobs) {
    const std::string what = describe(job);
    std::vector<Fiber> fibers(fibers_for<World>(job));
    for (unsigned seed = 1; seed <= 100; ++seed) {
      CAPTURE(what, seed);
      std::minstd_rand random(seed);
      World world(job, fibers);
      std::vector<std::uint64_t> priorities(static_cast<std::size_t>(job.ranks * (job.ranks + 2)));
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
