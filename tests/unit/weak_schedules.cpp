// Threshold broadcast and reduce and the top-k allreduce, under every order in which writes may land and ranks go on in
// a few calls, and under random ones of more ranks. Orders that lead to the same state are followed once.
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithms/patterns/threshold.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/late_world.hpp"

namespace papaya {
namespace {

double element_of(int rank, std::uint64_t call, std::size_t i) {
  return static_cast<double>(1 + rank) * 1000 + static_cast<double>(call * 10 + i);
}

Reduction the_sum() {
  Reduction reduction;
  reduction.element_bytes = sizeof(double);
  reduction.combine = [](const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<double*>(out)[i] = static_cast<const double*>(left)[i] + static_cast<const double*>(right)[i];
  };
  return reduction;
}

// A job of each collective, with what it takes for as long as it runs.
class Case {
 public:
  // Of thresholds: by ranks or not, route, chunk in elements, slots.
  Case(const char* name, int ranks, int root, std::size_t count, double share, std::array<std::int64_t, 4> values,
       std::uint64_t calls)
      : values_(values), count_(count), root_(root), is_bcast_(std::string(name) == "threshold_bcast") {
    values_[2] *= static_cast<std::int64_t>(sizeof(double));
    const bool is_top_k = std::string(name) == "top_k";
    if (is_top_k) values_[0] = values[0];
    takes_part_ = patterns::taking_part(
        ranks, std::max(root, 0),
        !is_top_k && values[0] == 1 ? static_cast<int>(patterns::share_of(share, static_cast<std::size_t>(ranks)))
                                    : ranks);
    sent_ = !is_top_k && values[0] == 0 ? patterns::share_of(share, count) : count;
    job = {.name = name,
           .request = {.ranks = ranks,
                       .count = count,
                       .element_bytes = sizeof(double),
                       .root = root,
                       .reduction = &sum_,
                       .type = kernels::ElementType::f64,
                       .operation = kernels::Operation::sum,
                       .share = share,
                       .values = values_},
           .calls = calls,
           .begin = [this](int rank, std::uint64_t call, std::vector<double>& send,
                           std::vector<double>& receive) { return begin(rank, call, send, receive); },
           .fault = [this](int rank, std::uint64_t call, const std::vector<double>& /*send*/,
                           const std::vector<double>& receive,
                           const WeakStatus& status) { return fault(rank, call, receive, status); }};
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  LateJob job;

 private:
  bool is_in(int rank) const { return takes_part_[static_cast<std::size_t>(rank)]; }
  bool has_result(int rank) const { return root_ < 0 || (is_bcast_ ? is_in(rank) : rank == root_); }

  Operands begin(int rank, std::uint64_t call, std::vector<double>& send, std::vector<double>& receive) const {
    send.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) send[i] = element_of(rank, call, i);
    receive.assign(count_, -1);
    return {.send = send.data(),
            .receive = receive.data(),
            .count = count_,
            .bytes = count_ * sizeof(double),
            .root = root_,
            .reduction = &sum_};
  }
  const char* fault(int rank, std::uint64_t call, const std::vector<double>& receive, const WeakStatus& status) const {
    if (status.clock != call) return "the status is of another call";
    if (status.bytes != (has_result(rank) ? sent_ * sizeof(double) : 0)) return "the status tells other bytes";
    for (std::size_t i = 0; i < count_; ++i) {
      double expected = -1;
      if (has_result(rank) && i < sent_ && !(is_bcast_ && rank == root_)) {
        expected = is_bcast_ ? element_of(root_, call, i) : 0;
        for (int from = 0; from < job.request.ranks && !is_bcast_; ++from)
          if (is_in(from)) expected += element_of(from, call, i);
      }
      if (receive[i] != expected) return "a wrong result";
    }
    return nullptr;
  }

  const Reduction sum_ = the_sum();
  std::array<std::int64_t, 4> values_;
  const std::size_t count_;
  const int root_;
  const bool is_bcast_;
  std::size_t sent_;
  std::vector<bool> takes_part_;
};

// Every order of a job, until one goes wrong.
class LateExploration {
 public:
  explicit LateExploration(const LateJob& job) : job_(job), world_(std::make_unique<LateWorld>(job)) {
    schedules_ = follow();
  }
  double schedules() const noexcept { return schedules_; }
  std::size_t states() const noexcept { return known_.size(); }
  const std::string& fault() const noexcept { return fault_; }

