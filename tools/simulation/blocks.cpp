#include "tools/simulation/blocks.hpp"

#include <mpi.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <simgrid/kernel/Timer.hpp>
#include <utility>
#include <vector>

namespace papaya::simulation {

namespace {

namespace s4u = simgrid::s4u;

constexpr std::size_t fragment_bytes = 32 << 10;

// All ranks are in one process, and none of its variables is anybody's own.
struct Machine {
  Costs costs{};
  bool keeps_all = false;  // allgather: a rank copies all that comes to it once more, to where it belongs
};
Machine machine;

// How far each rank of a node is, as the others see it.
struct Board {
  std::vector<std::uint64_t> progress;
  std::vector<Processor*> processors;
};

// All ranks of a node make their phases in the same order.
std::shared_ptr<Board> board_of(int rank, int ranks) {
  using Key = std::pair<const s4u::Host*, int>;
  static auto& boards = *new std::map<Key, std::weak_ptr<Board>>;
  static auto& made = *new std::map<aid_t, int>;
  std::weak_ptr<Board>& found = boards[{s4u::this_actor::get_host(), made[s4u::this_actor::get_pid()]++}];
  std::shared_ptr<Board> board = found.lock();
  if (board == nullptr) {
    board = std::make_shared<Board>();
    board->progress.resize(static_cast<std::size_t>(ranks));
    board->processors.resize(static_cast<std::size_t>(ranks));
    found = board;
  }
  board->processors[static_cast<std::size_t>(rank)] = &Processor::own();
  return board;
}

class Phase : public Prepared {
 public:
  explicit Phase(const Team& team)
      : rank_(team.rank), ranks_(team.size), board_(board_of(team.rank, team.size)), processor_(Processor::own()) {}
  bool is_missing(int) const override { return false; }

 protected:
  void copy(std::size_t bytes) const { processor_.work(static_cast<double>(bytes) * machine.costs.copy_s_per_byte); }
  void raise(std::uint64_t value) const {
    processor_.work(machine.costs.node_message_s);
    processor_.catch_up();
    simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock() + machine.costs.node_latency_s,
                                       [board = board_, rank = rank_, value] {
                                         board->progress[static_cast<std::size_t>(rank)] = value;
                                         for (Processor* const one : board->processors) one->announce_arrival();
                                       });
  }
  void wait_for(int rank, std::uint64_t value) const {
    while (board_->progress[static_cast<std::size_t>(rank)] < value) Processor::poke();
  }

  const int rank_;
  const int ranks_;

 private:
  const std::shared_ptr<Board> board_;
  Processor& processor_;
};

class Broadcast final : public Phase {
 public:
  using Phase::Phase;
  bool run(const Operands& operands, wait::Site&) override {
    for (std::size_t offset = 0; offset < operands.bytes; offset += fragment_bytes) {
      ++number_;
      if (rank_ == operands.root)
        copy_and_raise(std::min(fragment_bytes, operands.bytes - offset));
      else
        take(operands.root, std::min(fragment_bytes, operands.bytes - offset));
    }
    if (machine.keeps_all) copy(operands.bytes);
    return true;
  }

 private:
  void copy_and_raise(std::size_t bytes) {
    copy(bytes);
    raise(number_);
  }
  void take(int root, std::size_t bytes) {
    wait_for(root, number_);
    copy(bytes);
  }
  std::uint64_t number_ = 0;
};

class Gathering final : public Phase {
 public:
  using Phase::Phase;
  bool run(const Operands& operands, wait::Site&) override {
    ++number_;
    copy(operands.bytes);
    raise(number_);
    for (int i = 1; i <= ranks_; ++i) {
      wait_for((rank_ + i) % ranks_, number_);
      copy(operands.bytes * (machine.keeps_all ? 2 : 1));
    }
    return true;
  }

