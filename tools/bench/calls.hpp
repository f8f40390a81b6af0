// The collectives as the benchmark calls them, with data that differs at every call and results that are
// checked.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/collective.hpp"

namespace papaya::bench {

// Which function a call goes to: MPI's own, past papaya's trampolines, or MPI_X as a program calls it.
enum class Path : std::uint8_t { native, preloaded };

// Switches algorithms in the preloaded library, if that can do so. Every rank calls alike, outside
// collectives.
class Switch {
 public:
  Switch();
  bool is_there() const noexcept { return select_ != nullptr; }
  bool counts_replaced() const noexcept { return replaced_ != nullptr; }
  bool to(Collective collective, const std::string& selection) const;
  // Calls of this process that an algorithm of papaya has served.
  std::uint64_t replaced(Collective collective) const;

 private:
  int (*select_)(const char* collective, const char* selection);
  unsigned long (*replaced_)(const char* collective);
};

class Calls {
 public:
  Calls(Collective collective, std::size_t largest_bytes, int root, MPI_Comm comm);

  void set_size(std::size_t bytes);

  // Everything that call number `call` sends, and what it must not find in the result.
  void fill(std::uint64_t call);
  // The same for the first and last element alone: what can be afforded between calls back to back.
  void touch(std::uint64_t call) noexcept;
  void run(Path path);
  // A call that nobody leaves before all have come: across nodes what ranks may leave early is set up there.
  void meet(Path path) { functions_[static_cast<int>(path)].barrier(comm_); }
  // Is the whole result right? After fill(call) and run; `touched` says which number touch was called with
  // since.
  bool check(std::uint64_t call, std::uint64_t touched) const;
  bool check(std::uint64_t call) const { return check(call, call); }

 private:
  struct Functions {
    decltype(&MPI_Allreduce) allreduce;
    decltype(&MPI_Reduce) reduce;
    decltype(&MPI_Bcast) bcast;
    decltype(&MPI_Alltoall) alltoall;
    decltype(&MPI_Allgather) allgather;
    decltype(&MPI_Barrier) barrier;
  };

  bool has_result() const noexcept { return collective_ != Collective::reduce || rank_ == root_; }

  Collective collective_;
  int root_;
  MPI_Comm comm_;
  int rank_ = 0;
  int ranks_ = 1;
  std::size_t bytes_ = 0;   // message or block
  Functions functions_[2];  // by Path
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> send_, receive_;
};

}  // namespace papaya::bench
