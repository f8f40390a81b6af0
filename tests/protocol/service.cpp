// A thread that serves other ranks while its own rank does something else.
#include "algorithms/weak/service.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/protocol/node.hpp"
#include "tests/protocol/wires.hpp"

namespace papaya {
namespace {

constexpr int answered = 0;  // the id that the asking rank looks at
constexpr int asked = 1;     // the service's
constexpr SegmentShape shape{64, 2, 1};

// Rank 1's thread answers rank 0 with the same number.
class Answers {
 public:
  explicit Answers(Notified& wire) : wire_(wire), service_(wire, "papaya-answers", [this] { return step(); }) {}
  Service& service() { return service_; }
  std::uint64_t answers() const { return answers_; }
  int steps() const { return steps_; }
  bool has_signals() const { return has_signals_; }
  std::string name() const { return name_; }

 private:
  bool step() {
    ++steps_;
    if (answers_ == 0) {
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      has_signals_ = sigismember(&blocked, SIGUSR1) == 0 || sigismember(&blocked, SIGTERM) == 0;
      char name[16] = "";
      pthread_getname_np(pthread_self(), name, sizeof name);
      name_ = name;
    }
    const std::uint64_t question = wire_.look(asked);
    if (question == answers_) return false;
    answers_ = question;
    wire_.notify(0, answered, question);
    return true;
  }

  Notified& wire_;
  std::uint64_t answers_ = 0;
  std::atomic<int> steps_{0};
  bool has_signals_ = true;
  std::string name_;
  Service service_;
};

void ask(Wires& wires, std::uint64_t question) {
  wait::Site site;
  wires[0].notify(1, asked, question);
  wires[0].wait(
      wires.policy(0), site, [&] { return wires[0].look(answered) == question; }, nullptr);
}

TEST_CASE("service: a notification wakes it, and in between it sleeps", "[protocol]") {
  using Clock = std::chrono::steady_clock;
  for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block}) {
    Wires wires(2, shape, mode);
    Answers answers(wires[1]);
    REQUIRE(answers.service().start());
    const auto begin = Clock::now();
    constexpr std::uint64_t questions = 300;
    for (std::uint64_t question = 1; question <= questions; ++question) ask(wires, question);
    // Without the bell each would take 5 ms on average.
    CHECK(Clock::now() - begin < std::chrono::milliseconds(1000));
    const int before = answers.steps();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(answers.steps() - before < 100);  // 10, two for each time that it looks by itself
    answers.service().stop();
    CHECK(answers.answers() == questions);
    CHECK_FALSE(answers.has_signals());
    CHECK(answers.name() == "papaya-answers");
    const int after = answers.steps();
    answers.service().wake();
    CHECK(answers.steps() == after);
  }
}

// Both threads of a rank sleep at times, each on its own bell.
TEST_CASE("service: the other thread of its rank is not woken in its place", "[protocol]") {
  Wires wires(2, shape, wait::Mode::block);
  Answers answers(wires[1]);
  REQUIRE(answers.service().start());
  std::atomic<bool> has_ended{false};
  std::thread other([&] {
    wait::Site site;
    wires[1].wait(
        wires.policy(1), site, [&] { return wires[1].look(answered) != 0; }, nullptr);
    has_ended = true;
  });
  for (std::uint64_t question = 1; question <= 300 * thorough; ++question) ask(wires, question);
  CHECK_FALSE(has_ended);
  wires[0].notify(1, answered, 1);
  other.join();
}

// By what the rank's own thread has left, of which no notification tells.
TEST_CASE("service: its own rank wakes it", "[protocol]") {
  using Clock = std::chrono::steady_clock;
  Wires wires(1, shape, wait::Mode::automatic);
  std::atomic<int> left{0};
  std::atomic<int> taken{0};
  Service service(wires[0], "papaya-left", [&] { return taken.exchange(left) != left; });
  REQUIRE(service.start());
  const auto begin = Clock::now();
  for (int i = 1; i <= 300; ++i) {
    left = i;
    service.wake();
    while (taken != i) std::this_thread::yield();
  }
  CHECK(Clock::now() - begin < std::chrono::milliseconds(1000));
}

}  // namespace
}  // namespace papaya
