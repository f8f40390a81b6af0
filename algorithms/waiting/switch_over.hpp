// From which call on the ranks of a team use what they have set up, agreed on in one word of shared memory and without
// anybody waiting. Calls are numbered alike on all ranks, from 1. Each rank joins once it is ready, and from then on
// enters each call here. Who joins last closes the agreement: it holds from the call after the last one that any rank
// has entered, so that a rank which is ahead has left no call behind that the others would make another way. If any
// rank could not get ready, what is agreed on is that it is never used.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace papaya::switch_over {

// Bit 63: closed; 62: some rank could not get ready; 48 to 61: ranks that have joined; below: the last call entered.
using Word = std::atomic<std::uint64_t>;

inline constexpr std::uint64_t closed = std::uint64_t{1} << 63;
inline constexpr std::uint64_t failed = std::uint64_t{1} << 62;
inline constexpr std::uint64_t one_rank = std::uint64_t{1} << 48;
inline constexpr std::uint64_t calls = one_rank - 1;
inline constexpr int most_ranks = (1 << 14) - 1;

// This rank of `ranks` is ready (or cannot be), and makes `call` as before.
inline void join(Word& word, int ranks, std::uint64_t call, bool is_ready) noexcept {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    next = ((seen & ~calls) + one_rank) | std::max(seen & calls, call);
    if (!is_ready) next |= failed;
    if ((next & ~(closed | failed)) / one_rank == static_cast<std::uint64_t>(ranks)) next |= closed;
    // Acquire and release: who sees it closed sees what every rank did to get ready.
  } while (!word.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
}

enum class Verdict { not_yet, from_now_on, never };

// A rank that has joined enters `call`: by the way agreed on, or as before.
inline Verdict enter(Word& word, std::uint64_t call) noexcept {
  std::uint64_t seen = word.load(std::memory_order_acquire);  // acquire: partner of the release in join
  for (;;) {
    if ((seen & closed) != 0) {
      if ((seen & failed) != 0) return Verdict::never;
      return call > (seen & calls) ? Verdict::from_now_on : Verdict::not_yet;
    }
    if ((seen & calls) >= call) return Verdict::not_yet;
    // A read-modify-write on the word that is closed: either this call is counted, or the agreement is seen.
    if (word.compare_exchange_weak(seen, (seen & ~calls) | call, std::memory_order_acq_rel, std::memory_order_acquire))
      return Verdict::not_yet;
  }
}

}  // namespace papaya::switch_over
