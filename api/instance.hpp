// A weakly consistent collective of a program's: what stands behind papaya_weak.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
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

class Instance final : public Member {
 public:
  // Instance over `comm`. Null, on all ranks alike, where there is an error.
  static std::unique_ptr<Instance> create(MPI_Comm comm, const Wish& wish, Error& error);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  Error start(const void* contribution, void* result);
  Error flush();
  Error withdraw(void* contributions, long long& calls);
  // True once the call is done; nothing has to be under way.
  bool test();
  // For so many seconds; less than 0: for as long as it takes.
  bool wait(double seconds);
  bool is_under_way() const noexcept { return is_under_way_; }
  papaya_weak_status status() const;

  void set_limit(double seconds) noexcept { limit_ = seconds; }
  double limit() const noexcept { return limit_ > 0 ? limit_ : -1; }
  // The limit has passed: whom it waits for.
  Error late() const;

  // Instance. On an error, which others may not have, it must never be destroyed.
  Error close();

  int raise(const Error& error, const char* function) const noexcept {
    return weak::raise(error, function, meeting_->comm(), handler_);
  }

  void progress() noexcept override { meeting_->progress(); }
  MPI_Comm comm() const noexcept override { return meeting_->comm(); }
  void end() noexcept override;

 private:
  Instance() = default;
  Error check(const Wish& wish);
  Error compare(const Wish& wish, const Error& found) const;
  Error prepare(const Wish& wish, const Settings& settings);
  void finish();
  void record(MPI_Comm comm, const Wish& wish);
  // Which buffers of this rank's count.
  struct Part {
    bool reads;
    bool writes;
  };
  Part part() const noexcept;
  bool is_missing(const void* buffer) const noexcept;
  template <class Ready>
  bool wait_for(Ready&& ready, double seconds);

  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;  // the program's
  std::unique_ptr<Meeting> meeting_;
  WeakChoice choice_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;  // a copy of the program's
  Reduction reduction_;
  ReductionContext context_{};
  WeakRequest request_{};
  std::unique_ptr<Weak> algorithm_;
  std::unique_ptr<RunningTotal> total_;  // if contributions add up
  Recording recording_;
  wait::Site site_;
  double limit_ = 0;
  bool is_entered_ = false;
  bool has_been_freed_ = false;

  // While it is freed: the calls made, and their negative, of this rank and the least of all; MPI may still write there
  // when that is given up.
  std::array<std::int64_t, 2> calls_{};
  std::array<std::int64_t, 2> least_calls_{};

  // Of the call under way.
  bool is_under_way_ = false;
  Staging contribution_;
  Staging result_;
};

}  // namespace papaya::weak
