#include "algorithms/weak/threshold_reduce.hpp"

#include <cstring>

#include "base/clock.hpp"

namespace papaya {

namespace {
constexpr int parent = 0;  // as a peer
constexpr int peer_of(std::size_t child) noexcept {
  return 1 + static_cast<int>(child);
}
}  // namespace

ThresholdReduce::ThresholdReduce(const Team& team, const WeakRequest& request)
    : Weak(team),
      plan_(request, ThresholdPlan::Towards::root),
      neighbours_(plan_.takes_part(team.rank) ? plan_.neighbours(team.rank) : patterns::Neighbours{}),
      places_(2 * plan_.slots()),
      partial_(neighbours_.parent < 0 || neighbours_.children.empty()
                   ? 0
                   : static_cast<std::size_t>(places_) * plan_.chunk_bytes()),
      clock_(team.first_round - 1),
      streams_(team, plan_.peers(team.rank), plan_.slots(), plan_.chunk_bytes()) {}

ThresholdReduce::~ThresholdReduce() {
  wait::Site site;
  if (!may_end())
    team_.wire->wait(
        *team_.policy, site, [this] { return may_end(); }, nullptr);
}

// For the partial result of the next chunk.
bool ThresholdReduce::has_place() noexcept {
  if (sent_ >= read_ + places_ / 2 && streams_.are_sources_free()) read_ = sent_;
  return sent_ < read_ + places_;
}

std::byte* ThresholdReduce::place() noexcept {
  return partial_.data() + static_cast<std::size_t>(sent_ % places_) * plan_.chunk_bytes();
}

Steps ThresholdReduce::steps(Operands operands) {
  const bool takes_part = plan_.takes_part(team_.rank);
  const bool is_root = team_.rank == plan_.root();
  const bool is_leaf = neighbours_.children.empty();
  status_ = plan_.status(++clock_, is_root, takes_part);
  team_.wire->progress();  // who never waits takes credit, too
  const auto* const contribution = static_cast<const std::byte*>(operands.send);
  auto* const receive = static_cast<std::byte*>(operands.receive);
  const std::uint64_t chunks = takes_part ? plan_.chunks() : 0;
  if (!is_leaf || is_root) tell_deposited(operands);

  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::byte* partial = contribution + plan_.offset_of(chunk);
    if (!is_root && !is_leaf && !has_place()) {
      const std::uint64_t begin = clock::ticks();
      co_await until([this] { return has_place(); }, neighbours_.parent);
      count_wait(begin);
    }
    std::byte* const out = is_root ? receive + plan_.offset_of(chunk) : place();
    for (std::size_t child = 0; child < neighbours_.children.size(); ++child) {
      const int peer = peer_of(child);
      if (!streams_.may_receive(peer)) {
        const std::uint64_t begin = clock::ticks();
        co_await until([this, peer] { return streams_.may_receive(peer); }, neighbours_.children[child].rank);
        count_wait(begin);
      }
      const std::byte* const theirs = streams_.front(peer);
      const bool is_right = neighbours_.children[child].is_right;
      operands.reduction->combine(*operands.reduction, is_right ? partial : theirs, is_right ? theirs : partial, out,
                                  plan_.elements_in(chunk));
      streams_.release(peer);
      partial = out;
    }
    if (is_root) {
      if (partial != out) std::memmove(out, partial, plan_.bytes_in(chunk));  // of a single rank
      continue;
    }
    if (!streams_.may_send(parent)) {
      const std::uint64_t begin = clock::ticks();
      co_await until([this] { return streams_.may_send(parent); }, neighbours_.parent);
      count_wait(begin);
    }
    streams_.send(parent, partial, plan_.bytes_in(chunk));
    ++sent_;
    if (is_leaf && chunk == 0) tell_deposited(operands);
  }
  if (is_leaf && !is_root) {
    if (chunks == 0) tell_deposited(operands);
    if (!streams_.are_sources_free()) {
      const std::uint64_t begin = clock::ticks();
      co_await until([this] { return streams_.are_sources_free(); }, neighbours_.parent);
      count_wait(begin);
    }
  }
}

namespace {

constexpr WeakDescriptor descriptor = {
    .collective = WeakCollective::threshold_reduce,
    .name = "threshold_reduce",
    .summary = "up a binomial tree, or a chain if long: log2(p) latencies, or the time of the message and p chunks",
    .source = "Iakymchuk et al. 2021, III-B",
    .parameters = ThresholdPlan::parameters,
    .segment =
        [](const WeakRequest& request) { return ThresholdPlan(request, ThresholdPlan::Towards::root).segment(); },
    .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
      return std::make_unique<ThresholdReduce>(team, request);
    },
};
const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
