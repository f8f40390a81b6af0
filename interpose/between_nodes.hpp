// What carries data between nodes, MPI's messages or UCX, and what messages take there.
//
// Opened in MPI_Init if the selection, PAPAYA_TRANSPORT or PAPAYA_ADAPT asks for it. Otherwise in a call of a
// communicator of all ranks, once what its collectives take may be worth it (trials.cpp): until then a job pays
// nothing.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "algorithms/transport/transport.hpp"
#include "algorithms/transport/ucx/ucx_transport.hpp"
#include "base/message_times.hpp"
#include "interpose/job.hpp"

namespace papaya {

class BetweenNodes {
 public:
  // Collective over the job, in MPI_Init. `folder`: where libpapaya-ucx.so lies.
  void start(const Job& job, const char* folder);

  // Whether algorithms between nodes are ever tried. Like was_ready_at_start() it stays as it is from MPI_Init on, the
  // same on all ranks, and is what calls may go by that ranks leave early.
  bool may_be_tried() const noexcept { return may_be_tried_; }
  bool was_ready_at_start() const noexcept { return was_ready_at_start_; }

  // There is a transport, and it is known what messages take. Changes in make_ready() alone: the same on all ranks in a
  // call that none leaves early.
  bool is_ready() const noexcept { return is_measured_; }
  // make_ready() has nothing more to do, or cannot.
  bool is_done() const noexcept { return is_done_; }
  // Collective over the job, once, in a call that no rank leaves early. What it takes is about:
  static constexpr std::int64_t to_make_ready_ns = 20'000'000;
  void make_ready();

  Transport* transport() const noexcept { return published_.load(std::memory_order_acquire); }
  bool has_too_little() const noexcept { return has_too_little_; }
  const MessageTimes& network() const noexcept { return network_; }
  MPI_Comm comm() const noexcept { return comm_; }
  int largest_tag() const noexcept { return largest_tag_; }  // of `comm`; negative: there is none

  void close() noexcept;  // collective
  // Any thread.
  void progress() const noexcept {
    if (Transport* const present = transport()) present->progress();
  }

 private:
  void open(UcxEnvironment environment, bool is_named);
  void measure();

  const Job* job_ = nullptr;
  const char* folder_ = nullptr;
  bool may_be_tried_ = false;
  bool was_ready_at_start_ = false;
  bool is_done_ = false;
  bool was_opened_ = false;  // if in vain
  bool is_measured_ = false;
  std::unique_ptr<Transport> transport_;
  std::atomic<Transport*> published_{nullptr};  // `transport_`, once it is whole; release, acquired by who uses it
  MessageTimes network_;
  MPI_Comm comm_ = MPI_COMM_NULL;  // a copy of MPI_COMM_WORLD, for messages of TeamMessages
  int largest_tag_ = -1;
  bool has_too_little_ = false;  // PAPAYA_SHM_LIMIT allows no memory that ranks of other nodes write to
};

}  // namespace papaya
