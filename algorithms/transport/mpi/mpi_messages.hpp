// What notified communication between nodes sends by MPI: messages on a communicator of papaya's own. A write is a
// nonblocking send of a header, which says where the data go and which notification to raise, with the data behind it
// in the same message (or in several, where a rank may leave at once), or where these are large in one that goes from
// the source into its place without a copy. MPI keeps the messages of one sender in order, and a notification is raised
// after all data of its sender before it. No function waits for another rank, so that a nonblocking collective may call
// any of them; and no one-sided operations are needed, of which MPI promises neither an order nor progress without the
// target.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "algorithms/transport/arena.hpp"
#include "algorithms/transport/on_failure.hpp"

namespace papaya {

class MpiMessages {
 public:
  // Writes of one user that are under way: changed under the lock, read by anybody. Relaxed would do: MPI has read a
  // source before it says so.
  struct UnderWay {
    std::atomic<std::uint32_t> sends{0};
    std::atomic<std::uint32_t> sources{0};  // of those: the ones MPI sends from the user's memory
  };

  // Collective over `comm`, whose error handler must return. `is_own`: no other messages go by it, as long as this
  // exists; else a copy is made. False, on all ranks alike, if there is no memory.
  bool create(MPI_Comm comm, std::size_t bytes, bool is_own, OnFailure on_failure) noexcept;
  void free() noexcept;  // collective
  bool exists() const noexcept { return arena_.base() != nullptr; }

  // Before others are told where they may write: until then MPI has no receives of papaya's to look through. May throw
  // std::bad_alloc.
  void start_receiving();

  Arena& arena() noexcept { return arena_; }  // of this rank's memory
  int rank() const noexcept { return rank_; }

  // Writes `bytes` to `offset` of the target's memory and then `value` to `flag_offset`, a multiple of 8. `source`
  // stays as it is, and `under_way` where it is, until that says so. Not to be called where is_inside(). A write of
  // more than `most_copied` bytes goes from the source, once the target makes progress of papaya's.
  void write(int target, std::size_t offset, const void* source, std::size_t bytes, std::size_t flag_offset,
             std::uint64_t value, UnderWay& under_way, std::size_t most_copied) noexcept;
  // What another rank writes next to these bytes of this rank's memory goes to `place`. Not to be called where
  // is_inside().
  void redirect(std::size_t offset, std::size_t bytes, void* place) noexcept;
  // Moves what is under way, and MPI with it. Nothing while another thread is at it.
  void progress() noexcept;
  // `under_way` ends before its last sends do, which need none of its sources.
  void disown(UnderWay& under_way) noexcept;
  // As Transport's. MPI may never tell of a message whether it has left, so a lost rank's are given up: their sources
  // may be changed. Not to be called where is_inside().
  bool is_lost(int target) const noexcept {
    return lost_ != nullptr && lost_[static_cast<std::size_t>(target)].load(std::memory_order_relaxed);
  }
  void lose(int target) noexcept;
  void discard() noexcept;

  // A write of up to so many bytes is copied and goes as one message. MPI sends it as it would the program's of that
  // size: so a rank that leaves early waits for its receivers only with large data, for which it natively would, too.
  static constexpr std::size_t most_inline_bytes = 16000;

  // True while this thread is in one of these functions: MPI may call papaya back out of its own progress.
  static bool is_inside() noexcept { return inside_; }

 private:
  struct Header {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::uint64_t flag_offset;
    std::uint64_t value;
  };
  static constexpr std::uint64_t no_flag = ~std::uint64_t{0};
  static constexpr int unknown = -1;  // which rank
  struct alignas(64) Message {
    Header header;
    std::byte data[most_inline_bytes];
  };
  struct Sending {
    int target;
    std::uint64_t since_ns;            // has been under way, where peers may be lost
    UnderWay* user;                    // null: disowned
    std::unique_ptr<Message> message;  // null: from the user's memory
  };
  // Has come, or its data are still to come, behind data of the same sender that are still to come.
  struct Arriving {
    int source;
    Header header;
  };
  struct Redirected {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::uint64_t awaited;  // of them, that have not come
    std::byte* place;
  };
  class Turn {
   public:
    explicit Turn(std::unique_lock<std::mutex> lock) : lock_(std::move(lock)) { inside_ = true; }
    ~Turn() { inside_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const std::unique_lock<std::mutex> lock_;
  };

  void leave_communicator() noexcept;
  bool receive_next(std::size_t slot);
  void send_copy(int target, const Header& header, const void* source, std::size_t bytes, UnderWay& under_way);
  void send(int target, std::unique_ptr<Message> message, const void* source, std::size_t bytes, UnderWay& under_way);
  void take_messages();
  void take(int source, const Message& message);
  std::byte* place_of(const Header& header) noexcept;
  void test_arriving();
  void test_sends();
  void ask_silent();
  int test_some(std::vector<MPI_Request>& requests);
  void let_go(Sending& one) noexcept;
  bool has_sends() noexcept;
  void raise(const Header& header) noexcept;
  bool check(int code, int peer = unknown);
  void give_up(int target);
  [[noreturn]] void end_after_failure() const noexcept;

  static thread_local constinit bool inside_;

  MPI_Comm comm_ = MPI_COMM_NULL;
  bool is_copy_ = false;
  int rank_ = 0;
  int ranks_ = 1;
  std::size_t memory_bytes_ = 0;
  Arena arena_;
  std::unique_ptr<std::atomic<bool>[]> lost_;  // by rank, relaxed: nothing is read by it; null: a failure ends the job

  std::mutex mutex_;  // guards what follows
  // Receives in the order of posting, which is that in which MPI gives them messages.
  std::unique_ptr<Message[]> slots_;
  std::vector<MPI_Request> receives_;
  std::size_t next_ = 0;
  // In the order of their coming; the request of one that is complete is null.
  std::vector<Arriving> arriving_;
  std::vector<MPI_Request> arriving_requests_;
  std::vector<std::uint32_t> arriving_from_;  // how many, by source
  std::vector<std::uint64_t> held_up_;        // by source: the last pass that found data missing
  std::uint64_t pass_ = 0;
  std::vector<bool> is_broken_from_;    // by source: data of it will never come
  std::vector<Redirected> redirected_;  // a few for each call under way
  std::vector<Sending> sends_;
  std::vector<MPI_Request> send_requests_;
  std::vector<std::unique_ptr<Message>> unused_;
  std::uint64_t asked_ns_ = 0;  // who is silent, last
  UnderWay asking_;
  std::vector<Sending> given_up_;  // MPI may still have them
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> failed_;  // places of requests, or ranks
};

}  // namespace papaya
