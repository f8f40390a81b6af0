// All ranks of a job in one thread, one step of one rank at a time, with the class itself running: each rank is a fiber
// that stops at every operation of a wire. Who moves next is for the test to choose.
//
// What a schedule may interleave: the first half of a write; its second half with the notification; a look; and what
// follows from the look, that is to read the message, combine, and begin the next write. Reading is one step, at any
// time after the look: whatever would come between parts of it also comes before all of it. On a late wire writes
// leave their rank at once and land later, in two steps each, in order between two ranks, as by MPI's messages.
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

#include "algorithms/weak/ssp.hpp"
#include "algorithms/weak/weak.hpp"
#include "tests/protocol/ssp_contribution.hpp"
#include "tests/unit/support/exploration.hpp"
#include "tests/unit/support/fiber.hpp"

namespace papaya {

struct SspJob {
  const char* algorithm;
  int ranks;
  std::uint64_t slack;
  std::uint64_t calls;
  bool is_late;  // the wire
};
inline std::string describe(const SspJob& job) {
  return std::string(job.algorithm) + ": " + std::to_string(job.ranks) + " ranks, slack " + std::to_string(job.slack) +
         ", " + std::to_string(job.calls) + " calls" + (job.is_late ? ", late writes" : "");
}

// All ranks of a job, on from its beginning one step at a time.
class SspWorld {
 public:
  using Job = SspJob;
  SspWorld(const SspJob& job, std::vector<Fiber>& fibers)
      : job_(job),
        descriptor_(*find_weak(job.algorithm)),
        elements_(elements_for(job, descriptor_)),
        reduction_(Contribution::reduction(descriptor_.commutative_only)) {
    for (const Parameter& parameter : descriptor_.parameters)
      values_.push_back(parameter.name == slack_parameter.name ? static_cast<std::int64_t>(job.slack)
                                                               : parameter.fallback);
    const WeakRequest request{.ranks = job.ranks,
                              .count = elements_,
                              .element_bytes = sizeof(Contribution),
                              .reduction = &reduction_,
                              .values = values_};
    const SegmentShape shape = descriptor_.segment(request);
    const auto ranks = static_cast<std::size_t>(job.ranks);
    if (job.is_late) queues_.resize(ranks * ranks);
    ranks_.resize(ranks);
    for (int rank = 0; rank < job.ranks; ++rank) {
      Rank& one = at(rank);
      one.fiber = &fibers[static_cast<std::size_t>(rank)];
      one.segment.resize(shape.bytes);
      one.numbers.resize(static_cast<std::size_t>(shape.notifications));
      one.seen.resize(one.numbers.size(), unseen);
      one.wire = std::make_unique<Wire>(*this, rank);
      const Team team{.rank = rank,
                      .size = job.ranks,
                      .arrival_order = false,
                      .region = nullptr,
                      .policy = &policy_,
                      .wire = one.wire.get()};
      one.algorithm = descriptor_.prepare(team, request);
      one.fiber->set([this, rank] { run(rank); });
    }
  }
  // A stopped fiber cannot be destroyed: all are run to their end, with results that do not matter.
  ~SspWorld() {
    is_abandoned_ = true;
    for (Rank& one : ranks_)
      while (!one.fiber->is_done()) one.fiber->resume();
  }
  SspWorld(const SspWorld&) = delete;
  SspWorld& operator=(const SspWorld&) = delete;

