// How the ranks of a communicator tell each other what they need for the set-up of a plan. Each exchange is begun, and
// its end is awaited in the coroutine that sets up, so that one text serves calls that wait and calls that must not.
// MpiAgreement exchanges by MPI's collectives; tests have threads.
#pragma once

#include <cstdint>

#include "algorithms/steps.hpp"

namespace papaya {

class Agreement {
  auto ended() noexcept {
    return until([this] { return is_ended(); });
  }

 public:
  virtual ~Agreement() = default;
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  // What is passed stays as it is until the exchange has ended.
  auto from_first(void* data, int bytes) noexcept {
    begin_from_first(data, bytes);
    return ended();
  }
  auto least(const int& mine, int& all) noexcept {
    begin_least(mine, all);
    return ended();
  }
  // The same while ranks may still be connecting to this one: the others' steps need this one's.
  auto least_while_connecting(const int& mine, int& all) noexcept {
    begin_least_while_connecting(mine, all);
    return ended();
  }
  auto gather(const std::int64_t& mine, std::int64_t* all) noexcept {
    begin_gather(mine, all);
    return ended();
  }

  // Steps that agree by this, to their end, for a call that may wait.
  void finish(Steps& steps) noexcept {
    while (!steps.advance()) pause();
  }

 protected:
  Agreement() = default;

 private:
  virtual void begin_from_first(void* data, int bytes) noexcept = 0;
  virtual void begin_least(const int& mine, int& all) noexcept = 0;
  virtual void begin_least_while_connecting(const int& mine, int& all) noexcept = 0;
  virtual void begin_gather(const std::int64_t& mine, std::int64_t* all) noexcept = 0;
  virtual bool is_ended() noexcept = 0;
  virtual void pause() noexcept = 0;
};

}  // namespace papaya