 private:
  std::uint64_t number_ = 0;
};

std::size_t no_bytes(int, std::size_t, std::span<const std::int64_t>) {
  return 64;
}
// Before the library's own: the least limit counts (NodePhase::algorithm_for).
constexpr std::size_t limit = std::numeric_limits<std::size_t>::max() - 1;
template <class T>
std::unique_ptr<Prepared> prepare(const Team& team, std::size_t, std::span<const std::int64_t>) {
  return std::make_unique<T>(team);
}
constexpr Descriptor broadcast = {.collective = Collective::bcast,
                                  .name = "simulated_broadcast",
                                  .summary = "a model",
                                  .source = "",
                                  .one_node = true,
                                  .max_bytes = limit,
                                  .is_node_phase = true,
                                  .region_bytes = no_bytes,
                                  .prepare = prepare<Broadcast>};
constexpr Descriptor gathering = {.collective = Collective::allgather,
                                  .name = "simulated_gathering",
                                  .summary = "a model",
                                  .source = "",
                                  .one_node = true,
                                  .max_bytes = limit,
                                  .is_node_phase = true,
                                  .region_bytes = no_bytes,
                                  .prepare = prepare<Gathering>};
const Registration registrations[] = {Registration(broadcast), Registration(gathering)};

std::vector<std::byte> shared_send;
std::vector<std::byte> shared_receive;
double begin_s = 0;
double last_s = 0;

void make_buffers(int rank, std::size_t bytes) {
  if (rank != 0) return;
  shared_send.assign(bytes, std::byte{});
  shared_receive.assign(bytes, std::byte{});
}

double time_us(int rank, const std::function<void()>& call) {
  // All have prepared; the first to come says when it begins.
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    begin_s = s4u::Engine::get_clock() + 1e-3;
    last_s = 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  s4u::this_actor::sleep_until(begin_s);
  call();
  last_s = std::max(last_s, s4u::Engine::get_clock());
  s4u::this_actor::sleep_for(1e-3);
  MPI_Barrier(MPI_COMM_WORLD);
  return (last_s - begin_s) * 1e6;
}

}  // namespace

double blocks_us(const tuning::Rule& rule, const Nodes& nodes, std::size_t bytes, const Costs& costs,
                 Processor& processor, wait::Policy& policy) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::size_t ranks = nodes.of_rank.size();
  const bool is_alltoall = rule.algorithm->collective == Collective::alltoall;
  if (rank == 0) machine = {costs, !is_alltoall};
  make_buffers(rank, bytes * ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  Costs costs_between_nodes = costs;
  if (is_alltoall) costs_between_nodes.pack_s_per_byte = costs.copy_s_per_byte;
  const std::size_t capacity = std::max(bytes, std::size_t{4096});
  const std::unique_ptr<SimulatedNotified> wire = SimulatedNotified::create(
      MPI_COMM_WORLD, rule.algorithm->segment({static_cast<int>(ranks), &nodes}, capacity, rule.values),
      costs_between_nodes, processor, false);
  Team team{};
  team.rank = rank;
  team.size = static_cast<int>(ranks);
  team.policy = &policy;
  team.wire = wire.get();
  team.nodes = &nodes;
  std::unique_ptr<Prepared> prepared = rule.algorithm->prepare(team, capacity, rule.values);
  Operands operands{};
  operands.send = shared_send.data();
  operands.receive = shared_receive.data();
  operands.bytes = bytes;
  operands.root = -1;
  wait::Site site;
  const double us = time_us(rank, [&] {
    prepared->run(operands, site);
    processor.catch_up();
  });
  prepared.reset();
  MPI_Barrier(MPI_COMM_WORLD);
  return us;
}

double native_blocks_us(Collective collective, std::size_t bytes) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  make_buffers(rank, bytes * static_cast<std::size_t>(ranks));
  const auto block = static_cast<int>(bytes);
  const auto call = [&] {
    if (collective == Collective::alltoall)
      MPI_Alltoall(shared_send.data(), block, MPI_BYTE, shared_receive.data(), block, MPI_BYTE, MPI_COMM_WORLD);
    else
      MPI_Allgather(shared_send.data(), block, MPI_BYTE, shared_receive.data(), block, MPI_BYTE, MPI_COMM_WORLD);
  };
  MPI_Barrier(MPI_COMM_WORLD);
  call();  // what SMPI makes at the first call (communicators of nodes and leaders) is none of the others' business
  return time_us(rank, call);
}

}  // namespace papaya::simulation
