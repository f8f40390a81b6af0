// Partial allreduce of ranks on several nodes. Within a node all is as on one node: contributions lie in the node's
// memory, results in its slots (partial_allreduce.hpp). The first rank of each node is its leader: the leaders' relays
// execute the calls (relay.hpp), each for all ranks of its node, at most one call at a time.
//
// A rank puts its contribution down, and asks for the call to be executed: in solo every rank does, in a majority the
// one that is drawn. A relay takes what lies in its node's places when the parts of the others have come to it, so late
// contributions may still be in. A call is executed in every node in turn of its number, as its result is needed for
// the next: so all that is said of one node holds, with "the executor" of a call for the node's relay.
//
// The leader's thread answers while it computes. A node whose leader has none joins in a call once its leader is in a
// call of papaya's: then a solo allreduce waits for the last of the leaders.
//
// Nobody waits for ever. Ranks leave call n only with its result, and it is passed on before their own node publishes
// it. A relay joins in call n once the ranks of its node have left call n - lag - 1; all of them do, since their node
// has the results up to call n - 1.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "algorithms/weak/partial_allreduce.hpp"
#include "algorithms/weak/relay.hpp"

namespace papaya {

template <class Word>
class PartialAcrossNodesOf final : public PartialRankOf<Word>, private Relay::Host {
  using Base = PartialRankOf<Word>;

 public:
  static RelayShape relay_shape(const WeakRequest& request) noexcept {
    return {request.ranks, request.bytes(), RelayShape::children_in(request.nodes->count()), 1, false};
  }

  // `request.nodes` says who is where. `has_thread`: wanted, where wire and reduction permit.
  PartialAcrossNodesOf(const Team& team, const WeakRequest& request, Starter starter, bool has_thread)
      : PartialAcrossNodesOf(
            team, request, starter, has_thread,
            request.nodes
                ->ranks[static_cast<std::size_t>(request.nodes->of_rank[static_cast<std::size_t>(team.rank)])]) {}
  ~PartialAcrossNodesOf() override {
    stop_thread();
    wait::Site site;
    if (!may_end())
      this->team_.wire->wait(
          *this->team_.policy, site, [this] { return may_end(); }, nullptr);
  }
  PartialAcrossNodesOf(const PartialAcrossNodesOf&) = delete;
  PartialAcrossNodesOf& operator=(const PartialAcrossNodesOf&) = delete;

  std::int64_t in_force(std::size_t parameter, std::int64_t asked) const noexcept override {
    return parameter != partial_thread ? asked : relay_ ? relay_->has_thread() : may_have_thread_ ? asked : 0;
  }
  void stand_in() noexcept override {
    if (relay_) relay_->serve();
  }
  void stop_thread() noexcept override {
    if (relay_) relay_->stop_thread();
  }
  // It has finished its last call, so nothing is on its way here.
  bool may_end() noexcept override { return !relay_ || relay_->are_sources_free(); }

  template <class Put>
  void put_state(Put put) const {
    for (const std::uint64_t value : {this->last_, this->used_, this->calls_}) put(value);
    if (relay_) relay_->put_state(put);
  }

 private:
  PartialAcrossNodesOf(const Team& team, const WeakRequest& request, Starter starter, bool has_thread,
                       const std::vector<int>& here)
      : Base(team, PartialShape::of(request), starter,
             static_cast<int>(std::find(here.begin(), here.end(), team.rank) - here.begin()),
             static_cast<int>(here.size()), here.front() == team.rank ? Base::Waits::on_wire : Base::Waits::in_region),
        nodes_(*request.nodes),
        here_(here),
        may_have_thread_(Relay::may_have_thread(team, *request.reduction)) {
    if (here.front() != team.rank) return;
    relay_.emplace(team, relay_shape(request), *request.reduction, static_cast<Relay::Host&>(*this));
    if (has_thread) relay_->start_thread("papaya-partial");
  }

