// A segment of a program's, for one-sided notified communication: what stands behind papaya_segment. It is a wire
// (algorithms/transport/notified.hpp) where ranks meet, with two differences. A notification may be set to the same
// value twice, which a wire between nodes could not tell from once: the number that is sent has the count of the rank's
// writes in its upper half. And each rank has a notification more for every other: its farewell, after which nothing
// comes from there.
//
// Ranks may die. Of one that is lost nothing is waited for, and what is written to it is an error: its transport has
// failed, its process has ended, or the program says so.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/error.hpp"
#include "api/meeting.hpp"
#include "api/peer_processes.hpp"
#include "api/process.hpp"

namespace papaya::weak {

class NotifiedSegment final : public Member {
 public:
  // Null, on all ranks alike, where there is an error.
  static std::unique_ptr<NotifiedSegment> create(MPI_Comm comm, std::size_t bytes, int notifications, Error& error);
  ~NotifiedSegment();
  NotifiedSegment(const NotifiedSegment&) = delete;
  NotifiedSegment& operator=(const NotifiedSegment&) = delete;

  std::byte* address() const noexcept { return wire().segment(); }
  const char* place() const noexcept { return meeting_->place(); }

  Error write(int rank, std::size_t offset, const void* source, std::size_t bytes, int id, unsigned value);
  // Both wait for so many seconds; less than 0: for as long as it takes.
  bool wait_for_sources(double seconds);
  Error wait(int first, int count, double seconds, int& id);
  Error reset(int id, unsigned& value);

  // Looks at each rank and says which ones are lost.
  void show_states(int* states);
  Error exclude(int rank);

  // Collective. An error, with which it stays as it is, where a rank is lost.
  Error close();
  // Leaves everything where it is. Others may still write to it, and MPI has requests of it: never to be destroyed.
  void discard() noexcept;

  int raise(const Error& error, const char* function) const {
    return weak::raise(error, function, meeting_->comm(), handler_);
  }

  void progress() noexcept override { meeting_->progress(); }
  Birth birth() const noexcept override { return birth_; }
  MPI_Comm comm() const noexcept override { return meeting_->comm(); }
  void stop_thread() noexcept override {}
  void end() noexcept override {
    if (close().is_set()) discard();
  }
  std::string stalled(double seconds) const override;

 private:
  NotifiedSegment() = default;
  Error prepare(std::size_t bytes, int notifications, Settings& settings);
  enum class Loss : std::uint8_t { none, unreachable, ended, excluded };
  Error check_rank(int rank) const;
  Error check_ids(int first, int count) const;
  Loss look_at(int rank);
  void lose(int rank, Loss how);
  void look_at_next();
  int first_lost();
  Error error_of(int rank) const;
  void leave_process() noexcept;
  Notified& wire() const noexcept { return *meeting_->team().wire; }
  std::uint64_t numbered(unsigned value) noexcept { return ++writes_ << 32 | value; }
  int find(int first, int count) noexcept;
  bool have_all_left() noexcept;
  template <class Ready>
  bool wait_until(Ready&& ready, double seconds);

  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;  // the program's
  std::unique_ptr<Meeting> meeting_;
  std::size_t bytes_ = 0;
  int notifications_ = 0;
  std::uint64_t writes_ = 0;  // this rank's
  unsigned looks_ = 0;        // without waiting
  int next_ = 0;              // where looking goes on
  PeerProcesses processes_;
  std::vector<Loss> losses_;  // by rank
  int next_peer_ = 0;         // that is looked at
  std::uint64_t looked_ = 0;  // at the last one
  std::string name_;          // of the communicator, for people
  std::string awaited_;       // now, for people
  wait::Site site_;
  bool is_entered_ = false;
  bool has_left_ = false;
  Birth birth_{};
};

}  // namespace papaya::weak
