// All ranks of a weakly consistent collective in one thread, with the class itself running by parts of calls, over a
// wire on which every write is under way until the test lets it land. Who moves next, a rank or a write, is for the
// test to choose.
//
// A rank's move goes as far as the rank gets with what has landed. What would land in the middle of a move lands before
// it or after it as well: a write that must not meet a reader's slot then changes what is read, or the source that is
// read late, and is found by the result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/weak/weak.hpp"

namespace papaya {

// Numbers by which states are told apart.
class LateDigest {
 public:
  using Value = std::pair<std::uint64_t, std::uint64_t>;
  void put(std::uint64_t word) noexcept {
    a_ = (a_ ^ word) * 0x9e3779b97f4a7c15u;
    a_ ^= a_ >> 29;
    b_ = (b_ + word) * 0xc2b2ae3d27d4eb4fu;
    b_ ^= b_ >> 31;
  }
  void put(const void* data, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const std::byte*>(data) + at, std::min(sizeof word, bytes - at));
      put(word);
    }
  }
  Value value() const noexcept { return {a_, b_}; }
  struct Hash {
    std::size_t operator()(const Value& value) const noexcept { return value.first; }
  };

 private:
  std::uint64_t a_ = 1;
  std::uint64_t b_ = 2;
};

struct LateJob {
  const char* name;  // of the collective
  WeakRequest request;
  std::uint64_t calls;
  // Each rank's calls alternate with barriers of the program's own.
  bool has_barriers = false;
  // What is written to a rank lands only while it is in a call: as by MPI's messages, which only papaya takes.
  bool lands_in_calls = false;
  // A rank's operands of a call, to be set, and what is wrong with the result, null for nothing.
  std::function<Operands(int rank, std::uint64_t call, std::vector<double>& send, std::vector<double>& receive)> begin;
  std::function<const char*(int rank, std::uint64_t call, const std::vector<double>& send,
                            const std::vector<double>& receive, const WeakStatus& status)>
      fault;
};

class LateWorld {
 public:
  explicit LateWorld(const LateJob& job) : job_(job), ranks_(static_cast<std::size_t>(job.request.ranks)) {
    const WeakDescriptor& descriptor = *find_weak(job.name);
    const SegmentShape shape = descriptor.segment(job.request);
    queues_.resize(ranks_.size() * ranks_.size());
    for (int rank = 0; rank < size(); ++rank) {
      Rank& one = at(rank);
      one.segment.resize(shape.bytes / sizeof(double));
      one.numbers.resize(static_cast<std::size_t>(shape.notifications));
      one.seen = one.numbers;
      one.written.resize(ranks_.size());
      one.wire = std::make_unique<Wire>(*this, rank);
      one.weak = descriptor.prepare({.rank = rank,
                                     .size = size(),
                                     .arrival_order = false,
                                     .region = nullptr,
                                     .policy = &policy_,
                                     .wire = one.wire.get()},
                                    job.request);
    }
  }
  ~LateWorld() { is_abandoned_ = true; }  // what is under way has landed, as far as destructors see
  LateWorld(const LateWorld&) = delete;
  LateWorld& operator=(const LateWorld&) = delete;

