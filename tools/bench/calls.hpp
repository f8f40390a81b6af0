// The collectives as the benchmark calls them, with data that differs at every call and results that are
// checked.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/operation.hpp"

namespace papaya::bench {

// Which function a call goes to: MPI's own, past papaya's trampolines, or MPI_X as a program calls it.
enum class Path : std::uint8_t { native, preloaded };

// Switches algorithms in the preloaded library, if that can do so. Every rank calls alike, outside
// collectives.
class Switch {
 public:
  Switch();
  bool is_there() const noexcept { return select_ != nullptr; }
  // Why papaya leaves calls on `comm` with what they are switched to to MPI: "" where it does not know. Local.
  std::string why_native(Collective collective, MPI_Comm comm, std::size_t bytes) const;
  bool counts_replaced() const noexcept { return replaced_ != nullptr; }
  bool to(Collective collective, const std::string& selection) const;
  // Calls of this process that an algorithm of papaya has served.
  std::uint64_t replaced(Collective collective) const;

 private:
  int (*select_)(const char* collective, const char* selection);
  unsigned long (*replaced_)(const char* collective);
  int (*explain_)(const char* collective, const void* comm, unsigned long bytes, char* text, unsigned long size);
};

// A row each: enumerator, name of the blocking and of the nonblocking function.
#define PAPAYA_BENCH_FUNCTIONS(ROW)                                      \
  ROW(allreduce, Allreduce, Iallreduce)                                  \
  ROW(reduce, Reduce, Ireduce)                                           \
  ROW(bcast, Bcast, Ibcast)                                              \
  ROW(alltoall, Alltoall, Ialltoall)                                     \
  ROW(alltoallv, Alltoallv, Ialltoallv)                                  \
  ROW(allgather, Allgather, Iallgather)                                  \
  ROW(allgatherv, Allgatherv, Iallgatherv)                               \
  ROW(gather, Gather, Igather)                                           \
  ROW(gatherv, Gatherv, Igatherv)                                        \
  ROW(scatter, Scatter, Iscatter)                                        \
  ROW(scatterv, Scatterv, Iscatterv)                                     \
  ROW(reduce_scatter, Reduce_scatter, Ireduce_scatter)                   \
  ROW(reduce_scatter_block, Reduce_scatter_block, Ireduce_scatter_block) \
  ROW(barrier, Barrier, Ibarrier)

// On a communicator of their own, with which the memory of the algorithms that served them goes.
class Calls {
 public:
  // Collective over `world`, as are renew() and the destructor.
  Calls(Operation operation, std::size_t largest_bytes, int root, MPI_Comm world);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  // The calls that follow are on another communicator, which no algorithm has memory for.
  void renew();
  void set_size(std::size_t bytes);
  // The calls that follow are on this one, of the same ranks; MPI_COMM_NULL: on the own one again.
  void use(MPI_Comm comm) noexcept { comm_ = comm == MPI_COMM_NULL ? own_comm_ : comm; }

  // Everything that call number `call` sends, and what it must not find in the result.
  void fill(std::uint64_t call);
  // The same for the first and last element alone: what can be afforded between calls back to back.
  void touch(std::uint64_t call) noexcept;
  // To the end; a nonblocking one is start() and wait() at once.
  void run(Path path) {
    start(path);
    wait(path);
  }
  void start(Path path);
  bool test(Path path);  // is it complete?
  void wait(Path path);
  std::string why_native(const Switch& algorithms) const {
    return algorithms.why_native(operation_.collective, comm_, bytes_);
  }
  // A call that nobody leaves before all have come: across nodes what ranks may leave early is set up there.
  void meet(Path path) { functions_[static_cast<int>(path)].barrier(comm_); }
  // Is the whole result right? After fill(call) and run; `touched` says which number touch was called with
  // since.
  bool check(std::uint64_t call, std::uint64_t touched) const;
  bool check(std::uint64_t call) const { return check(call, call); }

 private:
  struct Functions {
#define PAPAYA_BENCH_ROW(enumerator, Name, Iname)                                    \
  decltype(&MPI_##Name) enumerator; /* NOLINT(bugprone-macro-parentheses): a name */ \
  decltype(&MPI_##Iname) i##enumerator;
    PAPAYA_BENCH_FUNCTIONS(PAPAYA_BENCH_ROW)
#undef PAPAYA_BENCH_ROW
    decltype(&MPI_Test) test;
    decltype(&MPI_Wait) wait;
  };
  static Functions native_functions();

  bool is_root() const noexcept {
    return rank_ == root_;
  }
  bool sends() const noexcept {
    return !is_from_root(operation_.collective) || is_root();
  }
  bool receives() const noexcept {
    return !is_to_root(operation_.collective) || is_root();
  }
  int blocks_sent() const noexcept {
    return sends_to_each(operation_.collective) ? ranks_ : 1;
  }
  std::size_t sent_bytes() const noexcept;
  // Blocks hold words by which call, sender and receiver can be told.
  std::uint64_t word_to(std::uint64_t call, int to) const noexcept;
  bool check_sums(std::uint64_t call, std::uint64_t touched) const;
  template <class Blocking, class Nonblocking, class... Arguments>
  void call(Blocking blocking, Nonblocking nonblocking, Arguments... arguments);

  Operation operation_;
  int root_;
  const MPI_Comm world_;
  MPI_Comm own_comm_ = MPI_COMM_NULL;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  std::size_t bytes_ = 0;                   // message or block
  std::vector<int> counts_, places_;        // of the blocks, in elements: for those with a v, and MPI_Reduce_scatter
  MPI_Request request_ = MPI_REQUEST_NULL;  // of a nonblocking one
  Functions functions_[2];                  // by Path
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> send_, receive_;
};

}  // namespace papaya::bench
