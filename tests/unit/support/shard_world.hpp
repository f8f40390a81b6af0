// All ranks of a job in one thread, one step of one rank at a time, with the class itself running: each rank is a fiber
// that stops at every operation of a wire; one whose shard a thread keeps, two. Who moves next is for the test to
// choose.
//
// What a schedule may interleave: the first half of a write; its second half with the notification; a look; and what
// follows from the look, that is to read the message, combine, and begin the next write. Reading is one step, at any
// time after the look: whatever would come between parts of it also comes before all of it. On a late wire writes to
// others leave their rank at once and land later, in two steps each, in order between two ranks, as by MPI's messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/weak/ssp_sharded.hpp"
#include "tests/protocol/shard_contribution.hpp"
#include "tests/unit/support/exploration.hpp"
#include "tests/unit/support/fiber.hpp"

namespace papaya {

struct ShardJob {
  int ranks;
  std::uint64_t slack;
  std::uint64_t calls;
  bool is_late;  // the wire
  bool is_consistent = false;
  bool has_thread = false;
  bool is_whole = false;  // a single shard
};
inline std::string describe(const ShardJob& job) {
  return "ssp_sharded: " + std::to_string(job.ranks) + " ranks, slack " + std::to_string(job.slack) + ", " +
         std::to_string(job.calls) + " calls" + (job.is_whole ? ", one shard" : "") +
         (job.is_consistent ? ", consistent" : "") + (job.has_thread ? ", thread" : "") +
         (job.is_late ? ", late writes" : "");
}

// All ranks of a job, on from its beginning one step at a time.
class ShardWorld {
 public:
  static int threads(const ShardJob& job) { return !job.has_thread ? 0 : job.is_whole ? 1 : job.ranks; }
  static std::size_t fibers_for(const ShardJob& job) { return static_cast<std::size_t>(job.ranks + threads(job)); }

  using Job = ShardJob;
  // Shards of two elements, one for each half of a write.
  ShardWorld(const ShardJob& job, std::vector<Fiber>& fibers)
      : job_(job),
        elements_(job.is_whole ? 2 : 2 * static_cast<std::size_t>(job.ranks)),
        shards_(job.ranks, elements_, sizeof(Contribution),
                {.slack = job.slack, .is_consistent = job.is_consistent, .least_bytes = job.is_whole ? 64u : 1u}),
        shape_(shards_.segment()) {
    const auto ranks = static_cast<std::size_t>(job.ranks);
    if (job.is_late) queues_.resize(ranks * ranks);
    ranks_.resize(ranks);
    for (int rank = 0; rank < job.ranks; ++rank) {
      Rank& one = at(rank);
      one.segment.resize(shape_.bytes);
      one.numbers.resize(static_cast<std::size_t>(shape_.notifications));
      one.wire = std::make_unique<Wire>(*this, rank);
      const Team team{.rank = rank,
                      .size = job.ranks,
                      .arrival_order = false,
                      .region = nullptr,
                      .policy = &policy_,
                      .wire = one.wire.get()};
      one.algorithm = std::make_unique<SspSharded>(
          team, shards_, reduction_, job.has_thread ? SspSharded::Keeper::caller : SspSharded::Keeper::calls);
    }
    strands_.resize(fibers_for(job));
    for (std::size_t i = 0; i < strands_.size(); ++i) {
      Strand& strand = strands_[i];
      strand.rank = static_cast<int>(i % ranks);
      strand.fiber = &fibers[i];
      strand.known.resize(static_cast<std::size_t>(shape_.notifications));
      strand.looks.resize(strand.known.size());
      strand.fiber->set([this, i, ranks] { i < ranks ? run(strands_[i]) : serve(strands_[i]); });
    }
  }
  // A stopped fiber cannot be destroyed: all are run to their end, with results that do not matter.
  ~ShardWorld() {
    is_abandoned_ = true;
    for (Strand& strand : strands_)
      while (!strand.fiber->is_done()) resume(strand);
    for (Rank& one : ranks_) std::fill(one.segment.begin(), one.segment.end(), std::byte{0});
  }
  ShardWorld(const ShardWorld&) = delete;
  ShardWorld& operator=(const ShardWorld&) = delete;

