// hierarchical_allgather and hierarchical_alltoall, with threads as ranks of several nodes.
#include "algorithms/leaders_exchange.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

constexpr int layouts = 5;  // of some_nodes()

const Descriptor& algorithm(Collective collective) {
  return *find_algorithm(collective,
                         collective == Collective::alltoall ? "hierarchical_alltoall" : "hierarchical_allgather");
}

// Sends as MPI and UCX send long messages: only while the sender makes progress. A slow one takes a while to begin each
// message, so that those for it have come before it looks.
class LazyWire final : public Notified {
 public:
  LazyWire(Notified& memory, bool is_slow) : memory_(memory), is_slow_(is_slow) {
    segment_ = memory.segment();
    bell_ = &memory.bell();
  }
  void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                    std::uint64_t value) noexcept override {
    if (is_slow_) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    writes_.push_back({peer, offset, source, bytes, id, value});
  }
  bool are_sources_free() noexcept override { return writes_.empty(); }
  void release_sources() noexcept override { progress(); }
  std::uint64_t look(int id) noexcept override { return memory_.look(id); }
  std::uint64_t reset(int id) noexcept override { return memory_.reset(id); }
  void progress() noexcept override {
    for (const Write& write : writes_)
      memory_.write_notify(write.peer, write.offset, write.source, write.bytes, write.id, write.value);
    writes_.clear();
  }
  // What a process's waits call (wait::Policy::poke); here each thread is one.
  static thread_local LazyWire* of_thread;
  static void poke() {
    if (of_thread != nullptr) of_thread->progress();
  }

 private:
  struct Write {
    int peer;
    std::size_t offset;
    const void* source;
    std::size_t bytes;
    int id;
    std::uint64_t value;
  };
  Notified& memory_;
  const bool is_slow_;
  std::vector<Write> writes_;
};
thread_local LazyWire* LazyWire::of_thread = nullptr;

// Small chunks, so that a call has several fragments, and a message several pieces.
std::vector<std::int64_t> values_with(std::int64_t leaders) {
  return {4096, leaders};
}

// Some calls, with as many ranks on a node as the layout whose turn it is has there.
void check_blocks(Collective collective, int ranks, const std::vector<std::int64_t>& values, std::size_t most_bytes,
                  const std::vector<std::size_t>& counts) {
  const Reduction reduction = reduction_for(true, true);
  Node node(algorithm(collective), ranks, wait::Mode::automatic, {.values = values, .most_bytes = most_bytes});
  INFO(name_of(collective) << ", " << ranks << " ranks on " << node.nodes().count() << " nodes, " << values.back()
                           << " leaders, blocks of up to " << most_bytes << " bytes");
  std::atomic<int> wrong{0};
  on_ranks(ranks, [&](int rank) {
    wait::Site site;
    for (int number = 0; number < 6 * thorough; ++number) {
      if (number % ranks == rank) std::this_thread::sleep_for(std::chrono::microseconds(200));
      Call call(collective, reduction, rank, ranks, number, counts[static_cast<std::size_t>(number) % counts.size()],
                number % 4 == 0);
      node.rank(rank).run(call.operands(), site);
      if (!call.is_right()) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("blocks of one to many fragments on nodes of all sizes, with as many leaders as they have", "[protocol]") {
  for (const Collective collective : {Collective::allgather, Collective::alltoall})
    for (const int ranks : {3, 5, 8, 13})
      for (const std::int64_t leaders : {0, 1, 3})
        for (int layout = 0; layout < layouts; ++layout)
          check_blocks(collective, ranks, values_with(leaders), capacity, {1, 64, 767, 2, 2048, 33});
}

TEST_CASE("set-ups for blocks of few bytes, whose pieces and phases are as small", "[protocol]") {
  for (const Collective collective : {Collective::allgather, Collective::alltoall})
    for (const int ranks : {3, 5, 13})
      for (const std::size_t most : {1, 5, 64})
        for (int layout = 0; layout < layouts; ++layout)
          check_blocks(collective, ranks, default_values(algorithm(collective)), most * sizeof(Matrix), {most, 1});
}

TEST_CASE("leaders that wait on their nodes move the messages that others wait for", "[protocol]") {
  // Ranks 0 and 1 on node 0, 2 and 3 on node 1, 4 and 5 on node 2. Rank 0 sends to 2, which leads node 1 with 3, and 3
  // to 1. Once both have what is for them, 0 waits on its node for 1, and 3 for 2.
  constexpr int ranks = 6;
  static std::vector<LazyWire*> wires;
  const Reduction reduction = reduction_for(true, true);
  for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
    std::unique_ptr<Node> node;
    const auto is_as_above = [&] { return node->nodes().count() == 3 && node->nodes().ranks[0].size() == 2; };
    do {
      node.reset();
      wires.assign(ranks, nullptr);
      node = std::make_unique<Node>(
          algorithm(collective), ranks, wait::Mode::automatic,
          NodeOptions{.values = values_with(2), .carrier = [](int rank, Notified& memory) -> std::unique_ptr<Notified> {
                        auto wire = std::make_unique<LazyWire>(memory, rank == 0 || rank == 3);
                        wires[static_cast<std::size_t>(rank)] = wire.get();
                        return wire;
                      }});
    } while (!is_as_above());
    for (int rank = 0; rank < ranks; ++rank)
      node->policy(rank).configure(wait::Mode::automatic, {.cores = 2, .ranks = ranks, .rank = rank}, LazyWire::poke);
    std::atomic<int> wrong{0};
    on_ranks(ranks, [&](int rank) {
      LazyWire::of_thread = wires[static_cast<std::size_t>(rank)];
      wait::Site site;
      for (int number = 0; number < 6 * thorough; ++number) {
        Call call(collective, reduction, rank, ranks, number, 33, number % 4 == 0);
        node->rank(rank).run(call.operands(), site);
        if (!call.is_right()) ++wrong;
      }
      // As MPI_Finalize does: others wait for its last messages.
      LazyWire::of_thread->progress();
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("whoever waits long for a late node names its leader and nobody else", "[protocol]") {
  const Reduction reduction = reduction_for(true, true);
  for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
    constexpr int ranks = 5;
    // Each rank on a node of its own.
    std::unique_ptr<Node> node;
    do
      node = std::make_unique<Node>(algorithm(collective), ranks, wait::Mode::automatic,
                                    NodeOptions{.values = values_with(0)});
    while (node->nodes().count() != ranks);
    static std::atomic<int> reports;
    static int late;
    // In the thread that waits. Those that came a little later than it may be missing at first: then it is asked again.
    const auto report = [](void* stalled, double) {
      const auto& prepared = *static_cast<const Prepared*>(stalled);
      for (int rank = 0; rank < ranks; ++rank)
        if (prepared.is_missing(rank) != (rank == late)) return false;
      ++reports;
      return true;
    };
    for (int rank = 0; rank < ranks; ++rank) node->policy(rank).set_stall(0.01, report);
    for (late = 0; late < ranks; ++late) {
      reports = 0;
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        Call call(collective, reduction, rank, ranks, late, 40, false);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (rank == late && reports < ranks - 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        node->rank(rank).run(call.operands(), site);
        if (!call.is_right()) ++wrong;
      });
      INFO(name_of(collective) << ", rank " << late);
      CHECK(wrong == 0);
      CHECK(reports == ranks - 1);
    }
  }
}

}  // namespace papaya
