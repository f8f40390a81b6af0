// A node in one process: threads as ranks, with the shared memory and the objects that each process would have.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "algorithms/transport/deposit_arena.hpp"
#include "algorithms/transport/messages.hpp"
#include "algorithms/transport/shared_notified.hpp"

namespace papaya {

constexpr std::size_t capacity = 65536;

// Of three times that something is done again. A sanitizer makes everything ten times as long, and what it looks for it
// sees at the first.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int thorough = 1;
#else
constexpr int thorough = 3;
#endif

inline std::vector<const Descriptor*> algorithms_for(Collective collective, bool arrival_order) {
  std::vector<const Descriptor*> found;
  for (const Descriptor* descriptor : registry())
    if ((descriptor->collective == collective ||
         (collective == Collective::allgatherv && descriptor->serves_allgatherv)) &&
        (arrival_order || (!descriptor->needs_arrival_order && !descriptor->predefined_only)))
      found.push_back(descriptor);
  return found;
}

inline std::vector<std::int64_t> default_values(const Descriptor& descriptor) {
  std::vector<std::int64_t> values;
  for (const Parameter& parameter : descriptor.parameters) values.push_back(parameter.fallback);
  return values;
}

// The default values, and those by which small messages are served otherwise.
inline std::vector<std::vector<std::int64_t>> parameter_sets(const Descriptor& descriptor) {
  std::vector<std::vector<std::int64_t>> sets = {default_values(descriptor)};
  for (std::size_t i = 0; i < descriptor.parameters.size(); ++i)
    if (descriptor.parameters[i].name == "self_serve_bytes") {
      sets.push_back(sets[0]);
      sets.back()[i] = 0;
    }
  return sets;
}

// Trees by NUMA node also where that changes the bits of a result.
inline std::vector<std::int64_t> numa_trees_always(const Descriptor& descriptor) {
  std::vector<std::int64_t> values = default_values(descriptor);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (descriptor.parameters[i].name == "numa_trees") values[i] = 2;
  return values;
}

// For hierarchical algorithms, by turns: all ranks on one node, in pairs, on two nodes in turn, each on its own, and
// all but the first on one.
inline Nodes some_nodes(int ranks) {
  static int turn = 0;
  std::vector<int> keys;
  for (int rank = 0; rank < ranks; ++rank)
    keys.push_back(std::array{0, rank / 2, rank % 2, rank, rank == 0 ? 0 : 1}[static_cast<std::size_t>(turn % 5)]);
  ++turn;
  return nodes_by(keys);
}

// Messages between threads: as those that MPI sends eagerly, or as those that it does not let go before they are
// received.
class Mailbox {
 public:
  explicit Mailbox(int ranks, bool is_eager = true)
      : ranks_(ranks), is_eager_(is_eager), boxes_(static_cast<std::size_t>(ranks * ranks)) {}

  // What `rank` sends and receives by.
  std::unique_ptr<Messages> of(int rank) { return std::make_unique<End>(*this, rank); }
  int sent() const { return sent_.load(); }

 private:
  struct Box {
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<std::vector<std::byte>> messages;
  };
  Box& box(int from, int to) { return boxes_[static_cast<std::size_t>(from * ranks_ + to)]; }

  class End final : public Messages {
   public:
    End(Mailbox& mailbox, int rank) : mailbox_(mailbox), rank_(rank) {}
    void send(int to, const void* data, std::size_t bytes) noexcept override {
      begin_send(to, data, bytes);
      while (!are_sent()) std::this_thread::yield();
    }
    bool are_sent() noexcept override {
      for (int to = 0; to < mailbox_.ranks_ && !mailbox_.is_eager_; ++to) {
        Box& box = mailbox_.box(rank_, to);
        const std::lock_guard lock(box.mutex);
        if (!box.messages.empty()) return false;
      }
      return true;
    }
    bool has_received(int from, void* data, std::size_t room, std::size_t& bytes) noexcept override {
      Box& box = mailbox_.box(from, rank_);
      const std::lock_guard lock(box.mutex);
      // Some take a while.
      if (box.messages.empty() || ++asked_ % 3 == 0) return false;
      bytes = box.messages.front().size();
      if (bytes > room) std::abort();
      if (bytes != 0) std::memcpy(data, box.messages.front().data(), bytes);
      box.messages.pop_front();
      return true;
    }
    void begin_send(int to, const void* data, std::size_t bytes) noexcept override {
      Box& box = mailbox_.box(rank_, to);
      const auto* const begin = static_cast<const std::byte*>(data);
      const std::lock_guard lock(box.mutex);
      box.messages.emplace_back(begin, begin + bytes);
      ++mailbox_.sent_;
      box.filled.notify_one();
    }
    void receive(int from, void* data, std::size_t bytes) noexcept override {
      Box& box = mailbox_.box(from, rank_);
      std::unique_lock lock(box.mutex);
      box.filled.wait(lock, [&] { return !box.messages.empty(); });
      if (box.messages.front().size() != bytes) std::abort();
      std::memcpy(data, box.messages.front().data(), bytes);
      box.messages.pop_front();
    }