 private:
  double follow() {
    const LateDigest::Value state = world_->state();
    if (const auto found = known_.find(state); found != known_.end()) return found->second;
    const std::vector<int> choices = world_->can_move();
    if (choices.empty() && !world_->is_over()) fault_ = "deadlock";
    double schedules = choices.empty() ? 1 : 0;
    const std::size_t depth = schedule_.size();
    for (const int choice : choices) {
      if (!fault_.empty()) break;
      if (choice != choices.front()) {
        world_ = std::make_unique<LateWorld>(job_);
        for (std::size_t i = 0; i < depth; ++i) world_->move(schedule_[i]);
      }
      schedule_.resize(depth);
      schedule_.push_back(choice);
      world_->move(choice);
      fault_ = world_->fault();
      if (fault_.empty()) schedules += follow();
    }
    known_.emplace(state, schedules);
    return schedules;
  }

  const LateJob& job_;
  std::unique_ptr<LateWorld> world_;
  std::vector<int> schedule_;
  std::unordered_map<LateDigest::Value, double, LateDigest::Hash> known_;
  double schedules_ = 0;
  std::string fault_;
};

// Each with and without barriers between calls, and where writes land in calls only.
template <class Body>
void in_all_ways(Case& one, Body body) {
  for (const bool has_barriers : {false, true})
    for (const bool lands_in_calls : {false, true}) {
      one.job.has_barriers = has_barriers;
      one.job.lands_in_calls = lands_in_calls;
      CAPTURE(one.job.name, one.job.request.ranks, one.job.request.root, has_barriers, lands_in_calls);
      body(one.job);
    }
}

void explore(Case&& one) {
  in_all_ways(one, [](const LateJob& job) {
    const LateExploration all(job);
    INFO(all.fault());
    CHECK(all.fault().empty());
    std::printf("%s: %d ranks, root %d, %d calls%s%s: %.3g schedules, %zu states\n", job.name, job.request.ranks,
                job.request.root, static_cast<int>(job.calls), job.has_barriers ? ", barriers" : "",
                job.lands_in_calls ? ", late landing" : "", all.schedules(), all.states());
  });
}

TEST_CASE("weak schedules: every schedule of a few threshold calls is right") {
  for (const char* const name : {"threshold_bcast", "threshold_reduce"}) {
    explore({name, 2, 1, 3, 1, {0, 1, 1, 2}, 3});     // more chunks than slots
    explore({name, 2, 0, 2, 0.5, {0, 1, 1, 2}, 6});   // ahead by calls
    explore({name, 3, 0, 2, 1, {0, 2, 1, 2}, 3});     // a chain
    explore({name, 3, 1, 1, 1, {0, 1, 1, 2}, 3});     // a tree
    explore({name, 4, 0, 1, 0.75, {1, 1, 1, 2}, 2});  // one is left out
  }
}

TEST_CASE("weak schedules: every schedule of a few top-k calls is right") {
  explore({"top_k", 2, -1, 2, 1, {1000000, 0, 1, 0}, 5});
  explore({"top_k", 3, -1, 1, 1, {1000000, 0, 1, 0}, 3});
}

// The runnable rank or write of the highest priority moves, and priorities change now and then.
TEST_CASE("weak schedules: random schedules of many ranks") {
  unsigned seed = 0;
  for (const char* const name : {"threshold_bcast", "threshold_reduce", "top_k"})
    for (const int ranks : {4, 5, 8})
      for (const std::int64_t route : {1, 2}) {
        const bool is_top_k = std::string(name) == "top_k";
        const std::array<std::int64_t, 4> values{is_top_k ? 1000000 : 0, route, 2, 3};
        Case one(name, ranks, is_top_k ? -1 : ranks / 2, 9, 1, values, 12);
        in_all_ways(one, [&](const LateJob& job) {
          for (int turn = 0; turn < 10; ++turn) {
            std::minstd_rand random(++seed);
            LateWorld world(job);
            std::vector<std::uint64_t> priorities(static_cast<std::size_t>(ranks * (ranks + 1)));
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
        });
      }
}

}  // namespace
}  // namespace papaya
