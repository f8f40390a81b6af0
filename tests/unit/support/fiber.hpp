// Functions that can be suspended at any point and resumed, all in one thread.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace papaya {

class Fiber {
 public:
  Fiber() : stack_(std::size_t{128} << 10) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // To be resumed until it is done, before it is given another body or destroyed.
  void set(std::function<void()> body) {
    body_ = std::move(body);
    is_done_ = false;
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.data();
    own_.uc_stack.ss_size = stack_.size();
    own_.uc_link = &caller_;
    makecontext(&own_, &Fiber::enter, 0);
  }
  bool is_done() const noexcept { return is_done_; }
  // From outside: until it stops, or its body returns.
  void resume() noexcept {
    current = this;
    swapcontext(&caller_, &own_);
  }
  // From its body.
  void stop() noexcept { swapcontext(&own_, &caller_); }

 private:
  static void enter() {
    Fiber& self = *current;
    self.body_();
    self.is_done_ = true;
  }

  static inline thread_local Fiber* current = nullptr;
  std::vector<std::byte> stack_;
  std::function<void()> body_;
  bool is_done_ = true;
  ucontext_t own_{};
  ucontext_t caller_{};
};

}  // namespace papaya