  // Ranks, and after them the pairs of ranks whose first write may land, by number.
  std::vector<int> can_move() const {
    std::vector<int> all;
    for (int rank = 0; rank < job_.ranks; ++rank)
      if (can_go_on(rank)) all.push_back(rank);
    for (std::size_t pair = 0; pair < queues_.size(); ++pair)
      if (!queues_[pair].empty()) all.push_back(job_.ranks + static_cast<int>(pair));
    return all;
  }
  void move(int which) {
    if (which < job_.ranks)
      at(which).fiber->resume();
    else
      land(queues_[static_cast<std::size_t>(which - job_.ranks)], (which - job_.ranks) % job_.ranks);
  }
  bool is_over() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& one) { return one.fiber->is_done(); });
  }
  const std::string& fault() const noexcept { return fault_; }

  StateDigest::Value state() const {
    StateDigest digest;
    for (const Rank& one : ranks_) {
      digest.put(one.segment.data(), one.segment.size());
      for (std::size_t id = 0; id < one.numbers.size(); ++id)
        digest.put(one.numbers[id] << 1 | std::uint64_t{one.seen[id] != unseen});
      digest.put(one.call << 32 | one.writes << 16 | static_cast<std::uint64_t>(one.stopped) << 8 |
                 static_cast<std::uint64_t>(one.fiber->is_done()) << 1 | std::uint64_t{has_nothing_new(one)});
      digest.put(static_cast<std::uint64_t>(one.looked_at) << 32 | one.looked);
      digest.put(one.last_sent.first);
      digest.put(one.last_sent.second);
      digest.put(reinterpret_cast<const std::byte*>(one.result.data()), one.result.size() * sizeof(Contribution));
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
  // One for each half of a write, and of each part where the message is cut into those.
  static std::size_t elements_for(const SspJob& job, const WeakDescriptor& descriptor) {
    return descriptor.name == "ssp_ring" ? 2 * static_cast<std::size_t>(job.ranks) : 2;
  }
  static constexpr std::uint64_t unseen = ~std::uint64_t{0};

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
    Wire(SspWorld& world, int rank) : world_(world), rank_(rank) {
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
    void progress() noexcept override {}

   private:
    SspWorld& world_;
    const int rank_;
    wait::Doorbell own_bell_{};
  };

  enum class Stop : std::uint8_t { nowhere, in_write, before_look, after_look, for_news, for_sources };
  struct Rank {
    Fiber* fiber = nullptr;
    std::unique_ptr<Wire> wire;
    std::vector<std::byte> segment;
    std::vector<std::uint64_t> numbers;  // its notifications
    std::vector<std::uint64_t> seen;     // by its looks since it last wrote
    Stop stopped = Stop::nowhere;
    std::uint64_t call = 0;
    std::uint64_t writes = 0;  // in this call
    int looked_at = 0;
    std::uint64_t looked = 0;
    StateDigest::Value last_sent;
    std::vector<Contribution> result;  // as far as it has come
    bool has_ended = false;
    std::unique_ptr<Weak> algorithm;
  };
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  // A rank, in its fiber.
  void run(int rank) {
    Rank& self = at(rank);
    std::vector<Contribution> contribution(elements_);
    for (std::uint64_t clock = 1; clock <= job_.calls; ++clock) {
      begin_call(self);
      contribution.assign(elements_, Contribution::of(rank, clock));
      self.algorithm->start({.send = contribution.data(),
                             .receive = self.result.data(),
                             .count = elements_,
                             .bytes = elements_ * sizeof(Contribution),
                             .root = -1,
                             .reduction = &reduction_});
      while (!self.algorithm->progress()) {
      }
      if (is_abandoned_) continue;
      if (const char* const found = fault_in(self.result, *self.algorithm, clock, job_.slack, rank, job_.ranks))
        fail(rank, found);
    }
    begin_call(self);
    while (!self.algorithm->may_end()) {
    }
    self.has_ended = true;
    if (!is_abandoned_ && has_sources_under_way(rank)) fail(rank, "its end, with writes from its memory under way");
  }
  void begin_call(Rank& self) const {
    self.result.assign(elements_, {});
    ++self.call;
    self.writes = 0;
    self.last_sent = {};
    std::fill(self.seen.begin(), self.seen.end(), unseen);
  }
  void fail(int rank, const std::string& what) {
    if (fault_.empty())
      fault_ = "rank " + std::to_string(rank) + ", call " + std::to_string(at(rank).call) + ": " + what;
  }

  void stop(Rank& self, Stop where) {
    self.stopped = where;
    if (!is_abandoned_) self.fiber->stop();
    self.stopped = Stop::nowhere;
  }

  void write(int rank, int peer, const Write& write) {
    Rank& self = at(rank);
    StateDigest sent;
    sent.put(write.source, write.bytes);
    self.last_sent = sent.value();
    ++self.writes;
    std::fill(self.seen.begin(), self.seen.end(), unseen);
    if (is_abandoned_) return;
    if (job_.is_late) return queues_[static_cast<std::size_t>(rank * job_.ranks + peer)].push_back(write);
    std::deque<Write> alone{write};
    land(alone, peer);
    stop(self, Stop::in_write);
    if (!is_abandoned_) land(alone, peer);
  }
  // Half of the first write, the second with its notification.
  void land(std::deque<Write>& queue, int peer) {
    Write& write = queue.front();
    Rank& to = at(peer);
    if (to.has_ended) fail(peer, "a write to a rank that has ended");
    const std::size_t half = write.bytes - (write.bytes - data_at) / 2;
    const std::size_t begin = write.is_half_there ? half : 0;
    const std::size_t end = write.is_half_there ? write.bytes : half;
    std::memcpy(to.segment.data() + write.offset + begin, write.source + begin, end - begin);
    if (std::exchange(write.is_half_there, true)) {
      to.numbers[static_cast<std::size_t>(write.id)] = write.value;
      queue.pop_front();
    }
  }
  static constexpr std::size_t data_at = 64;  // in a message

  std::uint64_t look(int rank, int id) {
    if (is_abandoned_) return job_.calls + 1;
    Rank& self = at(rank);
    const auto which = static_cast<std::size_t>(id);
    self.looked_at = id;
    // Whoever looks again finds the same until there is news.
    stop(self, self.seen[which] == unseen ? Stop::before_look : Stop::for_news);
    if (is_abandoned_) return job_.calls + 1;
    self.seen[which] = self.looked = self.numbers[which];
    stop(self, Stop::after_look);
    const std::uint64_t looked = self.looked;
    self.looked = 0;
    self.looked_at = 0;
    return is_abandoned_ ? job_.calls + 1 : looked;
  }
  static bool has_nothing_new(const Rank& self) {
    for (std::size_t id = 0; id < self.numbers.size(); ++id)
      if (self.seen[id] != unseen && self.seen[id] != self.numbers[id]) return false;
    return true;
  }
  bool are_sources_free(int rank) {
    if (!is_abandoned_ && has_sources_under_way(rank)) stop(at(rank), Stop::for_sources);
    return true;
  }
  bool has_sources_under_way(int rank) const {
    if (!job_.is_late) return false;
    const auto* const first = queues_.data() + static_cast<std::ptrdiff_t>(rank) * job_.ranks;
    return std::any_of(first, first + job_.ranks, [](const auto& queue) { return !queue.empty(); });
  }
  bool can_go_on(int rank) const {
    const Rank& self = ranks_[static_cast<std::size_t>(rank)];
    if (self.fiber->is_done()) return false;
    if (self.stopped == Stop::for_news) return !has_nothing_new(self);
    return self.stopped != Stop::for_sources || !has_sources_under_way(rank);
  }

  const SspJob job_;
  const WeakDescriptor& descriptor_;
  const std::size_t elements_;
  const Reduction reduction_;
  std::vector<std::int64_t> values_;
  wait::Policy policy_;
  std::vector<Rank> ranks_;
  std::vector<std::deque<Write>> queues_;  // of a late wire, by writer and reader
  bool is_abandoned_ = false;
  std::string fault_;
};

}  // namespace papaya
