// The ranks of a job without MPI, as the set-up of a plan sees them: memory of nodes, a transport, messages and
// agreement, of which each can fail on one rank, and which count what is taken and given back.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <vector>

#include "algorithms/transport/arena_notified.hpp"
#include "interpose/async_setup.hpp"
#include "interpose/plan.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/fake_agreement.hpp"

namespace papaya::fakes {

inline constexpr int unlucky = 2;  // the rank that something fails on; the first of its node where there are two
inline constexpr std::size_t room_of_each = 8 * 4096;  // for a plan on a node
inline constexpr std::size_t bytes_of_node = 8 * room_of_each;

enum class Fault {
  none,
  no_region,
  no_pages,
  no_transport,
  too_little_memory,
  refused,
  no_share,
  share_throws,
  messages_throw,
  declined,
  prepare_throws
};
// Of all ranks.
inline std::atomic<int> alive{0};          // algorithms, wires, messages
inline std::atomic<int> prepared_ones{0};  // algorithms ever
inline Fault fault = Fault::none;

struct Counted {
  Counted() { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

inline bool strikes(Fault which, int rank) {
  return fault == which && rank == unlucky;
}

class Algorithm final : public Prepared {
 public:
  bool run(const Operands&, wait::Site&) override { return true; }
  bool is_missing(int) const override { return false; }

 private:
  const Counted counted_;
};

inline std::unique_ptr<Prepared> prepare(const Team& team, std::size_t, std::span<const std::int64_t>) {
  // In memory that is there and zero, and of a bcast with messages.
  if (team.region != nullptr && team.region[0] != std::byte{0}) ++mistakes;
  if (strikes(Fault::declined, team.rank)) return nullptr;
  if (strikes(Fault::prepare_throws, team.rank)) throw std::bad_alloc();
  ++prepared_ones;
  return std::make_unique<Algorithm>();
}

inline SegmentShape segment(const Layout&, std::size_t, std::span<const std::int64_t>) {
  return {4096, 8};
}
inline std::size_t region_bytes(int, std::size_t, std::span<const std::int64_t>) {
  return 3 * 4096;
}

inline Descriptor descriptor_of(Collective collective, bool has_wire) {
  Descriptor descriptor{
      .collective = collective, .name = "fake", .summary = "", .source = "", .one_node = !has_wire, .parameters = {}};
  descriptor.segment = has_wire ? segment : nullptr;
  descriptor.region_bytes = region_bytes;
  descriptor.prepare = prepare;
  return descriptor;
}
// On one node without a wire: else the region would hold the wire too.
inline const Descriptor allreduce_on_node = descriptor_of(Collective::allreduce, false);
inline const Descriptor bcast_on_node = descriptor_of(Collective::bcast, false);
inline const Descriptor allreduce_across = descriptor_of(Collective::allreduce, true);
inline const Descriptor bcast_across = descriptor_of(Collective::bcast, true);

// What the ranks of a node share.
struct NodeSpace {
  std::mutex mutex;
  std::vector<std::byte> bytes = std::vector<std::byte>(bytes_of_node);
  struct Taken {
    std::size_t bytes;
    int users;
  };
  std::map<std::int64_t, Taken> taken;
  std::map<std::uint64_t, std::int64_t> by_key;
  std::atomic<std::uint64_t> agreement{0};
  bool is_full = false;

  std::int64_t allocate(std::size_t size, int users) {
    const std::int64_t at = taken.empty() ? 0 : taken.rbegin()->first + static_cast<std::int64_t>(room_of_each);
    if (is_full || size > room_of_each || static_cast<std::size_t>(at) + size > bytes.size()) return -1;
    taken[at] = {size, users};
    return at;
  }
};

class FakeRegions final : public Regions {
 public:
  FakeRegions(NodeSpace& space, int rank) : space_(space), rank_(rank) {}
  bool exists() const noexcept override { return true; }
  std::size_t region_bytes() const noexcept override { return bytes_of_node; }
  std::int64_t allocate(std::size_t bytes, int users, std::size_t) noexcept override {
    const std::lock_guard lock(space_.mutex);
    return space_.allocate(bytes, users);
  }
  Attached attach(std::uint64_t key, std::span<const Wish> wishes) noexcept override {
    const std::lock_guard lock(space_.mutex);
    if (const auto found = space_.by_key.find(key); found != space_.by_key.end()) return {found->second, 0};
    const std::int64_t at = space_.allocate(wishes[0].bytes, ranks);
    if (at >= 0) space_.by_key[key] = at;
    return {at, 0};
  }
  std::atomic<std::uint64_t>& agreement(std::int64_t) const noexcept override { return space_.agreement; }
  bool prepare_share(std::int64_t, std::size_t, int, int) noexcept override { return !strikes(Fault::no_pages, rank_); }
  void release(std::int64_t offset, std::size_t bytes) noexcept override {
    const std::lock_guard lock(space_.mutex);
    const auto found = space_.taken.find(offset);
    if (found == space_.taken.end() || found->second.bytes != bytes)
      ++mistakes;
    else if (--found->second.users == 0)
      space_.taken.erase(found);
  }
  std::byte* region(std::int64_t offset) const noexcept override { return space_.bytes.data() + offset; }

 private:
  NodeSpace& space_;
  const int rank_;
};

class FakeWire final : public ArenaNotified {
 public:
  FakeWire(Arena& arena, std::size_t size, const SegmentShape& shape) : ArenaNotified(arena, size, shape) {}
  bool has_share() noexcept { return allocate(); }
  void write_notify(int, std::size_t, const void*, std::size_t, int, std::uint64_t) noexcept override {}
  void progress() noexcept override {}

 private:
  const Counted counted_;
};

class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(int rank) : rank_(rank) {
    arena_.reserve(memory_.size());
    arena_.set_base(memory_.data());
  }
  const char* name() const noexcept override { return "fake"; }
  Arena& arena() noexcept override { return arena_; }
  bool connects() const noexcept override { return true; }
  Link begin_connecting(const std::vector<int>&) noexcept override { return looks_ = 0, Link::under_way; }
  Link link(const std::vector<int>&) noexcept override {
    if (looks_ <= rank_) return Link::under_way;  // not on all ranks at once
    return strikes(Fault::refused, rank_) ? Link::refused : Link::up;
  }
  bool progress_connections() noexcept override { return ++looks_, true; }
  std::unique_ptr<ArenaNotified> offer(const std::vector<int>& members, wait::Policy&,
                                       const SegmentShape& shape) override {
    if (strikes(Fault::share_throws, rank_)) throw std::bad_alloc();
    auto wire = std::make_unique<FakeWire>(arena_, members.size(), shape);
    if (strikes(Fault::no_share, rank_) || !wire->has_share()) return nullptr;
    return wire;
  }
  void progress() noexcept override {}
  void close() noexcept override {}
  // Nothing is taken.
  bool is_whole() {
    const std::int64_t at = arena_.allocate(memory_.size());
    if (at >= 0) arena_.release(at, memory_.size());
    return at == 0;
  }

 private:
  const int rank_;
  int looks_ = 0;
  std::vector<std::byte> memory_ = std::vector<std::byte>(16 * 4096);
  Arena arena_;
};

class FakeMessages final : public Messages {
 public:
  void send(int, const void*, std::size_t) noexcept override {}
  void receive(int, void*, std::size_t) noexcept override {}
  void begin_send(int, const void*, std::size_t) noexcept override {}
  bool are_sent() noexcept override { return true; }
  bool has_received(int, void*, std::size_t, std::size_t&) noexcept override { return false; }

