// Wait-avoiding group allreduce of ranks on several nodes: groups, calls of all ranks and the contributions in three
// buffers are as on one node (wait_avoiding_group.hpp), but every rank keeps its own, and a relay of its own executes
// its groups' calls for it (relay.hpp). A call's tree is that of the group's members in rank order.
//
// A member that is behind takes part in calls it has not come to, which are executed in no particular order: `lag` + 1
// of them may be under way at a rank, those after the last that it has left. It gives its newest contribution to each,
// and finds the results in that order when it comes. In a call of all ranks a relay waits for the contribution to that
// call.
//
// Nobody waits for ever. Take the earliest call that is asked for and not executed: all members have left the call that
// its slot had before, or are in an earlier one, of which none is without its result for good. So each has room for it,
// has been told or will be, and has a contribution: the first call is of all ranks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "algorithms/weak/relay.hpp"
#include "algorithms/weak/wait_avoiding_group.hpp"
#include "algorithms/weak/weak.hpp"
#include "base/clock.hpp"

namespace papaya {

class GroupAcrossNodes final : public Weak, private Relay::Host {
  using Word = std::atomic<std::uint64_t>;
  using Newest = NewestOf<Word>;

 public:
  static RelayShape relay_shape(const GroupShape& shape) noexcept {
    return {shape.ranks, shape.bytes, RelayShape::children_in(shape.ranks), shape.slots(), true};
  }

  // `has_thread`: wanted, where wire and reduction permit.
  GroupAcrossNodes(const Team& team, const GroupShape& shape, const Reduction& reduction, bool has_thread)
      : Weak(team),
        shape_(shape),
        message_bytes_(relay_shape(shape).message_bytes()),
        buffers_(GroupShape::buffers * shape.buffer_bytes()),
        results_(static_cast<std::size_t>(shape.slots()) * message_bytes_),
        executed_(static_cast<std::size_t>(shape.slots())),
        relay_(team, relay_shape(shape), reduction, static_cast<Relay::Host&>(*this)) {
    if (has_thread) relay_.start_thread("papaya-group");
  }
  ~GroupAcrossNodes() override {
    stop_thread();
    wait::Site site;
    if (!may_end())
      team_.wire->wait(
          *team_.policy, site, [this] { return may_end(); }, nullptr);
  }
  GroupAcrossNodes(const GroupAcrossNodes&) = delete;
  GroupAcrossNodes& operator=(const GroupAcrossNodes&) = delete;

  std::int64_t in_force(std::size_t parameter, std::int64_t asked) const noexcept override {
    return parameter == group_thread ? relay_.has_thread() : asked;
  }
  void stand_in() noexcept override { relay_.serve(); }
  void stop_thread() noexcept override { relay_.stop_thread(); }
  // It has finished its last call, so nothing is on its way here.
  bool may_end() noexcept override { return relay_.are_sources_free(); }

  template <class Put>
  void put_state(Put put) const {
    put(newest_.load());
    for (std::size_t i = 1; i <= GroupShape::buffers; ++i) put(NodeWords::read<std::uint64_t>(buffer(i)));
    for (std::size_t at = 0; at < results_.size(); at += sizeof(std::uint64_t))
      put(NodeWords::read<std::uint64_t>(results_.data() + at));
    relay_.put_state(put);
  }

 private:
  Steps steps(Operands operands) override {
    const std::uint64_t number = left_.load(std::memory_order_relaxed) + 1;
    status_ = {.clock = clock_of(number), .oldest = clock_of(number), .own = 0, .ranks = 0, .bytes = shape_.bytes};
    // The relay reads one of the others at most.
    const std::size_t next = Newest::unused(newest_);
    NodeWords::write(buffer(next), clock_of(number));
    if (shape_.bytes != 0) std::memcpy(buffer(next) + NodeWords::line, operands.send, shape_.bytes);
    Newest::set(newest_, next);
    tell_deposited(operands);
    come_.store(number, std::memory_order_release);  // partner in is_wanted() and may_take()
    team_.wire->progress();
    if (!has_result(number)) {
      const std::uint64_t begin = clock::ticks();
      do {
        const int whose = relay_.awaited(number);
        co_await until([this, number, whose] { return has_result(number) || relay_.awaited(number) != whose; }, whose);
      } while (!is_executed(number));
      count_wait(begin);
    }
    std::byte* const result = GroupAcrossNodes::result(number);
    const RelayHeader header(result);
    status_.ranks = static_cast<int>(header.ranks());
    status_.oldest = header.oldest();
    status_.own = header.newest(team_.rank);
    if (shape_.bytes != 0) std::memcpy(operands.receive, result + RelayHeader::bytes(shape_.ranks), shape_.bytes);
    left_.store(number, std::memory_order_release);  // partner in room()
  }
  bool has_result(std::uint64_t number) noexcept {
    stand_in();
    return is_executed(number);
  }
  bool is_executed(std::uint64_t number) noexcept {
    return executed(number).load(std::memory_order_acquire) == number;  // partner in publish()
  }

  std::uint64_t room() noexcept override {
    return left_.load(std::memory_order_acquire) + shape_.slots();  // partner in steps()
  }
  bool is_wanted(std::uint64_t number) noexcept override {
    return come_.load(std::memory_order_acquire) >= number;  // partner in steps()
  }
  bool may_take(std::uint64_t number) noexcept override { return !shape_.is_of_all(number) || is_wanted(number); }
  void link(std::uint64_t number, RelayLinks& links) noexcept override {
    const int group = shape_.group_of(team_.rank, number);
    members_.clear();
    for (int rank = 0; rank < shape_.ranks; ++rank)
      if (shape_.group_of(rank, number) == group) members_.push_back(rank);
    links.set(static_cast<int>(std::find(members_.begin(), members_.end(), team_.rank) - members_.begin()),
              static_cast<int>(members_.size()),
              [this](int member) { return members_[static_cast<std::size_t>(member)]; });
  }
  void take(std::uint64_t /*number*/, const RelayHeader& header,
            std::vector<const std::byte*>& operands) noexcept override {
    taken_ = Newest::count_in(newest_);
    const auto clock = NodeWords::read<std::uint64_t>(buffer(taken_));
    header.add(team_.rank, clock, clock);
    operands.push_back(buffer(taken_) + NodeWords::line);
  }
  void release() noexcept override { Newest::count_out(newest_, taken_); }
  std::byte* result(std::uint64_t number) noexcept override {
    return results_.data() + static_cast<std::size_t>(number % shape_.slots()) * message_bytes_;
  }
  void publish(std::uint64_t number) noexcept override {
    executed(number).store(number, std::memory_order_release);  // partner in is_executed()
  }

  std::uint64_t clock_of(std::uint64_t number) const noexcept { return team_.first_round - 1 + number; }
  Word& executed(std::uint64_t number) noexcept { return executed_[static_cast<std::size_t>(number % shape_.slots())]; }
  std::byte* buffer(std::size_t which) noexcept { return buffers_.data() + (which - 1) * shape_.buffer_bytes(); }
  const std::byte* buffer(std::size_t which) const noexcept {
    return buffers_.data() + (which - 1) * shape_.buffer_bytes();
  }

  const GroupShape shape_;
  const std::size_t message_bytes_;
  std::vector<std::byte> buffers_;
  std::vector<std::byte> results_;
  std::vector<Word> executed_;  // by slot, the last call
  Word newest_{0};
  Word come_{0};  // the last call this rank has come to
  Word left_{0};
  std::vector<int> members_;
  std::size_t taken_ = 0;
  Relay relay_;
};

}  // namespace papaya
