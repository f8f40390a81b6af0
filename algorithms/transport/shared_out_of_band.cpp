#include "algorithms/transport/shared_out_of_band.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "algorithms/waiting/futex.hpp"

namespace papaya {

// The two are written by turns, and a rank sleeps on one of them.
struct SharedOutOfBand::Header {
  std::atomic<std::uint32_t> here;             // ranks that have come to the meeting that is going on
  alignas(64) std::atomic<std::uint32_t> met;  // how many meetings have ended
};

SharedOutOfBand::Header& SharedOutOfBand::header() const noexcept {
  static_assert(sizeof(Header) <= header_bytes);
  return *reinterpret_cast<Header*>(memory_);
}

// Two banks: to write one again a rank must have left the meeting after it, which nobody enters before they have read.
std::byte* SharedOutOfBand::bank() const noexcept {
  return memory_ + header_bytes + (met_ % 2) * bank_bytes(static_cast<std::size_t>(ranks()));
}

void SharedOutOfBand::meet() noexcept {
  constexpr int looks_before_sleep = 100;
  constexpr std::uint64_t first_sleep_ns = 100'000;
  constexpr std::uint64_t longest_sleep_ns = 1'000'000;
  Header& shared = header();
  const std::uint32_t before = met_++;
  // Acquire and release, among all who come: what each has written before is seen by whoever sees the meeting end.
  if (shared.here.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(ranks())) {
    shared.here.store(0, std::memory_order_relaxed);  // seen by whoever has acquired what follows, and comes again
    shared.met.store(before + 1, std::memory_order_release);
    futex_wake_all(shared.met);
    return;
  }
  std::uint64_t sleep_ns = first_sleep_ns;
  for (int looks = 0; shared.met.load(std::memory_order_acquire) == before; ++looks) {
    progress_();
    if (looks < looks_before_sleep) {
      sched_yield();
    } else if (futex_wait(shared.met, before, sleep_ns) == Sleep::until_timeout) {
      sleep_ns = std::min(sleep_ns + sleep_ns / 8, longest_sleep_ns);
    }
  }
}

void SharedOutOfBand::broadcast(void* data, std::size_t bytes) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(bytes - done, most_broadcast_bytes);
    std::byte* const there = bank();
    std::byte* const here = static_cast<std::byte*>(data) + done;
    if (rank() == 0) std::memcpy(there, here, piece);
    meet();
    if (rank() != 0) std::memcpy(here, there, piece);
    done += piece;
  }
}

void SharedOutOfBand::gather(const void* mine, std::size_t bytes, void* all) noexcept {
  std::byte* const slots = bank() + most_broadcast_bytes;
  std::memcpy(slots + static_cast<std::size_t>(rank()) * most_gathered_bytes, mine, bytes);
  meet();
  for (std::size_t other = 0; other < static_cast<std::size_t>(ranks()); ++other)
    std::memcpy(static_cast<std::byte*>(all) + other * bytes, slots + other * most_gathered_bytes, bytes);
}

}  // namespace papaya
