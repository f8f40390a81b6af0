#include "algorithms/weak/threshold_bcast.hpp"

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"

namespace papaya {

namespace {
constexpr int parent = 0;  // as a peer
constexpr int peer_of(std::size_t child) noexcept {
  return 1 + static_cast<int>(child);
}
}  // namespace

ThresholdBcast::ThresholdBcast(const Team& team, const WeakRequest& request)
    : Weak(team),
      plan_(request, ThresholdPlan::Towards::leaves),
      neighbours_(plan_.takes_part(team.rank) ? plan_.neighbours(team.rank) : patterns::Neighbours{}),
      streams_(team, plan_.peers(team.rank), plan_.slots(), plan_.chunk_bytes()),
      clock_(team.first_round - 1),
      sent_(neighbours_.children.size()) {}

bool ThresholdBcast::may_send(std::size_t child) noexcept {
  return sent_[child] < here_ && streams_.may_send(peer_of(child));
}

bool ThresholdBcast::can_move() noexcept {
  if (here_ < plan_.chunks() && streams_.may_receive(parent)) return true;
  for (std::size_t child = 0; child < sent_.size(); ++child)
    if (may_send(child)) return true;
  return false;
}

// The parent until all has come, then the first child that has not got all.
int ThresholdBcast::awaited() const noexcept {
  if (here_ < plan_.chunks()) return neighbours_.parent;
  const auto late = std::find_if(sent_.begin(), sent_.end(), [&](std::uint64_t one) { return one < plan_.chunks(); });
  return late == sent_.end() ? -1 : neighbours_.children[static_cast<std::size_t>(late - sent_.begin())].rank;
}

Steps ThresholdBcast::steps(Operands operands) {
  const bool takes_part = plan_.takes_part(team_.rank);
  const bool is_root = team_.rank == plan_.root();
  status_ = plan_.status(++clock_, takes_part, is_root);
  team_.wire->progress();  // who never waits takes credit, too
  const std::uint64_t chunks = takes_part ? plan_.chunks() : 0;
  auto* const message = static_cast<std::byte*>(is_root ? const_cast<void*>(operands.send) : operands.receive);
  here_ = is_root ? chunks : 0;
  std::fill(sent_.begin(), sent_.end(), 0);

  bool is_deposited = false;
  while (chunks != 0) {
    bool has_moved = false;
    if (here_ < chunks && streams_.may_receive(parent)) {
      std::memcpy(message + plan_.offset_of(here_), streams_.front(parent), plan_.bytes_in(here_));
      streams_.release(parent);
      ++here_;
      has_moved = true;
    }
    // The one with the most ranks behind it first.
    for (std::size_t child = sent_.size(); child-- > 0;)
      if (may_send(child)) {
        const std::uint64_t chunk = sent_[child]++;
        streams_.send(peer_of(child), message + plan_.offset_of(chunk), plan_.bytes_in(chunk));
        has_moved = true;
      }
    if (!is_deposited) tell_deposited(operands);
    is_deposited = true;
    if (here_ == chunks && awaited() < 0) break;
    if (has_moved) continue;
    const std::uint64_t begin = clock::ticks();
    co_await until([this] { return can_move(); }, awaited());
    count_wait(begin);
  }
  if (!is_deposited) tell_deposited(operands);
  if (!streams_.are_sources_free()) {
    const std::uint64_t begin = clock::ticks();
    const int reader = sent_.size() == 1 ? neighbours_.children[0].rank : -1;  // of several it is not known which
    co_await until([this] { return streams_.are_sources_free(); }, reader);
    count_wait(begin);
  }
}

namespace {

constexpr WeakDescriptor descriptor = {
    .collective = WeakCollective::threshold_bcast,
    .name = "threshold_bcast",
    .summary = "down a binomial tree, or a chain if long: log2(p) latencies, or the time of the message and p chunks",
    .source = "Iakymchuk et al. 2021, III-B",
    .parameters = ThresholdPlan::parameters,
    .segment =
        [](const WeakRequest& request) { return ThresholdPlan(request, ThresholdPlan::Towards::leaves).segment(); },
    .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
      return std::make_unique<ThresholdBcast>(team, request);
    },
};
const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