   private:
    Mailbox& mailbox_;
    const int rank_;
    unsigned asked_ = 0;
  };

  const int ranks_;
  const bool is_eager_;
  std::vector<Box> boxes_;
  std::atomic<int> sent_{0};
};

// Where the ranks of a node deposit.
class Arenas {
 public:
  Arenas(int ranks, std::size_t bytes, bool concurrent, void (*release)(std::int64_t, std::size_t) noexcept = nullptr,
         bool (*populate)(std::byte*, std::size_t, bool) noexcept = nullptr)
      : window_(static_cast<std::byte*>(
            ::operator new (static_cast<std::size_t>(ranks) * bytes + 4096, std::align_val_t{4096}))) {
    for (int rank = 0; rank < ranks; ++rank) {
      arenas_.push_back(std::make_unique<DepositArena>());
      arenas_.back()->open({.window = window_,
                            .offset = 4096 + static_cast<std::size_t>(rank) * bytes,
                            .bytes = bytes,
                            .concurrent = concurrent,
                            .populate = populate,
                            .release = release});
    }
  }
  ~Arenas() {
    arenas_.clear();
    ::operator delete (window_, std::align_val_t{4096});
  }
  Arenas(const Arenas&) = delete;
  Arenas& operator=(const Arenas&) = delete;
  DepositArena& rank(int r) { return *arenas_[static_cast<std::size_t>(r)]; }