  // Ranks, and after them the pairs of ranks whose first write may land, by number.
  std::vector<int> can_move() const {
    std::vector<int> all;
    for (int rank = 0; rank < size(); ++rank)
      if (can_go_on(ranks_[static_cast<std::size_t>(rank)])) all.push_back(rank);
    for (std::size_t pair = 0; pair < queues_.size(); ++pair)
      if (!queues_[pair].empty() && takes(ranks_[pair % ranks_.size()])) all.push_back(size() + static_cast<int>(pair));
    return all;
  }
  void move(int which) {
    if (which >= size()) return land(which - size());
    Rank& self = at(which);
    self.has_news = false;
    if (self.is_in_call) {
      if (self.weak->progress()) end_call(which);
    } else if (self.call < job_.calls) {
      ++self.call;
      self.is_in_call = true;
      self.weak->start(job_.begin(which, self.call, self.send, self.receive));
      if (self.weak->progress()) end_call(which);
    } else {
      self.is_ending = true;
      self.has_ended = self.weak->may_end();
      if (self.has_ended && !self.kept.empty()) fail(which, "its end, without asking whether its memory has been read");
    }
    self.seen = self.numbers;
  }
  bool is_over() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.has_ended; });
  }
  const std::string& fault() const noexcept { return fault_; }

  // What a rank goes on by: its memory, what it has written and what it has seen.
  LateDigest::Value state() const {
    LateDigest digest;
    for (const Rank& one : ranks_) {
      digest.put(one.segment.data(), one.segment.size() * sizeof(double));
      digest.put(one.numbers.data(), one.numbers.size() * sizeof(std::uint64_t));
      digest.put(one.seen.data(), one.seen.size() * sizeof(std::uint64_t));
      digest.put(one.written.data(), one.written.size() * sizeof(std::uint64_t));
      digest.put(one.send.data(), one.send.size() * sizeof(double));
      digest.put(one.receive.data(), one.receive.size() * sizeof(double));
      digest.put(one.kept.size());
      digest.put(one.call << 8 | std::uint64_t{one.is_in_call} << 3 | std::uint64_t{one.has_news} << 2 |
                 std::uint64_t{one.is_ending} << 1 | std::uint64_t{one.has_ended});
    }
    for (const auto& queue : queues_) {
      digest.put(queue.size());
      for (const Write& write : queue) {
        if (write.bytes != 0) digest.put(write.source, write.bytes);
        digest.put(write.offset << 16 | static_cast<std::uint64_t>(write.id));
        digest.put(write.value);
      }
    }
    return digest.value();
  }

 private:
  struct Write {
    std::size_t offset;
    const void* source;
    std::size_t bytes;
    int id;
    std::uint64_t value;
  };

  class Wire final : public Notified {
   public:
    Wire(LateWorld& world, int rank) : world_(world), rank_(rank) {
      segment_ = reinterpret_cast<std::byte*>(world.at(rank).segment.data());
      bell_ = &own_bell_;
    }
    void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                      std::uint64_t value) noexcept override {
      ++world_.at(rank_).written[static_cast<std::size_t>(peer)];
      if (bytes != 0) {
        const auto* const begin = static_cast<const std::byte*>(source);
        world_.at(rank_).kept.push_back({begin, {begin, begin + bytes}});
      }
      world_.queue(rank_, peer).push_back({offset, source, bytes, id, value});
    }
    std::uint64_t look(int id) noexcept override {
      return world_.is_abandoned_ ? ~std::uint64_t{0} >> 1 : world_.at(rank_).numbers[static_cast<std::size_t>(id)];
    }
    std::uint64_t reset(int /*id*/) noexcept override { std::abort(); }
    bool are_sources_free() noexcept override {
      if (world_.is_abandoned_) return true;
      if (world_.has_sources_under_way(rank_)) return false;
      world_.let_sources_change(rank_);
      return true;
    }
    void progress() noexcept override {}

   private:
    LateWorld& world_;
    const int rank_;
    wait::Doorbell own_bell_{};
  };

  // What a rank has written from, and may not change before it has asked whether it may.
  struct Source {
    const std::byte* at;
    std::vector<std::byte> contents;
  };
  struct Rank {
    std::unique_ptr<Wire> wire;
    std::vector<Source> kept;
    std::vector<double> segment;
    std::vector<std::uint64_t> numbers;  // its notifications
    std::vector<std::uint64_t> seen;     // the same at its last move
    std::vector<std::uint64_t> written;  // to each rank, from the first call on
    std::vector<double> send;
    std::vector<double> receive;
    std::uint64_t call = 0;
    bool is_in_call = false;
    bool is_ending = false;
    bool has_ended = false;
    bool has_news = true;
    std::unique_ptr<Weak> weak;
  };
  int size() const noexcept { return static_cast<int>(ranks_.size()); }
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::deque<Write>& queue(int from, int to) { return queues_[static_cast<std::size_t>(from * size() + to)]; }

  bool can_go_on(const Rank& one) const {
    if (one.has_ended) return false;
    if (one.is_in_call || one.is_ending) return one.has_news;
    const bool waits = job_.has_barriers && std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
                         return other.call < one.call || (other.call == one.call && other.is_in_call);
                       });
    return !waits;
  }
  bool takes(const Rank& one) const { return !job_.lands_in_calls || one.is_in_call || one.is_ending; }
  void end_call(int rank) {
    Rank& self = at(rank);
    self.is_in_call = false;
    self.has_news = true;
    if (const char* const found = job_.fault(rank, self.call, self.send, self.receive, self.weak->status()))
      fail(rank, found);
    // The program may change its operand from here on.
    std::fill(self.send.begin(), self.send.end(), -7);
  }
  void land(int pair) {
    const int from = pair / size();
    const int to = pair % size();
    Rank& reader = at(to);
    if (reader.has_ended) fail(to, "a write to a rank that has ended");
    const Write write = queue(from, to).front();
    queue(from, to).pop_front();
    if (write.bytes != 0)
      std::memcpy(reinterpret_cast<std::byte*>(reader.segment.data()) + write.offset, write.source, write.bytes);
    reader.numbers[static_cast<std::size_t>(write.id)] = write.value;
    reader.has_news = true;
    at(from).has_news = true;
  }
  void let_sources_change(int rank) {
    std::vector<Source>& kept = at(rank).kept;
    if (std::any_of(kept.begin(), kept.end(), [](const Source& source) {
          return !std::equal(source.contents.begin(), source.contents.end(), source.at);
        }))
      fail(rank, "a source that changed before the wire said that it may");
    kept.clear();
  }
  bool has_sources_under_way(int rank) {
    for (int to = 0; to < size(); ++to)
      for (const Write& write : queue(rank, to))
        if (write.bytes != 0) return true;
    return false;
  }
  void fail(int rank, const std::string& what) {
    if (fault_.empty())
      fault_ = "rank " + std::to_string(rank) + ", call " + std::to_string(at(rank).call) + ": " + what;
  }

  const LateJob& job_;
  wait::Policy policy_;
  std::vector<std::deque<Write>> queues_;  // by writer and reader
  bool is_abandoned_ = false;
  std::string fault_;
  std::vector<Rank> ranks_;
};

}  // namespace papaya