  // Ranks, their threads, and after them the pairs of ranks whose first write may land, by number.
  std::vector<int> can_move() const {
    std::vector<int> all;
    for (std::size_t i = 0; i < strands_.size(); ++i)
      if (can_go_on(strands_[i])) all.push_back(static_cast<int>(i));
    for (std::size_t pair = 0; pair < queues_.size(); ++pair)
      if (!queues_[pair].empty()) all.push_back(static_cast<int>(strands_.size() + pair));
    return all;
  }
  void move(int which) {
    const auto i = static_cast<std::size_t>(which);
    if (i < strands_.size()) return resume(strands_[i]);
    const std::size_t pair = i - strands_.size();
    land(queues_[pair], static_cast<int>(pair) % job_.ranks);
  }
  bool is_over() const {
    return std::all_of(strands_.begin(), strands_.end(), [](const Strand& strand) { return strand.fiber->is_done(); });
  }
  const std::string& fault() const noexcept { return fault_; }

  StateDigest::Value state() const {
    StateDigest digest;
    for (const Rank& one : ranks_) {
      digest.put(one.segment.data(), one.segment.size());
      for (const std::uint64_t number : one.numbers) digest.put(number);
      digest.put(std::uint64_t{one.is_ending} << 1 | std::uint64_t{one.has_ended});
      one.algorithm->put_state([&](std::uint64_t word) { digest.put(word); });
    }
    for (const Strand& strand : strands_) {
      const Rank& one = ranks_[static_cast<std::size_t>(strand.rank)];
      for (std::size_t id = 0; id < strand.known.size(); ++id)
        digest.put(static_cast<std::uint64_t>(strand.looks[id]) << 1 |
                   std::uint64_t{strand.known[id] == one.numbers[id]});
      digest.put(strand.call << 32 | strand.writes << 16 | static_cast<std::uint64_t>(strand.stopped) << 8 |
                 std::uint64_t{strand.fiber->is_done()} << 2 | std::uint64_t{strand.has_just_asked} << 1 |
                 std::uint64_t{strand.waits_for_sources});
      digest.put(static_cast<std::uint64_t>(strand.looked_at) << 32);
      digest.put(strand.looked);
      digest.put(strand.last_sent.first);
      digest.put(strand.last_sent.second);
    }
    for (const auto& queue : queues_) {
      digest.put(queue.size());
      for (const Write& write : queue) {
        digest.put(write.source, write.bytes);
        digest.put(write.offset << 32 | static_cast<std::uint64_t>(write.id) << 1 | std::uint64_t{write.is_half_there});
        digest.put(write.value);
      }
    }
    return digest.value();
  }

 private:
  struct Write {
    std::size_t offset;
    const std::byte* source;
    std::size_t bytes;
    int id;
    std::uint64_t value;
    bool is_half_there;
  };

  class Wire final : public Notified {
   public:
    Wire(ShardWorld& world, int rank) : world_(world), rank_(rank) {
      segment_ = world.at(rank).segment.data();
      bell_ = &own_bell_;
    }
    void write_notify(int peer, std::size_t offset, const void* source, std::size_t bytes, int id,
                      std::uint64_t value) noexcept override {
      world_.write(rank_, peer, {offset, static_cast<const std::byte*>(source), bytes, id, value, false});
    }
    std::uint64_t look(int id) noexcept override { return world_.look(rank_, id); }
    std::uint64_t reset(int /*id*/) noexcept override { std::abort(); }
    bool are_sources_free() noexcept override { return world_.are_sources_free(rank_); }
    bool takes_at_once(std::size_t /*bytes*/) const noexcept override { return !world_.job_.is_late; }
    void progress() noexcept override {}

