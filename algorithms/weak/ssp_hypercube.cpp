#include "algorithms/weak/ssp_hypercube.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/clock.hpp"

namespace papaya {

namespace {

// A slot: the header on a line of its own, then the data.
struct Header {
  std::uint64_t oldest;   // the clock of the oldest contribution in the message
  std::uint64_t of_peer;  // the clock of the receiver's own contribution in it; 0: there is none
};
constexpr std::size_t header_bytes = 64;

std::size_t slot_bytes(std::size_t bytes) noexcept {
  return header_bytes + in_lines(bytes);
}

SspSlots slots_for(std::size_t bytes, std::uint64_t slack) noexcept {
  return {slack, 2 * slack + 2, slot_bytes(bytes)};
}

// Ranks at positions of the hypercube, in rank order: the first `extra` positions stand for two ranks each.
struct Cube {
  explicit Cube(int ranks) noexcept
      : positions(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        dimensions(std::countr_zero(static_cast<unsigned>(positions))),
        extra(ranks - positions) {}

  bool is_paired(int rank) const noexcept { return rank < 2 * extra; }
  int position_of(int rank) const noexcept { return is_paired(rank) ? rank / 2 : rank - extra; }
  int rank_at(int position) const noexcept { return position < extra ? 2 * position : position + extra; }
  int edges() const noexcept { return dimensions + (extra > 0 ? 1 : 0); }

  int positions;
  int dimensions;
  int extra;
};

}  // namespace

SegmentShape SspHypercube::segment(int ranks, std::size_t bytes, std::uint64_t slack) noexcept {
  const int edges = Cube(ranks).edges();
  return {std::max<std::size_t>(slots_for(bytes, slack).bytes(static_cast<std::size_t>(edges)), 64), std::max(edges, 1),
          0, slack > 0};
}

std::vector<SspHypercube::Exchange> SspHypercube::exchanges_of(int rank, int ranks) {
  const Cube cube(ranks);
  const int pair_edge = cube.dimensions;
  if (cube.is_paired(rank) && rank % 2 == 1)
    return {{.peer = rank - 1, .edge = pair_edge, .sends = true, .taken = Taken::result}};

  std::vector<Exchange> exchanges;
  if (cube.is_paired(rank))
    exchanges.push_back({.peer = rank + 1, .edge = pair_edge, .sends = false, .taken = Taken::right});
  const int position = cube.position_of(rank);
  for (int k = 0; k < cube.dimensions; ++k) {
    const int partner = position ^ (1 << k);
    exchanges.push_back({.peer = cube.rank_at(partner),
                         .edge = k,
                         .sends = true,
                         .taken = partner < position ? Taken::left : Taken::right});
  }
  if (cube.is_paired(rank))
    exchanges.push_back({.peer = rank + 1, .edge = pair_edge, .sends = true, .taken = Taken::nothing});
  return exchanges;
}

SspHypercube::SspHypercube(const Team& team, std::size_t bytes, std::uint64_t slack)
    : Weak(team),
      bytes_(bytes),
      slots_(slots_for(bytes, slack)),
      exchanges_(exchanges_of(team.rank, team.size)),
      sources_(exchanges_.size() * slot_bytes(bytes)),
      clock_(team.first_round - 1) {}

SspHypercube::~SspHypercube() {
  wait::Site site;
  if (!has_heard_all())
    team_.wire->wait(
        *team_.policy, site, [this] { return has_heard_all(); }, nullptr);
}

// Nothing is under way any more to this rank, nor from memory of its own.
bool SspHypercube::has_heard_all() const noexcept {
  return team_.wire->are_sources_free() &&
         std::all_of(exchanges_.begin(), exchanges_.end(), [this](const Exchange& exchange) {
           return exchange.taken == Taken::nothing || clock_ < team_.first_round ||
                  team_.wire->look(exchange.edge) >= clock_;
         });
}

Steps SspHypercube::steps(Operands operands) {
  ++clock_;
  status_ = {.clock = clock_, .oldest = clock_, .own = clock_, .ranks = team_.size, .bytes = bytes_};
  team_.wire->progress();  // who never waits takes what has come, too
  // The sources of the call before: a message may leave its sender only once the receiver makes progress.
  if (!team_.wire->are_sources_free()) {
    const std::uint64_t begin = clock::ticks();
    co_await released(*team_.wire);
    count_wait(begin);
  }

  auto* const receive = static_cast<std::byte*>(operands.receive);
  const auto* partial = static_cast<const std::byte*>(operands.send);
  bool is_deposited = false;
  std::uint64_t of_extra = 0;  // the clock of the extra rank's contribution
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    const Exchange& exchange = exchanges_[i];
    std::byte* const source = sources_.data() + i * slot_bytes(bytes_);
    if (exchange.sends) {
      send(exchange, source, partial, exchange.taken == Taken::nothing ? of_extra : 0);
      partial = source + header_bytes;
    }
    if (exchange.sends && !is_deposited) {
      tell_deposited(operands);
      is_deposited = true;
    }
    if (exchange.taken == Taken::nothing) continue;

    std::uint64_t number = slots_.usable(*team_.wire, exchange.edge, clock_);
    if (number == 0) {
      const std::uint64_t begin = clock::ticks();
      co_await until([&] { return (number = slots_.usable(*team_.wire, exchange.edge, clock_)) != 0; }, exchange.peer);
      count_wait(begin);
    }
    const std::byte* const message = team_.wire->segment() + slots_.offset(exchange.edge, number);
    Header header{};
    std::memcpy(&header, message, sizeof header);
    status_.oldest = std::min(status_.oldest, header.oldest);
    if (!exchange.sends) of_extra = number;

    const std::byte* const taken = message + header_bytes;
    std::byte* const out = i + 1 < exchanges_.size() ? source + slot_bytes(bytes_) + header_bytes : receive;
    if (exchange.taken == Taken::result) {
      partial = taken;
      status_.own = header.of_peer;
      continue;
    }
    const bool is_left = exchange.taken == Taken::left;
    if (operands.count != 0)
      operands.reduction->combine(*operands.reduction, is_left ? taken : partial, is_left ? partial : taken, out,
                                  operands.count);
    partial = out;
  }
  if (partial != receive && bytes_ != 0) std::memcpy(receive, partial, bytes_);
  if (!is_deposited) tell_deposited(operands);  // a single rank
}

void SspHypercube::send(const Exchange& exchange, std::byte* source, const std::byte* partial,
                        std::uint64_t of_peer) noexcept {
  const Header header{.oldest = status_.oldest, .of_peer = of_peer};
  std::memcpy(source, &header, sizeof header);
  if (partial != source + header_bytes && bytes_ != 0) std::memcpy(source + header_bytes, partial, bytes_);
  team_.wire->write_notify(exchange.peer, slots_.offset(exchange.edge, clock_), source, header_bytes + bytes_,
                           exchange.edge, clock_);
}

namespace {

constexpr Parameter parameters[] = {slack_parameter};

constexpr WeakDescriptor descriptor = {
    .collective = WeakCollective::ssp_allreduce,
    .name = "ssp_hypercube",
    .summary = "exchanges along a hypercube of stale partial results: log2(p) steps of the whole message",
    .source = "Iakymchuk et al. 2021, Algorithm 1; Faustino 2020, 3.2",
    .automatic_from_bytes = 0,
    .parameters = parameters,
    .segment =
        [](const WeakRequest& request) {
          return SspHypercube::segment(request.ranks, request.bytes(), static_cast<std::uint64_t>(request.values[0]));
        },
    .prepare = [](const Team& team, const WeakRequest& request) -> std::unique_ptr<Weak> {
      return std::make_unique<SspHypercube>(team, request.bytes(), static_cast<std::uint64_t>(request.values[0]));
    },
};

const WeakRegistration registration(descriptor);

}  // namespace

}  // namespace papaya