 private:
  std::byte* const window_;
  std::vector<std::unique_ptr<DepositArena>> arenas_;
};

// What carries a rank's writes in place of its wire through shared memory, to which it gives them in the end.
using Carrier = std::unique_ptr<Notified> (*)(int rank, Notified& memory);

// How a Node serves.
struct NodeOptions {
  bool arrival_order = false;             // sums may be made in the order of arrival
  std::vector<std::int64_t> values = {};  // of the algorithm's parameters; empty: their defaults
  ReadMemory read = nullptr;
  std::uint64_t first_round = 1;
  std::vector<topology::Location> locations = {};
  std::size_t most_bytes = capacity;
  bool wire_only = false;  // no memory that ranks share, also of an algorithm that knows nodes
  Mailbox* mailbox = nullptr;
  bool is_lean = false;  // only what is small, in Descriptor::lean_bytes
  Carrier carrier = nullptr;
};

// The shared memory of a node, and one Policy and one Prepared per rank, as each process would have. What may borrow
// memory does, from arenas that no other Node has or from those of some ranks.
class Node {
 public:
  Node(const Descriptor& descriptor, wait::Mode mode, Arenas& arenas, const std::vector<int>& members,
       std::size_t own_bytes = 0, Mailbox* mailbox = nullptr)
      : policies_(members.size()), nodes_(some_nodes(static_cast<int>(members.size()))) {
    const int ranks = static_cast<int>(members.size());
    const bool is_lean = descriptor.lean_bytes != nullptr;
    const std::size_t largest = arenas.rank(0).largest_bytes();
    make_region(is_lean ? descriptor.lean_bytes(ranks, capacity, largest)
                        : descriptor.control_bytes(ranks, largest, own_bytes));
    for (int rank = 0; rank < ranks; ++rank) {
      Team team = team_of(rank, ranks, mode, false, nullptr, 1);
      team.deposits = &arenas.rank(members[static_cast<std::size_t>(rank)]);
      team.own_bytes = own_bytes;
      if (mailbox != nullptr) messages_.push_back(mailbox->of(rank));
      if (mailbox != nullptr) team.messages = messages_.back().get();
      prepared_.push_back(descriptor.prepare(team, is_lean ? capacity : largest, default_values(descriptor)));
    }
  }
  Node(const Descriptor& descriptor, int ranks, wait::Mode mode, NodeOptions options = {})
      : policies_(static_cast<std::size_t>(ranks)),
        locations_(std::move(options.locations)),
        nodes_(some_nodes(ranks)) {
    const std::vector<std::int64_t> values = options.values.empty() ? default_values(descriptor) : options.values;
    std::size_t most_bytes = options.most_bytes;
    // One region for each node, if the algorithm knows nodes.
    const bool in_levels = descriptor.segment != nullptr && descriptor.region_bytes != nullptr && !options.wire_only;
    const Layout layout{ranks, in_levels ? &nodes_ : nullptr};
    const std::size_t wire_bytes = shared_bytes(descriptor, layout, most_bytes, values).wire;
    std::vector<std::size_t> regions;
    std::size_t all = wire_bytes;
    for (const std::vector<int>& on_node : nodes_.ranks) {
      regions.push_back(all);
      if (in_levels) all += descriptor.region_bytes(static_cast<int>(on_node.size()), most_bytes, values);
    }
    const bool borrows = descriptor.control_bytes != nullptr;
    constexpr std::size_t own_bytes = 2048;
    // Four slots of as much.
    if (borrows || options.is_lean) own_arenas_ = std::make_unique<Arenas>(ranks, 2 * 4 * most_bytes, false);
    if (options.is_lean) {
      all += descriptor.lean_bytes(ranks, most_bytes, own_arenas_->rank(0).largest_bytes());
    } else if (borrows) {
      most_bytes = own_arenas_->rank(0).largest_bytes();
      all += descriptor.control_bytes(ranks, most_bytes, own_bytes);
    } else if (!in_levels && descriptor.region_bytes != nullptr && !options.wire_only) {
      all += descriptor.region_bytes(ranks, most_bytes, values);
    }
    make_region(all);
    if (options.mailbox != nullptr && in_levels)
      for (const std::vector<int>& on_node : nodes_.ranks)
        node_mailboxes_.push_back(std::make_unique<Mailbox>(static_cast<int>(on_node.size())));
    for (int rank = 0; rank < ranks; ++rank) {
      Team team = team_of(rank, ranks, mode, options.arrival_order, options.read, options.first_round);
      if (borrows || options.is_lean) {
        team.deposits = &own_arenas_->rank(rank);
        team.own_bytes = own_bytes;
      }
      if (options.mailbox != nullptr) messages_.push_back(options.mailbox->of(rank));
      if (options.mailbox != nullptr) team.messages = messages_.back().get();
      if (in_levels) {
        team.nodes = &nodes_;
        if (options.mailbox != nullptr) {
          const int node = nodes_.of_rank[static_cast<std::size_t>(rank)];
          const std::vector<int>& on_node = nodes_.ranks[static_cast<std::size_t>(node)];
          const auto position = std::find(on_node.begin(), on_node.end(), rank) - on_node.begin();
          messages_.push_back(node_mailboxes_[static_cast<std::size_t>(node)]->of(static_cast<int>(position)));
          team.node_messages = messages_.back().get();
        }
        team.region += regions[static_cast<std::size_t>(nodes_.of_rank[static_cast<std::size_t>(rank)])];
      }
      if (descriptor.segment != nullptr) {
        wires_.push_back(std::make_unique<SharedNotified>(region_, team.rank, *team.policy,
                                                          descriptor.segment(layout, most_bytes, values)));
        if (options.carrier != nullptr) wires_.push_back(options.carrier(team.rank, *wires_.back()));
        team.wire = wires_.back().get();
      }
      prepared_.push_back(descriptor.prepare(team, most_bytes, values));
    }
  }
  ~Node() {
    prepared_.clear();  // ends by looking into the region
    ::operator delete (region_, std::align_val_t{4096});
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Prepared& rank(int r) { return *prepared_[static_cast<std::size_t>(r)]; }
  wait::Policy& policy(int r) { return policies_[static_cast<std::size_t>(r)]; }
  int size() const { return static_cast<int>(prepared_.size()); }
  const Nodes& nodes() const { return nodes_; }
  int sent_on_nodes() const {
    int sent = 0;
    for (const auto& mailbox : node_mailboxes_) sent += mailbox->sent();
    return sent;
  }

  // As in MPI_Comm_free on one rank.
  void end(int r) { prepared_[static_cast<std::size_t>(r)].reset(); }
  const std::byte* region() const { return region_; }
  std::size_t region_bytes() const { return region_bytes_; }

 private:
  void make_region(std::size_t bytes) {
    region_bytes_ = bytes;
    region_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096}));
    std::memset(region_, 0, bytes);
  }
  Team team_of(int rank, int ranks, wait::Mode mode, bool arrival_order, ReadMemory read, std::uint64_t first_round) {
    wait::Policy& policy = policies_[static_cast<std::size_t>(rank)];
    policy.configure(mode, {.cores = 1, .ranks = ranks, .board = nullptr, .rank = rank, .ns_per_tick = 1.0}, nullptr);
    return {rank, ranks, arrival_order, region_, &policy, read, locations_, first_round};
  }

  std::byte* region_ = nullptr;
  std::size_t region_bytes_ = 0;
  std::unique_ptr<Arenas> own_arenas_;
  std::vector<wait::Policy> policies_;
  std::vector<topology::Location> locations_;
  const Nodes nodes_;
  std::vector<std::unique_ptr<Notified>> wires_;
  std::vector<std::unique_ptr<Mailbox>> node_mailboxes_;
  std::vector<std::unique_ptr<Messages>> messages_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

template <class Body>
void on_ranks(int ranks, Body body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace papaya