   private:
    ShardWorld& world_;
    const int rank_;
    wait::Doorbell own_bell_{};
  };

  enum class Stop : std::uint8_t { nowhere, in_write, before_look, after_look, for_news, for_sources, for_thread };
  struct Rank {
    std::unique_ptr<Wire> wire;
    std::vector<std::byte> segment;
    std::vector<std::uint64_t> numbers;  // its notifications
    bool is_ending = false;
    bool has_ended = false;
    std::unique_ptr<SspSharded> algorithm;
  };
  // A thread of a rank.
  struct Strand {
    int rank = 0;
    Fiber* fiber = nullptr;
    std::vector<std::uint64_t> known;  // what it has seen last
    std::vector<int> looks;            // since it found or did anything
    bool waits_for_sources = false;    // found them not free since
    bool has_just_asked = false;       // whether they are, and has not looked since
    Stop stopped = Stop::nowhere;
    std::uint64_t call = 0;
    std::uint64_t writes = 0;  // in this call
    int looked_at = 0;
    std::uint64_t looked = 0;
    StateDigest::Value last_sent;
  };
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void resume(Strand& strand) {
    current_ = &strand;
    strand.fiber->resume();
  }

  // A rank, in its fiber.
  void run(Strand& self) {
    const int rank = self.rank;
    Rank& one = at(rank);
    std::vector<Contribution> contribution(elements_);
    std::vector<Contribution> result(elements_);
    for (std::uint64_t clock = 1; clock <= job_.calls; ++clock) {
      begin_call(self);
      contribution.assign(elements_, Contribution::of(rank, clock));
      one.algorithm->start({.send = contribution.data(),
                            .receive = result.data(),
                            .count = elements_,
                            .bytes = elements_ * sizeof(Contribution),
                            .root = -1,
                            .reduction = &reduction_});
      while (!one.algorithm->progress() && !is_abandoned_) {
      }
      if (is_abandoned_) return;
      if (const char* const found = fault_in_shards(result, *one.algorithm, clock, rank)) fail(self, found);
    }
    begin_call(self);
    one.is_ending = true;
    if (rank < threads(job_)) stop(self, Stop::for_thread);
    while (!is_abandoned_ && !one.algorithm->may_end()) {
    }
    one.has_ended = true;
    if (!is_abandoned_ && has_sources_under_way(rank)) fail(self, "its end, with writes from its memory under way");
  }
  void serve(Strand& self) {
    Rank& one = at(self.rank);
    while (!is_abandoned_ && !one.is_ending) one.algorithm->serve();
  }
  // What a rank sees that is destroyed before its calls are over, in a segment of zeros: nothing is under way to it.
  std::uint64_t last_number(int id) const {
    return id >= shards_.closing_id(0) && id < shards_.closing_id(job_.ranks) ? 1 : 0;
  }
  // After so many looks at everything without news a thread only waits for some: it goes on by what it has found once
  // it has found no more.
  static constexpr int looks_in_vain = 2;
  static void begin_call(Strand& self) {
    ++self.call;
    self.writes = 0;
    self.last_sent = {};
    has_moved(self);
  }
  // What it looks at from now on, it looks at again.
  static void has_moved(Strand& self) {
    std::fill(self.looks.begin(), self.looks.end(), 0);
    self.waits_for_sources = false;
  }
  void fail(const Strand& self, const std::string& what) {
    if (fault_.empty())
      fault_ = "rank " + std::to_string(self.rank) + ", call " + std::to_string(self.call) + ": " + what;
  }

  void stop(Strand& self, Stop where) {
    self.stopped = where;
    if (!is_abandoned_) self.fiber->stop();
    self.stopped = Stop::nowhere;
  }