  Steps steps(Operands operands) override {
    this->begin_call();
    const std::uint64_t number = this->calls_;
    this->put(number, operands);
    this->tell_deposited(operands);
    if (this->starter_ == Starter::first || this->drawn(number) == this->team_.rank) want(number);
    this->team_.wire->progress();
    if (!has_result(number)) {
      const std::uint64_t begin = clock::ticks();
      do {
        const int whose = awaited(number);
        co_await until([this, number, whose] { return has_result(number) || awaited(number) != whose; }, whose);
      } while (!this->is_executed(number));
      this->count_wait(begin);
    }
    this->fetch(number, operands);
  }
  bool has_result(std::uint64_t number) noexcept {
    stand_in();
    return this->is_executed(number);
  }
  // As far as this rank knows: one of its own node that is too far behind, a leader, or who is drawn.
  int awaited(std::uint64_t number) noexcept {
    if (!relay_) return here_.front();
    const int slowest = slowest_.load(std::memory_order_relaxed);
    if (slowest >= 0 && number > room_.load(std::memory_order_relaxed)) return here_[static_cast<std::size_t>(slowest)];
    const int rank = relay_->awaited(number);
    return rank < 0 && this->starter_ == Starter::drawn && this->drawn(number) != this->team_.rank ? this->drawn(number)
                                                                                                   : rank;
  }

  // Release: partner in is_wanted(), the contribution.
  void want(std::uint64_t number) noexcept {
    Word& word = this->claimed();
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (seen < number &&
           !word.compare_exchange_strong(seen, number, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  std::uint64_t room() noexcept override {
    std::uint64_t least = ~std::uint64_t{0};
    for (int place = 0; place < this->places_; ++place) {
      const std::uint64_t last = this->left(place).load(std::memory_order_acquire);  // partner in fetch()
      if (last < least) slowest_.store(place, std::memory_order_relaxed);
      least = std::min(least, last);
    }
    room_.store(least + this->shape_.slots(), std::memory_order_relaxed);
    return least + this->shape_.slots();
  }
  bool is_wanted(std::uint64_t number) noexcept override {
    return this->claimed().load(std::memory_order_acquire) >= number;  // partner in want()
  }
  bool may_take(std::uint64_t /*number*/) noexcept override { return true; }
  void link(std::uint64_t /*number*/, RelayLinks& links) noexcept override {
    links.set(nodes_.of_rank[static_cast<std::size_t>(this->team_.rank)], nodes_.count(),
              [this](int node) { return nodes_.ranks[static_cast<std::size_t>(node)].front(); });
  }
  void take(std::uint64_t /*number*/, const RelayHeader& header,
            std::vector<const std::byte*>& operands) noexcept override {
    for (int place = 0; place < this->places_; ++place) {
      const std::byte* const found = Base::take(place);
      if (found == nullptr) continue;
      const auto clocks = NodeWords::read<typename Base::Held>(found);
      header.add(here_[static_cast<std::size_t>(place)], clocks.oldest, clocks.newest);
      operands.push_back(found + NodeWords::line);
    }
  }
  std::byte* result(std::uint64_t number) noexcept override { return this->at(this->shape_.result_at(number)); }
  void publish(std::uint64_t number) noexcept override { Base::publish(number); }

  const Nodes nodes_;
  const std::vector<int> here_;  // ranks of this node
  const bool may_have_thread_;   // leaders
  std::atomic<int> slowest_{-1};
  std::atomic<std::uint64_t> room_{0};
  std::optional<Relay> relay_;  // of a leader
};

template <Starter starter>
constexpr WeakDescriptor partial_descriptor(std::string_view name, std::string_view summary) {
  return {
      .collective = WeakCollective::partial_allreduce,
      .name = name,
      .summary = summary,
      .source = "Li et al., PPoPP 2020 (eager-SGD)",
      .commutative_only = true,
      .automatic_from_bytes = starter == Starter::first ? 0 : WeakDescriptor::never_automatic,
      .parameters = partial_parameters,
      .segment = [](const WeakRequest& request) -> SegmentShape {
        if (request.nodes == nullptr) return {64, 1};
        return PartialAcrossNodesOf<std::atomic<std::uint64_t>>::relay_shape(request).segment();
      },
      .region_bytes = [](const WeakRequest& request) { return PartialShape::of(request).region_bytes(); },
      .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
        using Words = std::atomic<std::uint64_t>;
        if (request.nodes == nullptr)
          return std::make_unique<PartialAllreduceOf<Words>>(team, PartialShape::of(request), starter);
        return std::make_unique<PartialAcrossNodesOf<Words>>(team, request, starter,
                                                             request.values[partial_thread] != 0);
      },
  };
}

}  // namespace papaya
