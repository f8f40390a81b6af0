#include "interpose/async_setup.hpp"

#include "algorithms/waiting/switch_over.hpp"
#include "interpose/communicator.hpp"
#include "interpose/prepare.hpp"
#include "interpose/runtime.hpp"

namespace papaya {

namespace {

// Of the set-up, which is the nth of its communicator on all ranks alike.
std::uint64_t key_of(const Communicator& state, const Setup& setup) noexcept {
  std::uint64_t key = state.id;
  for (const std::uint64_t part : {setup.ordinal, std::uint64_t{setup.trace_number}, std::uint64_t{setup.capacity}}) {
    // splitmix64
    key += part + 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
    key = (key ^ key >> 27) * 0x94d049bb133111ebu;
    key ^= key >> 31;
  }
  return key | 1;
}

}  // namespace

Reason AsyncSetup::step(Communicator& state, Setup& setup, std::uint64_t call) noexcept {
  NodeWindow& window = runtime().window;
  if (!state.is_known || !window.exists())
    return setup.failure = state.is_known ? Reason::no_shared_memory : Reason::unknown_origin;
  if (!is_joined_) {
    // Memory that is not there now may be there later; who asks less and less often loses nothing by it.
    if (call < next_try_) return Reason::no_shared_memory;
    NodeWindow::Wish wishes[2];
    for (const bool is_lean : {false, true}) {
      setup.is_lean = is_lean;
      wishes[is_lean ? 1 : 0] = {shared_on_one_node(state, setup).total(), bytes_to_leave(state, setup)};
    }
    const std::size_t count = may_be_lean(state, setup) ? 2 : 1;
    const NodeWindow::Attached found = window.attach(key_of(state, setup), {wishes, count});
    if (found.offset < 0) {
      next_try_ = call + call / 4 + 1;
      return Reason::no_shared_memory;
    }
    setup.offset = found.offset;
    setup.is_lean = found.wish == 1;
    setup.region_bytes = wishes[found.wish].bytes;
    prepared_ = prepare_on_one_node(state, setup);
    switch_over::join(window.agreement(setup.offset), state.size, call, prepared_ != nullptr);
    is_joined_ = true;
    return Reason::few_calls;
  }
  switch (switch_over::enter(window.agreement(setup.offset), call)) {
    case switch_over::Verdict::not_yet:
      return Reason::few_calls;
    case switch_over::Verdict::from_now_on:
      setup.prepared = std::move(prepared_);
      return Reason::none;
    case switch_over::Verdict::never:
      prepared_.reset();
      setup.wire.reset();
      window.release(setup.offset, setup.region_bytes);
      setup.offset = -1;
      break;
  }
  return setup.failure = Reason::no_shared_memory;
}

}  // namespace papaya
