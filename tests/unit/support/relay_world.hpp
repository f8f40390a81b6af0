// Ranks of several nodes with relays, over a wire on which every write is under way until the test lets it land. Who
// moves next, a rank, its thread or a write, is for the test to choose. A move of a rank or of its thread goes as far
// as it gets; what threads that share words of memory do to each other in between is tested with those
// (node_world.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/weak/partial_allreduce.hpp"
#include "tests/unit/support/exploration.hpp"

namespace papaya {

struct RelayJob {
  std::vector<int> node_sizes;
  std::uint64_t lag;
  std::uint64_t calls;
  bool has_threads;
  Starter starter = Starter::first;
  int group = 0;  // a group allreduce
  std::uint64_t period = 1;

  int ranks() const { return std::accumulate(node_sizes.begin(), node_sizes.end(), 0); }
};
inline std::string describe(const RelayJob& job) {
  std::string nodes;
  for (const int size : job.node_sizes) nodes += (nodes.empty() ? "" : "+") + std::to_string(size);
  return std::string(job.group != 0                  ? "wait_avoiding_group"
                     : job.starter == Starter::first ? "solo_allreduce"
                                                     : "majority_allreduce") +
         ": nodes of " + nodes + ", lag " + std::to_string(job.lag) + ", " + std::to_string(job.calls) + " calls" +
         (job.group == 0 ? "" : ", groups of " + std::to_string(job.group)) + (job.has_threads ? ", threads" : "");
}

// `Subject` says what is to be run: Element and Algorithm, how these are made, and a Ledger of each rank that checks
// its results.
template <class Subject>
class RelayWorld {
  using Element = typename Subject::Element;

 public:
  using Job = RelayJob;
  static std::size_t fibers_for(const RelayJob& /*job*/) { return 0; }

  RelayWorld(const RelayJob& job, std::vector<Fiber>& /*fibers*/)
      : job_(job), nodes_(nodes_of(job)), reduction_(Subject::reduction()) {
    request_ = {.ranks = job.ranks(),
                .count = elements,
                .element_bytes = sizeof(Element),
                .reduction = &reduction_,
                .nodes = &nodes_,
                .values = values_};
    values_[0] = static_cast<std::int64_t>(job.lag);
    const SegmentShape shape = Subject::segment(job, request_);
    const std::size_t region_lines = (Subject::region_bytes(job, request_) + sizeof(Line) - 1) / sizeof(Line);
    regions_.assign(job.node_sizes.size(), std::vector<Line>(region_lines));
    queues_.resize(static_cast<std::size_t>(size() * size()));
    ranks_.resize(static_cast<std::size_t>(size()));
    for (int rank = 0; rank < size(); ++rank) {
      Rank& one = at(rank);
      one.segment.resize((shape.bytes + sizeof(Line) - 1) / sizeof(Line));
      one.numbers.resize(static_cast<std::size_t>(shape.notifications));
      one.contribution.resize(elements);
      one.result.resize(elements);
      one.wire = std::make_unique<Wire>(*this, rank);
      one.ledger = std::make_unique<typename Subject::Ledger>(rank, job, request_);
      one.algorithm = Subject::prepare({.rank = rank,
                                        .size = size(),
                                        .arrival_order = false,
                                        .region = regions_[static_cast<std::size_t>(node_of(rank))].data()->bytes,
                                        .policy = &policy_,
                                        .wire = one.wire.get()},
                                       job, request_);
    }
  }
  ~RelayWorld() { is_abandoned_ = true; }
  RelayWorld(const RelayWorld&) = delete;
  RelayWorld& operator=(const RelayWorld&) = delete;