  void write(int rank, int peer, const Write& write) {
    if (is_abandoned_) return;
    Strand& self = *current_;
    StateDigest sent;
    sent.put(write.source, write.bytes);
    self.last_sent = sent.value();
    ++self.writes;
    has_moved(self);
    if (job_.is_late && peer != rank)
      return queues_[static_cast<std::size_t>(rank * job_.ranks + peer)].push_back(write);
    std::deque<Write> alone{write};
    land(alone, peer);
    stop(self, Stop::in_write);
    if (!is_abandoned_) land(alone, peer);
  }
  // The first write but for its last element; that, with the notification.
  void land(std::deque<Write>& queue, int peer) {
    Write& write = queue.front();
    Rank& to = at(peer);
    if (to.has_ended && fault_.empty()) fault_ = "rank " + std::to_string(peer) + ": a write after its end";
    const std::size_t half = write.bytes - std::min(write.bytes, sizeof(Contribution));
    const std::size_t begin = write.is_half_there ? half : 0;
    const std::size_t end = write.is_half_there ? write.bytes : half;
    if (begin != end) std::memcpy(to.segment.data() + write.offset + begin, write.source + begin, end - begin);
    if (std::exchange(write.is_half_there, true)) {
      to.numbers[static_cast<std::size_t>(write.id)] = write.value;
      queue.pop_front();
    }
  }

  std::uint64_t look(int rank, int id) {
    if (is_abandoned_) return last_number(id);
    Strand& self = *current_;
    const auto which = static_cast<std::size_t>(id);
    self.looked_at = id;
    self.has_just_asked = false;
    // Whoever looks again finds the same until there is news.
    stop(self, self.looks[which] >= looks_in_vain ? Stop::for_news : Stop::before_look);
    if (is_abandoned_) return last_number(id);
    self.looked = at(rank).numbers[which];
    if (self.waits_for_sources && !has_sources_under_way(rank)) has_moved(self);
    if (self.looked != self.known[which]) has_moved(self);
    self.known[which] = self.looked;
    ++self.looks[which];
    stop(self, Stop::after_look);
    self.looked_at = 0;
    return std::exchange(self.looked, 0);
  }
  bool are_sources_free(int rank) {
    if (is_abandoned_ || !has_sources_under_way(rank)) return true;
    Strand& self = *current_;
    self.waits_for_sources = true;
    if (std::exchange(self.has_just_asked, true)) stop(self, Stop::for_sources);
    if (!is_abandoned_ && has_sources_under_way(rank)) return false;
    has_moved(self);
    return true;
  }
  bool has_sources_under_way(int rank) const {
    if (!job_.is_late) return false;
    const auto* const first = queues_.data() + static_cast<std::ptrdiff_t>(rank) * job_.ranks;
    return std::any_of(first, first + job_.ranks, [](const auto& queue) { return !queue.empty(); });
  }
  bool can_go_on(const Strand& self) const {
    if (self.fiber->is_done()) return false;
    const Rank& one = ranks_[static_cast<std::size_t>(self.rank)];
    const bool is_thread = &self >= strands_.data() + job_.ranks;
    if (self.stopped == Stop::for_thread)
      return strands_[static_cast<std::size_t>(self.rank + job_.ranks)].fiber->is_done();
    if (self.stopped == Stop::for_sources) return !has_sources_under_way(self.rank);
    if (self.stopped != Stop::for_news) return true;
    if (is_thread && one.is_ending) return true;
    if (self.waits_for_sources && !has_sources_under_way(self.rank)) return true;
    for (std::size_t id = 0; id < one.numbers.size(); ++id)
      if (self.looks[id] > 0 && self.known[id] != one.numbers[id]) return true;
    return false;
  }

  const Reduction reduction_ = Contribution::reduction();
  const ShardJob job_;
  const std::size_t elements_;
  const SspShards shards_;
  const SegmentShape shape_;
  wait::Policy policy_;
  std::vector<Rank> ranks_;
  std::vector<Strand> strands_;  // the ranks' own, then those that keep their shards
  Strand* current_ = nullptr;
  std::vector<std::deque<Write>> queues_;  // of a late wire, by writer and reader
  bool is_abandoned_ = false;
  std::string fault_;
};

}  // namespace papaya
