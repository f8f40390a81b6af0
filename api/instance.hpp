// A weakly consistent collective of a program's: what stands behind papaya_weak.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/weak/running_total.hpp"
#include "algorithms/weak/weak.hpp"
#include "api/choice.hpp"
#include "api/error.hpp"
#include "api/meeting.hpp"
#include "api/process.hpp"
#include "api/recording.hpp"
#include "include/papaya_weak.h"
#include "interpose/reduction.hpp"
#include "interpose/staging.hpp"

namespace papaya::weak {

// What a program asks for.
struct Wish {
  WeakCollective collective;
  MPI_Count count;
  MPI_Datatype type;
  MPI_Op op = MPI_OP_NULL;  // reductions
  int root = -1;            // where there is one
  double share = 1;         // thresholds
  const char* algorithm = nullptr;
  bool accumulates = false;  // contributions add up
  struct Value {
    std::string_view parameter;
    std::int64_t value;
  };
  std::vector<Value> values = {};
};

// Whose turn it is to move a call on: a thread that waits for it, or one that waits elsewhere and only tries. Who waits
// holds its own while it tries others', so no std::mutex, which must not be tried by who holds it.
class Turn {
 public:
  bool try_lock() noexcept { return !is_taken_.exchange(true, std::memory_order_acquire); }  // partner in unlock()
  void lock() noexcept;
  void unlock() noexcept { is_taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_taken_{false};
};

class Instance final : public Member {
 public:
  // Instance over `comm`. Null, on all ranks alike, where there is an error.
  static std::unique_ptr<Instance> create(MPI_Comm comm, const Wish& wish, Error& error);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // What follows is asked for by a function of papaya's that returns to `site`.
  void called_from(const void* site) noexcept { recording_.called_from(site); }
  Error start(const void* contribution, void* result);
  Error flush();
  // NAME:parameter=value,... over PLACE, as they are in force.
  std::string info() const;
  Error withdraw(void* contributions, long long& calls);
  // True once the call is done; nothing has to be under way.
  bool test();
  // For so many seconds; less than 0: for as long as it takes.
  bool wait(double seconds);
  bool is_under_way() const noexcept { return is_under_way_; }
  papaya_weak_status status() const;
  const WeakStatus& weak_status() const noexcept { return algorithm_->status(); }

  void set_limit(double seconds) noexcept { limit_ = seconds; }
  double limit() const noexcept { return limit_ > 0 ? limit_ : -1; }
  // The limit has passed: whom it waits for.
  Error late();

  // Collective. On an error, which others may not have, it must never be destroyed.
  Error close();

  int raise(const Error& error, const char* function) const {
    return weak::raise(error, function, meeting_->comm(), handler_);
  }

  void progress() noexcept override;
  Birth birth() const noexcept override { return birth_; }
  MPI_Comm comm() const noexcept override { return meeting_->comm(); }
  void stop_thread() noexcept override { algorithm_->stop_thread(); }
  void end() noexcept override;
  std::string stalled(double seconds) const override;

 private:
  Instance() = default;
  Error check(const Wish& wish);
  void put_facts(const Wish& wish, Terms& terms) const;
  Error compare(const Terms& terms) const;
  Error prepare(const Wish& wish, Settings& settings);
  Error settle(const Wish& wish);
  bool make_algorithm(const Wish& wish);  // false: there is no memory
  void finish();
  std::string parameters() const;
  void record(MPI_Comm comm, const Wish& wish);
  // Which buffers of this rank's count.
  struct Part {
    bool reads;
    bool writes;
  };
  Part part() const noexcept;
  bool is_missing(const void* buffer) const noexcept;
  template <class Ready>
  bool wait_for(Ready&& ready, std::uint64_t deadline_ticks);
  // How far freeing has come. It goes on in MPI_Finalize where a limit has interrupted it.
  enum class Closing : std::uint8_t { not_begun, comparing, ending, leaving, done, uneven };
  bool advance_to(Closing stage);
  Error tear_down();

  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;  // the program's
  std::unique_ptr<Meeting> meeting_;
  WeakChoice choice_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;  // a copy of the program's
  Reduction reduction_;
  ReductionContext context_{};
  WeakRequest request_{};
  std::unique_ptr<Weak> algorithm_;
  std::unique_ptr<RunningTotal> total_;  // if contributions add up
  std::string name_;                     // of the collective and its communicator, for people
  Recording recording_;
  wait::Site site_;
  double limit_ = 0;
  bool is_entered_ = false;
  Birth birth_{};

  // While it is freed: the calls made, and their negative, of this rank and the least of all; MPI may still write there
  // when that is given up.
  Closing closing_ = Closing::not_begun;
  MPI_Request request_of_closing_ = MPI_REQUEST_NULL;
  std::array<std::int64_t, 2> calls_{};
  std::array<std::int64_t, 2> least_calls_{};

  // Guards the call under way. Only the thread that uses the collective begins and ends one.
  Turn turn_;
  bool is_under_way_ = false;
  Staging contribution_;
  Staging result_;
};

}  // namespace papaya::weak