 private:
  const Counted counted_;
};

class FakeChannels final : public MessageChannels {
 public:
  explicit FakeChannels(int rank) : rank_(rank) {}
  std::unique_ptr<Messages> on_node(const std::vector<int>& members, std::vector<int> tags) override {
    return made(members, tags);
  }
  std::unique_ptr<Messages> between_nodes(const std::vector<int>& members, std::vector<int> tags) override {
    return made(members, tags);
  }
  int largest_tag() const noexcept override { return 1 << 20; }

 private:
  std::unique_ptr<Messages> made(const std::vector<int>& members, const std::vector<int>& tags) {
    if (members.size() != tags.size()) ++mistakes;
    if (strikes(Fault::messages_throw, rank_)) throw std::bad_alloc();
    return std::make_unique<FakeMessages>();
  }
  const int rank_;
};

// One rank, with what is the process's and what is the communicator's.
class Rank {
 public:
  // `has_wire_alone`: as plans of nonblocking calls, without regions of nodes.
  Rank(NodeSpace& space, Hub& hub, const Nodes& nodes, int rank, bool waits, bool has_wire_alone,
       const tuning::Rule& rule)
      : regions_(space, rank),
        transport_(rank),
        channels_(rank),
        offsets_(ranks),
        members_{
            .resources = {.regions = regions_,
                          .deposits = deposits_,
                          .transport =
                              fault == Fault::no_transport || fault == Fault::too_little_memory ? nullptr : &transport_,
                          .has_too_little = fault == Fault::too_little_memory,
                          .channels = channels_,
                          .limit = bytes_of_node},
            .team = {.rank = rank,
                     .size = ranks,
                     .arrival_order = false,
                     .region = nullptr,
                     .policy = &policy_,
                     .nodes = has_wire_alone ? nullptr : &nodes},
            .nodes = nodes.count(),
            .world_ranks = world_ranks_,
            .offsets = offsets_},
        agreement(hub, rank, waits),
        plan(&plans_.plan_for(members_, rule, 8, Form::blocking)) {}

