#include "algorithms/transport/ucx/ucx_notified.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

namespace papaya {

UcxNotified::UcxNotified(UcxWindow& window, const std::vector<int>& members, const wait::Policy& policy,
                         const SegmentShape& shape)
    : ArenaNotified(window.arena(), members.size(), shape),
      window_(window),
      policy_(policy),
      members_(members),
      copies_all_(shape.leaves_alone),
      is_outstanding_(members.size()) {
  outstanding_.reserve(members.size());
}

std::unique_ptr<UcxNotified> UcxNotified::offer(UcxWindow& window, const std::vector<int>& members,
                                                const wait::Policy& policy, const SegmentShape& shape) {
  std::unique_ptr<UcxNotified> self(new UcxNotified(window, members, policy, shape));
  if (!self->allocate()) return nullptr;
  return self;
}

// UCX still refers to it.
UcxNotified::~UcxNotified() {
  release_sources();
  progress_until([this] {
    return std::none_of(copies_.begin(), copies_.end(),
                        [this](const auto& one) { return window_.worker().is_needed(one->sources); });
  });
}

// Null where there is no memory for it.
UcxNotified::Copy* UcxNotified::copy(const void* source, std::size_t bytes) noexcept try {
  std::unique_ptr<Copy> one;
  if (!copies_.empty() && !window_.worker().is_needed(copies_.front()->sources)) {
    one = std::move(copies_.front());
    copies_.pop_front();
  } else {
    one = std::make_unique<Copy>();
  }
  const auto* const from = static_cast<const std::byte*>(source);
  one->data.assign(from, from + bytes);
  copies_.push_back(std::move(one));
  return copies_.back().get();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void UcxNotified::write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                               std::uint64_t value) noexcept {
  const int target = members_[static_cast<std::size_t>(peer)];
  if (target == window_.rank()) {
    std::byte* const own = window_.arena().base();
    if (bytes != 0) std::memcpy(own + segment_at(peer, offset), source, bytes);
    // Release: partner of the acquire in look(); the bytes come first.
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(own + notification_at(peer, id)))
        .store(value, std::memory_order_release);
    return;
  }
  ucx::Outstanding outstanding = ucx::Outstanding::none;
  Copy* const copied = copies_all_ && bytes != 0 ? copy(source, bytes) : nullptr;
  if (!window_.worker().write(target, segment_at(peer, offset), copied != nullptr ? copied->data.data() : source, bytes,
                              notification_at(peer, id), value, copied != nullptr ? copied->sources : sources_,
                              outstanding))
    window_.end_after_failure();
  if (copies_all_ && bytes != 0 && copied == nullptr) release_sources();
  const std::lock_guard lock(mutex_);
  if (outstanding == ucx::Outstanding::none || is_outstanding_[static_cast<std::size_t>(peer)]) return;
  is_outstanding_[static_cast<std::size_t>(peer)] = true;
  outstanding_.push_back(peer);
}

// Others than the team's ranks may depend on this rank's MPI meanwhile.
template <class Done>
void UcxNotified::progress_until(Done&& done) noexcept {
  for (unsigned looks = 1; !done(); ++looks) {
    progress();
    if (looks % 16 != 0) continue;
    policy_.poke();
    if (policy_.oversubscribed()) sched_yield();
  }
}

void UcxNotified::release_sources() noexcept {
  progress_until([&] { return are_sources_free(); });
}

bool UcxNotified::may_leave() noexcept {
  if (!are_sources_free()) return false;
  const std::lock_guard lock(mutex_);
  if (outstanding_.empty()) return true;
  for (; !outstanding_.empty(); outstanding_.pop_back()) {
    const int peer = outstanding_.back();
    if (window_.worker().outstanding(members_[static_cast<std::size_t>(peer)]) != ucx::Outstanding::none) return false;
    is_outstanding_[static_cast<std::size_t>(peer)] = false;
  }
  if (!window_.worker().drain()) window_.end_after_failure();
  return true;
}

void UcxNotified::leave() noexcept {
  progress_until([&] { return may_leave(); });
}

std::uint64_t UcxNotified::look(int id) noexcept {
  const std::uint64_t value = ArenaNotified::look(id);
#if !defined(__x86_64__)
  // What another thread's progress has copied there is seen in its order by who takes the lock after it.
  if (value != 0) window_.worker().is_needed(sources_);
#endif
  return value;
}

}  // namespace papaya
