// Notified communication between the ranks of a simulation (SimGrid's SMPI): the backend with which the
// algorithms' own sources run on a machine that is not there.
//
// All ranks live in one process and take turns on one thread, each at its own simulated time. A write travels
// as one flow through SimGrid's network, where it shares links with all others, and is put into the other's
// segment when it has come: one-sided, no matching call. What a processor does (starting a message, copying,
// reducing) is only noted, and takes its time when somebody else could notice: before the next message
// leaves, before the rank waits, and at the end.
//
// Nothing else of papaya knows of it. A wait in Notified::wait pokes the policy's progress function, which
// here is Processor::poke and comes back when something has come.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <vector>

#include "algorithms/transport/notified.hpp"

namespace papaya::simulation {

// What the simulated machine's software and memory cost. The network is the platform's.
struct Costs {
  double message_s;            // to start a message into the network, for the processor
  double node_message_s;       // to raise a flag on the node
  double copy_s_per_byte;      // one core
  double reduce_s_per_byte;    // one core, of one operand
  double node_latency_s;       // between cores of a node
  double pack_s_per_byte = 0;  // of a message into the network that its sender puts together first
};

// The core that a rank runs on, and where the rank waits until something comes, on whichever of its wires.
// One for each rank, made and destroyed by it.
class Processor {
 public:
  Processor();
  ~Processor();
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  // Of the rank that asks.
  static Processor& own();

  void work(double seconds) noexcept { owed_s_ += seconds; }
  void catch_up();

  // By whoever brings something.
  void announce_arrival();

  // The same for every rank, in its own policy: never sleeps in the kernel, and pokes at once.
  static void configure(wait::Policy& policy);

  // What is owed passes; then, if nothing has come since the last look, until something does.
  static void poke();

 private:
  double owed_s_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t seen_ = 0;  // of those, by this rank in poke()
  bool asleep_ = false;
  simgrid::s4u::SemaphorePtr awake_ = simgrid::s4u::Semaphore::create(0);
};

class SimulatedNotified final : public Notified {
 public:
  // Collective over `comm`. `keeps_data`: what is written arrives; without, it takes its time alone, and the
  // ranks have one segment together.
  static std::unique_ptr<SimulatedNotified> create(MPI_Comm comm, const SegmentShape& shape, const Costs& costs,
                                                   Processor& processor, bool keeps_data);
  ~SimulatedNotified() override;

  void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                    std::uint64_t value) noexcept override;
  bool redirect(std::size_t offset, std::size_t bytes, void* place) noexcept override;
  std::uint64_t look(int id) noexcept override;
  std::uint64_t reset(int id) noexcept override;
  void progress() noexcept override {}

  // Since the last call of it, of all wires: writes that came when their rank had ended already.
  static std::uint64_t take_late_writes();

 private:
  using Memory = std::unique_ptr<std::byte, void (*)(void*)>;
  struct Message;
  struct Courier;
  struct Job;  // what the ranks of the wire share

  SimulatedNotified() = default;
  void send(std::unique_ptr<Message> message);
  bool may_depart(const Message& message) const noexcept;
  void depart(std::unique_ptr<Message> message);
  void arrive(std::unique_ptr<Message> message);
  void take(const Message& message);
  static void carry(std::unique_ptr<Message> message, double depart_s);
  static void deliver(std::unique_ptr<Message> message);

  std::shared_ptr<Job> job_;
  int rank_ = 0;
  Costs costs_{};
  Processor* processor_ = nullptr;
  bool keeps_data_ = true;
  Memory own_segment_{nullptr, nullptr};
  std::vector<std::uint64_t> notifications_;
  std::map<std::size_t, std::byte*> redirected_;  // by where in the segment
  wait::Doorbell own_bell_{};

  // Messages of one rank to another arrive in their order, whatever the network does.
  std::vector<std::uint32_t> sent_;      // by peer
  std::vector<std::uint32_t> received_;  // by peer
  std::map<std::pair<int, std::uint32_t>, std::unique_ptr<Message>> early_;

  // This rank's way into the network.
  double free_at_s_ = 0;
  std::size_t in_flight_bytes_ = 0;
  std::deque<std::unique_ptr<Message>> queued_;
};

}  // namespace papaya::simulation
