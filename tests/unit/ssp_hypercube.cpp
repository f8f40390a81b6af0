// The stale synchronous parallel allreduce, under every schedule of a few calls and under random ones of more ranks.
//
// Schedules that lead to the same state are followed once. A state is the wire's memory, and of each rank where it has
// stopped, what it has sent last and what it has seen: an algorithm that goes on from there does the same thing.
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
namespace {

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

void explore(std::span<const SspJob> jobs) {
  for (const SspJob& job : jobs) {
    CAPTURE(job.ranks, job.slack, job.calls, job.is_late);
    const Exploration all(job);
    INFO(all.fault());
    CHECK(all.fault().empty());
    std::printf("ssp hypercube: %d ranks, slack %d, %d calls%s: %.3g schedules, %zu states\n", job.ranks,
                static_cast<int>(job.slack), static_cast<int>(job.calls), job.is_late ? ", late writes" : "",
                all.schedules(), all.states());
  }
}

// Two ranks make enough calls for every slot to be written again while it might still be read.
TEST_CASE("ssp hypercube: every schedule of a few calls is right") {
  const SspJob jobs[] = {{1, 0, 3, false}, {2, 0, 4, false}, {2, 1, 7, false}, {2, 0, 4, true},
                         {2, 1, 6, true},  {3, 0, 3, false}, {3, 1, 3, false}, {4, 0, 2, false}};
  explore(jobs);
}

// A minute: build/tests/unit_tests "[deep]"
TEST_CASE("ssp hypercube: every schedule of more calls is right", "[.][deep]") {
  const SspJob jobs[] = {{3, 1, 5, false}, {3, 1, 3, true}, {4, 1, 2, false}};
  explore(jobs);
}

// More ranks have too many schedules to follow all. Here the runnable rank of the highest priority moves, and
// priorities change now and then, so that some ranks are far ahead for long.
TEST_CASE("ssp hypercube: random schedules of many ranks") {
  const SspJob jobs[] = {{5, 1, 16, false}, {6, 2, 16, true},  {7, 1, 12, true},
                         {8, 0, 8, false},  {8, 2, 16, false}, {8, 5, 30, true}};
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

}  // namespace
}  // namespace papaya