  Steps steps() { return set_up(*plan, members_, agreement); }
  Reason join_at(std::uint64_t call) { return join(17, members_, *plan, call); }
  void end() { plans_.clear(); }
  bool is_transport_whole() { return transport_.is_whole(); }
  const Members& members() const { return members_; }
  Plans& plans() { return plans_; }

 private:
  FakeRegions regions_;
  DepositArena deposits_;
  FakeTransport transport_;
  FakeChannels channels_;
  wait::Policy policy_;
  const std::vector<int> world_ranks_ = {0, 1, 2, 3};
  std::vector<std::int64_t> offsets_;
  const Members members_;
  Plans plans_;

 public:
  FakeAgreement agreement;
  Plan* plan;
};

class Job {
 public:
  Job(int node_count, bool waits, const Descriptor& algorithm, bool has_wire_alone = false)
      : rule_{.algorithm = &algorithm, .values = {}} {
    alive = prepared_ones = mistakes = 0;
    std::vector<int> keys;
    for (int rank = 0; rank < ranks; ++rank) keys.push_back(rank * node_count / ranks);
    nodes_ = nodes_by(keys);
    // The unlucky rank's node.
    spaces_[static_cast<std::size_t>(keys[unlucky])].is_full = fault == Fault::no_region;
    for (int rank = 0; rank < ranks; ++rank)
      all_.push_back(std::make_unique<Rank>(spaces_[static_cast<std::size_t>(keys[static_cast<std::size_t>(rank)])],
                                            hub_, nodes_, rank, waits, has_wire_alone, rule_));
  }
  Rank& operator[](int rank) { return *all_[static_cast<std::size_t>(rank)]; }
  const tuning::Rule& rule() const { return rule_; }

  void set_up_waiting() {
    std::vector<std::thread> threads;
    for (const auto& rank : all_)
      threads.emplace_back([&one = *rank] {
        Steps steps = one.steps();
        one.agreement.finish(steps);
      });
    for (std::thread& thread : threads) thread.join();
  }
  // Each rank in its turn goes as far as it gets, the `eager` one first.
  void set_up_in_turn(int eager) {
    std::vector<Steps> steps;
    for (const auto& rank : all_) steps.push_back(rank->steps());
    for (int turn = 0; turn < 100; ++turn)
      for (int i = 0; i < ranks; ++i) steps[static_cast<std::size_t>((eager + i) % ranks)].advance();
    for (const Steps& one : steps) CHECK(one.is_done());
  }
  // Whatever was made for the plans has been given back.
  void is_as_before() {
    CHECK(alive == 0);
    CHECK(mistakes == 0);
    for (NodeSpace& space : spaces_) CHECK(space.taken.empty());
    for (const auto& rank : all_) CHECK(rank->is_transport_whole());
  }
  void has_outcome(Reason reason) {
    for (const auto& rank : all_) {
      CHECK(rank->plan->failure == reason);
      CHECK((rank->plan->prepared != nullptr) == (reason == Reason::none));
    }
    if (reason != Reason::none) return is_as_before();
    CHECK(prepared_ones == ranks);
    // What the algorithm keeps is there until the plan goes, on whatever rank that is first.
    for (int i = 0; i < ranks; ++i) (*this)[(unlucky + i) % ranks].end();
    is_as_before();
  }

 private:
  tuning::Rule rule_;
  Nodes nodes_;
  std::array<NodeSpace, 2> spaces_;
  Hub hub_;
  std::vector<std::unique_ptr<Rank>> all_;
};

}  // namespace papaya::fakes
