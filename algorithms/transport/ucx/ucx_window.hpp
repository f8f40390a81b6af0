// The job's UCX, by libpapaya-ucx.so, if that is there: one worker and one arena for each process, and the
// addresses of all ranks, by which those of a communicator are connected when it is set up.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/transport/arena.hpp"
#include "algorithms/transport/link.hpp"
#include "algorithms/transport/on_failure.hpp"
#include "algorithms/transport/ucx/ucx_plugin.hpp"

namespace papaya {

// What UCX reads from the environment when it starts: set there for that moment, or left alone, since other threads of
// the program may read it. Where MPI has started UCX already all that it then lacks is longer receives over TCP, with
// which long messages are up to 1.6 times as fast.
enum class UcxEnvironment : bool { as_it_is, set_for_a_moment };

class UcxWindow {
 public:
  // Collective over `world`, whose error handler must return. `folder` holds the plugin. False, on all ranks
  // alike, if it cannot be; then `why` says so on rank 0, in words that follow "PAPAYA_TRANSPORT=ucx: ".
  bool create(MPI_Comm world, std::size_t bytes, const char* folder, std::string& why, OnFailure on_failure,
              UcxEnvironment environment) noexcept;
  void free() noexcept;  // collective
  bool exists() const noexcept { return arena_.base() != nullptr; }

  // As Transport's.
  Link begin_connecting(const std::vector<int>& members) noexcept;
  Link link(const std::vector<int>& members) noexcept;

  void progress() noexcept {
    if (!worker_->progress()) end_after_failure();
  }
  // The others wait for what will never come, and cannot be told: as after an error in a collective of MPI's
  // own, the job ends.
  [[noreturn]] void end_after_failure() noexcept;

  Arena& arena() noexcept { return arena_; }
  ucx::Worker& worker() noexcept { return *worker_; }
  MPI_Comm world() const noexcept { return world_; }
  int rank() const noexcept { return rank_; }

 private:
  enum class Failure : int;
  Failure open(std::size_t bytes, const char* folder, std::string& why, OnFailure on_failure,
               UcxEnvironment environment) noexcept;
  bool exchange_addresses() noexcept;
  // Collective over `comm`, whose ranks are these of the world: false, on all of them alike, unless each
  // reaches all.
  bool connect(const std::vector<int>& members, MPI_Comm comm) noexcept;
  // Until the request is complete, with UCX's progress: the others may need it.
  void wait_for(MPI_Request& request) noexcept;

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  std::unique_ptr<ucx::Worker> worker_;
  Arena arena_;
  std::vector<std::byte> addresses_;
  std::vector<int> address_offsets_;  // by rank, and the end
};

}  // namespace papaya
