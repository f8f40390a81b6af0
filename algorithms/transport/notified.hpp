// One-sided notified communication among the ranks of a team, as GASPI has it (Iakymchuk et al. 2021, section
// II): a rank writes into another's segment and raises a notification there, which is visible only after the
// data. No barrier, no matching call; who has been written to finds out by looking.
//
// A notification is a number that its id's one writer sets. Two ways to use it. Numbers that only grow (a
// sequence) are looked at and left alone: a later one says that the earlier ones have been, too. Others are
// reset to zero by their owner before their writer, which must know so, sets them again. Nothing is queued:
// what is written twice before it is looked at is seen once.
//
// What has been written to a rank it has looked at before it ends: an algorithm waits, when it is destroyed
// at the latest, for whatever is still under way to it. So each rank frees its memory by itself, whenever and
// in whatever order it likes.
//
// Behind it lie a window in shared memory (shared_notified.hpp) or, between nodes, messages of MPI or UCX
// (transport.hpp).
//
// Used by one thread at a time, as the team is. Where serves_two_threads() a second thread of the rank may use it
// meanwhile (weak/service.hpp): write_notify(), look(), progress() and are_sources_free(), which speaks of the writes
// of both. Each id has one writer and is looked at by one thread, on either side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/waiting/wait.hpp"

namespace papaya {

// Bytes in whole cache lines.
constexpr std::size_t in_lines(std::size_t bytes) noexcept {
  return (bytes + 63) / 64 * 64;
}

// Of what travels at a time, where the user does not say. With MPI's header it has less than 64 KiB, up to which Open
// MPI over TCP sends without asking the receiver.
inline constexpr std::int64_t usual_chunk_bytes = 60 << 10;

// What each rank of a team offers the others.
struct SegmentShape {
  std::size_t bytes;  // of memory that they write into; a multiple of 64
  int notifications;
  int served = 0;  // so many of them, the last, are for the second thread of each rank
  // Ranks leave calls while others write to them, and may then be in MPI: such writes, long ones too, have to leave
  // their rank all the same. They are copied for it; MPI sends them by itself, and for UCX a thread does (see
  // may_leave()).
  bool leaves_alone = false;
};

class Notified {
 public:
  virtual ~Notified() = default;
  Notified(const Notified&) = delete;
  Notified& operator=(const Notified&) = delete;

  // This rank's segment: others write into it, this rank reads. Zero at first, as its notifications are.
  std::byte* segment() const noexcept { return segment_; }

  // Writes `bytes` of `source` to `offset` of the segment of `peer`, which may be this rank, and then sets
  // its notification `id` to `value`. Returns before that has happened: the source must stay as it is until
  // release_sources().
  virtual void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                            std::uint64_t value) noexcept = 0;
  void notify(int peer, int id, std::uint64_t value) noexcept { write_notify(peer, 0, nullptr, 0, id, value); }
  // True if a source of so many bytes may be changed as soon as write_notify() has returned.
  virtual bool takes_at_once(std::size_t /*bytes*/) const noexcept { return false; }

  // What is written next to these bytes of this rank's segment, by another rank and before any other write to them, is
  // put to `place` instead: nobody has to copy it out. True, and then for all of a wire, where whatever carries the
  // data puts them in their place on this side; false: they come to the segment. Before their writer may begin.
  virtual bool redirect(std::size_t /*offset*/, std::size_t /*bytes*/, void* /*place*/) noexcept { return false; }

  // Whether what has been written from may be changed; to be asked again after progress().
  virtual bool are_sources_free() noexcept { return true; }
  // Returns when it may.
  virtual void release_sources() noexcept {}
  // A call ends: whether what has been written will arrive though this rank makes no progress of the transport any
  // more; to be asked again after progress(). It may take the progress of ranks that a call's data are still on
  // their way to. Whoever runs algorithms asks, not they; with `leaves_alone` a second thread may.
  virtual bool may_leave() noexcept { return true; }
  // Returns when it will.
  virtual void leave() noexcept {}

  // The notification's present number; everything written before it was set is in the segment.
  virtual std::uint64_t look(int id) noexcept = 0;
  // The same, and zero from then on.
  virtual std::uint64_t reset(int id) noexcept = 0;
  // GASPI's waitsome without the wait: the first id in [first, first + count) that is not zero, or -1.
  int look_for(int first, int count) noexcept {
    for (int id = first; id < first + count; ++id)
      if (look(id) != 0) return id;
    return -1;
  }

  // Rung at a notification, where that can be.
  wait::Doorbell& bell() const noexcept { return *bell_; }

  // Whether a second thread may use it, and the bell of the notifications that are for that one. Null: nothing tells,
  // the thread looks now and then.
  virtual bool serves_two_threads() const noexcept { return false; }
  virtual wait::Doorbell* service_bell() const noexcept { return nullptr; }

  // Moves what is under way; look() alone need not.
  virtual void progress() noexcept = 0;
  // Gives the core away until progress() has something to do, so long (under a second) at most. False, and at once,
  // where nothing tells: what then wakes this rank is the bell, or a timeout.
  virtual bool sleep(std::uint64_t /*nanoseconds*/) noexcept { return false; }

  // Waits until `ready()`, which looks at notifications. `stalled` goes to the stall reporter.
  template <class Ready>
  void wait(wait::Policy& policy, wait::Site& site, Ready&& ready, void* stalled) noexcept {
    while (true) {
      const std::uint32_t heard = bell_->completed.load(std::memory_order_acquire);
      if (ready()) return;
      policy.until(
          site, *bell_, heard + 1,
          [&] {
            progress();
            return ready() || bell_->completed.load(std::memory_order_relaxed) != heard;
          },
          [&] { return sleep(longest_sleep_ns); }, stalled);
    }
  }

 protected:
  Notified() = default;
  std::byte* segment_ = nullptr;
  // Rung by whoever notifies this rank, where that is a rank of this node; else sleeping ends by its timeout.
  wait::Doorbell* bell_ = nullptr;

 private:
  static constexpr std::uint64_t longest_sleep_ns =
      500'000;  // MPI, and puts that no event tells of, are looked at then
};

}  // namespace papaya