  // Ranks, then their threads, then the pairs of ranks whose first write may land.
  std::vector<int> can_move() const {
    std::vector<int> all;
    for (int rank = 0; rank < size(); ++rank) {
      const Rank& one = ranks_[static_cast<std::size_t>(rank)];
      if (!one.has_ended && (one.has_news || !one.is_waiting)) all.push_back(rank);
      if (job_.has_threads && one.thread_has_news && !one.has_ended) all.push_back(size() + rank);
    }
    for (int pair = 0; pair < size() * size(); ++pair)
      if (!queues_[static_cast<std::size_t>(pair)].empty() && takes(ranks_[static_cast<std::size_t>(pair % size())]))
        all.push_back(2 * size() + pair);
    return all;
  }
  void move(int which) {
    if (which >= 2 * size()) return land(which - 2 * size());
    const int rank = which % size();
    Rank& self = at(rank);
    const bool is_thread = which >= size();
    (is_thread ? self.thread_has_news : self.has_news) = false;
    const StateDigest::Value before = memory();
    if (is_thread)
      self.algorithm->stand_in();
    else
      go_on(rank);
    self.is_waiting = self.is_in_call || (self.call == job_.calls && !self.has_ended);
    if (memory() == before) return;
    for (const int other : nodes_.ranks[static_cast<std::size_t>(node_of(rank))]) {
      if (other != rank || is_thread) at(other).has_news = true;
      if (other != rank || !is_thread) at(other).thread_has_news = true;
    }
  }
  bool is_over() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.has_ended; });
  }
  const std::string& fault() const noexcept { return fault_; }

  StateDigest::Value state() const {
    StateDigest digest;
    const auto put = [&digest](std::uint64_t word) { digest.put(word); };
    put(memory().first);
    put(memory().second);
    for (const Rank& one : ranks_) {
      digest.put(one.segment.data()->bytes, one.segment.size() * sizeof(Line));
      for (const std::uint64_t number : one.numbers) put(number);
      one.ledger->put_state(put);
      put(one.call << 8 | std::uint64_t{one.is_in_call} << 4 | std::uint64_t{one.has_news} << 3 |
          std::uint64_t{one.thread_has_news} << 2 | std::uint64_t{one.is_waiting} << 1 | std::uint64_t{one.has_ended});
    }
    for (const auto& queue : queues_) {
      put(queue.size());
      for (const Write& write : queue) {
        if (write.bytes != 0) digest.put(static_cast<const std::byte*>(write.source), write.bytes);
        put(write.offset << 16 | static_cast<std::uint64_t>(write.id));
        put(write.value);
      }
    }
    return digest.value();
  }

 private:
  static constexpr std::size_t elements = 1;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct Write {
    std::size_t offset;
    const void* source;
    std::size_t bytes;
    int id;
    std::uint64_t value;
  };
  class Wire final : public Notified {
   public:
    Wire(RelayWorld& world, int rank) : world_(world), rank_(rank) {
      segment_ = world.at(rank).segment.data()->bytes;
      bell_ = &own_bell_;
    }
    void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                      std::uint64_t value) noexcept override {
      world_.queues_[static_cast<std::size_t>(rank_ * world_.size() + peer)].push_back(
          {offset, source, bytes, id, value});
    }
    std::uint64_t look(int id) noexcept override { return world_.at(rank_).numbers[static_cast<std::size_t>(id)]; }
    std::uint64_t reset(int /*id*/) noexcept override { std::abort(); }
    bool are_sources_free() noexcept override {
      if (world_.is_abandoned_) return true;
      for (int to = 0; to < world_.size(); ++to)
        for (const Write& write : world_.queues_[static_cast<std::size_t>(rank_ * world_.size() + to)])
          if (write.bytes != 0) return false;
      return true;
    }
    void progress() noexcept override {}

   private:
    RelayWorld& world_;
    const int rank_;
    wait::Doorbell own_bell_{};
  };
  struct Rank {
    std::vector<Line> segment;
    std::vector<std::uint64_t> numbers;
    std::unique_ptr<Wire> wire;
    std::unique_ptr<typename Subject::Ledger> ledger;
    std::vector<Element> contribution;
    std::vector<Element> result;
    std::uint64_t call = 0;
    bool is_in_call = false;
    bool is_waiting = false;  // in a call, or to end
    bool has_ended = false;
    bool has_news = true;
    bool thread_has_news = true;
    std::unique_ptr<typename Subject::Algorithm> algorithm;
  };

  static Nodes nodes_of(const RelayJob& job) {
    // Ranks go round the nodes, as far as these have room.
    std::vector<int> keys;
    for (int round = 0; static_cast<int>(keys.size()) < job.ranks(); ++round)
      for (std::size_t node = 0; node < job.node_sizes.size(); ++node)
        if (round < job.node_sizes[node]) keys.push_back(static_cast<int>(node));
    return nodes_by(keys);
  }
  // What a rank and its thread change for each other and for their node.
  StateDigest::Value memory() const {
    StateDigest digest;
    for (const auto& region : regions_) digest.put(region.data()->bytes, region.size() * sizeof(Line));
    for (const Rank& one : ranks_) {
      digest.put(one.call);
      one.algorithm->put_state([&digest](std::uint64_t word) { digest.put(word); });
    }
    return digest.value();
  }
  int size() const { return request_.ranks; }
  int node_of(int rank) const { return nodes_.of_rank[static_cast<std::size_t>(rank)]; }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  // Without threads: as by MPI's messages, which only papaya takes.
  bool takes(const Rank& reader) const { return job_.has_threads || reader.is_waiting; }

  void go_on(int rank) {
    Rank& self = at(rank);
    if (self.is_in_call) {
      if (self.algorithm->progress()) end_call(rank);
    } else if (self.call < job_.calls) {
      ++self.call;
      self.is_in_call = true;
      self.contribution.assign(elements, Element::of(rank, self.call));
      self.algorithm->start({.send = self.contribution.data(),
                             .receive = self.result.data(),
                             .count = elements,
                             .bytes = elements * sizeof(Element),
                             .root = -1,
                             .reduction = &reduction_});
      if (self.algorithm->progress()) end_call(rank);
    } else if (self.algorithm->may_end()) {
      self.has_ended = true;
      const std::uint64_t withdrawn = self.algorithm->withdraw(self.result.data());
      if (const char* const found = self.ledger->fault_at_end(self.result, withdrawn, self.algorithm->status()))
        fail(rank, found);
    }
  }
  void end_call(int rank) {
    Rank& self = at(rank);
    self.is_in_call = false;
    self.has_news = true;
    if (const char* const found = self.ledger->fault_in(self.result, self.algorithm->status(), self.call))
      fail(rank, found);
  }
  void land(int pair) {
    auto& queue = queues_[static_cast<std::size_t>(pair)];
    const Write write = queue.front();
    queue.pop_front();
    Rank& reader = at(pair % size());
    if (reader.has_ended) fail(pair % size(), "a write to a rank that has ended");
    if (write.bytes != 0) std::memcpy(reader.segment.data()->bytes + write.offset, write.source, write.bytes);
    if (reader.numbers[static_cast<std::size_t>(write.id)] >= write.value) fail(pair % size(), "a number that falls");
    reader.numbers[static_cast<std::size_t>(write.id)] = write.value;
    for (Rank* const one : {&reader, &at(pair / size())}) one->has_news = one->thread_has_news = true;
  }
  void fail(int rank, const std::string& what) {
    if (fault_.empty())
      fault_ = "rank " + std::to_string(rank) + ", call " + std::to_string(at(rank).call) + ": " + what;
  }

  const RelayJob job_;
  const Nodes nodes_;
  const Reduction reduction_;
  std::array<std::int64_t, 4> values_{};
  WeakRequest request_{};
  wait::Policy policy_;
  std::vector<std::vector<Line>> regions_;
  std::vector<std::deque<Write>> queues_;  // by writer and reader
  bool is_abandoned_ = false;
  std::string fault_;
  std::vector<Rank> ranks_;
};

}  // namespace papaya
