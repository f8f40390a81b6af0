#include "algorithms/leaders_exchange.hpp"

#include <algorithm>
#include <cstring>

namespace papaya {

namespace {

// Each leader is a broadcast more in the node, and others begin as many messages fewer: in simulation one for so many
// messages takes the least time, or nearly (docs/simulation.md).
constexpr int messages_of_leader = 4;

NodePhase::Choice gathering_of(std::size_t bytes) noexcept {
  return {Collective::allgather, bytes};
}

// Holds what the ranks of a node have given, or part of it: calls of few bytes take little memory.
NodePhase::Choice broadcast_of(std::size_t gathered_bytes, int node_ranks) noexcept {
  return {Collective::bcast,
          std::min(static_cast<std::size_t>(node_ranks) * gathered_bytes, LeadersExchange::phase_bytes)};
}

int size_of(const NodePosition& position) noexcept {
  return static_cast<int>(position.ranks().size());
}

int largest(const Nodes& nodes) noexcept {
  const auto is_smaller = [](const std::vector<int>& a, const std::vector<int>& b) { return a.size() < b.size(); };
  return static_cast<int>(std::max_element(nodes.ranks.begin(), nodes.ranks.end(), is_smaller) - nodes.ranks.begin());
}

}  // namespace

std::size_t LeadersExchange::region_bytes(int node_ranks, std::size_t gathered_bytes) {
  return NodePhase::region_bytes(gathering_of(gathered_bytes), node_ranks) +
         NodePhase::region_bytes(broadcast_of(gathered_bytes, node_ranks), node_ranks);
}

LeadersExchange::LeadersExchange(const Team& team, const Shape& shape)
    : team_(team),
      position_(team),
      shape_(shape),
      most_leaders_(most_leaders(position_.nodes, shape.leaders)),
      largest_node_(largest(position_.nodes)),
      gathering_(team, gathering_of(shape.gathered_bytes), team.region, this),
      broadcast_(team, broadcast_of(shape.gathered_bytes, size_of(position_)),
                 team.region + NodePhase::region_bytes(gathering_of(shape.gathered_bytes), size_of(position_)), this),
      streams_(team, Streams::Shape::among_leaders(team.layout(), shape.piece_bytes)),
      messages_(static_cast<std::size_t>(position_.nodes.count())) {}

void LeadersExchange::allocate() {
  const std::size_t fragment = shape_.fragment_bytes;
  std::size_t going = 0;
  std::size_t coming = phase_bytes;
  for (int i = 1; i < position_.nodes.count(); ++i) {
    going += message_bytes(position_.node, origin_at(i), fragment);
    coming = std::max(coming, message_bytes(origin_at(i), position_.node, fragment));
  }
  given_ = std::make_unique_for_overwrite<std::byte[]>(position_.ranks().size() * given_bytes(fragment));
  outgoing_ = std::make_unique_for_overwrite<std::byte[]>(going);
  incoming_ = std::make_unique_for_overwrite<std::byte[]>(coming);
}

bool LeadersExchange::run(const Operands& operands, wait::Site& site) {
  for (std::size_t offset = 0; offset < operands.bytes; offset += shape_.fragment_bytes)
    run_fragment(operands, {offset, std::min(shape_.fragment_bytes, operands.bytes - offset)}, site);
  return true;
}

bool LeadersExchange::is_missing(int rank) const {
  if (rank == missing_) return true;
  if (position_.nodes.of_rank[static_cast<std::size_t>(rank)] != position_.node) return false;
  const int local = position_.rank_in_node(rank);
  return gathering_.is_missing(local) || broadcast_.is_missing(local);
}

void LeadersExchange::run_fragment(const Operands& operands, const Fragment& fragment, wait::Site& site) {
  gather(operands, fragment, site);
  const int leaders = leaders_for(fragment.bytes);
  if (position_.rank < leaders) send_all(fragment, leaders, site);
  keep_own(operands, given_.get(), fragment);
  for (Batch batch = batch_from(1, fragment.bytes); batch.begin < position_.nodes.count();
       batch = batch_from(batch.end, fragment.bytes))
    take_batch(operands, fragment, batch, leaders, site);
  if (position_.rank < leaders) streams_.release_sources(site, static_cast<Prepared*>(this));
}

void LeadersExchange::gather(const Operands& operands, const Fragment& fragment, wait::Site& site) {
  Operands phase = operands;
  phase.send = give(operands, fragment);
  phase.receive = given_.get();
  phase.bytes = given_bytes(fragment.bytes);
  if (fragment.offset != 0) phase.deposited = nullptr;
  if (!gathering_.is_alone()) return gathering_.run(phase, site);
  std::memcpy(given_.get(), phase.send, phase.bytes);
  if (phase.deposited != nullptr) phase.deposited(phase.context);
}

void LeadersExchange::send_all(const Fragment& fragment, int leaders, wait::Site& site) {
  std::byte* room = outgoing_.get();
  for (int i = first_of(1, position_.rank, leaders); i < position_.nodes.count(); i += leaders) {
    const int node = (position_.node + i) % position_.nodes.count();
    const std::size_t bytes = message_bytes(position_.node, node, fragment.bytes);
    const std::byte* const message = message_for(node, given_.get(), fragment, room);
    room += bytes;
    const int peer = peer_on(node);
    for (std::size_t sent = 0; sent < bytes; sent += shape_.piece_bytes) {
      wait_until([&] { return streams_.may_send(peer); }, peer, site);
      streams_.send(peer, message + sent, std::min(shape_.piece_bytes, bytes - sent));
    }
  }
}

LeadersExchange::Batch LeadersExchange::batch_from(int begin, std::size_t fragment_bytes) const noexcept {
  Batch batch{begin, begin};
  for (std::size_t bytes = 0; batch.end < position_.nodes.count(); ++batch.end) {
    bytes += message_bytes(origin_at(batch.end), position_.node, fragment_bytes);
    if (bytes > phase_bytes && batch.end > batch.begin) break;
  }
  return batch;
}

void LeadersExchange::take_batch(const Operands& operands, const Fragment& fragment, const Batch& batch, int leaders,
                                 wait::Site& site) {
  place(batch, fragment.bytes, leaders);
  if (position_.rank < leaders) receive(batch, leaders, site);
  Operands phase = operands;
  phase.deposited = nullptr;
  for (int leader = 0; leader < leaders; ++leader) {
    const int first = first_of(batch.begin, leader, leaders);
    if (first >= batch.end) continue;
    phase.bytes = 0;
    for (int i = first; i < batch.end; i += leaders) phase.bytes += messages_[static_cast<std::size_t>(i)].bytes;
    std::byte* const all = messages_[static_cast<std::size_t>(first)].at;
    phase.root = leader;
    phase.send = position_.rank == leader ? all : nullptr;
    phase.receive = position_.rank == leader ? nullptr : all;
    broadcast_.run(phase, site);
    for (int i = first; i < batch.end; i += leaders)
      keep(operands, origin_at(i), messages_[static_cast<std::size_t>(i)].at, fragment);
  }
}

void LeadersExchange::place(const Batch& batch, std::size_t fragment_bytes, int leaders) noexcept {
  std::byte* at = incoming_.get();
  for (int leader = 0; leader < leaders; ++leader)
    for (int i = first_of(batch.begin, leader, leaders); i < batch.end; i += leaders) {
      const std::size_t bytes = message_bytes(origin_at(i), position_.node, fragment_bytes);
      messages_[static_cast<std::size_t>(i)] = {at, bytes, 0};
      at += bytes;
    }
}

void LeadersExchange::receive(const Batch& batch, int leaders, wait::Site& site) {
  const auto is_open = [&](int i) {
    const Incoming& message = messages_[static_cast<std::size_t>(i)];
    return message.received < message.bytes;
  };
  int first = first_of(batch.begin, position_.rank, leaders);
  while (true) {
    const bool moved = receive_what_has_come(batch, leaders);
    while (first < batch.end && !is_open(first)) first += leaders;
    if (first >= batch.end) return;
    if (moved) continue;
    const auto can_move = [&] {
      for (int i = first; i < batch.end; i += leaders)
        if (is_open(i) && streams_.may_receive(peer_on(origin_at(i)))) return true;
      return false;
    };
    wait_until(can_move, peer_on(origin_at(first)), site);
  }
}

bool LeadersExchange::receive_what_has_come(const Batch& batch, int leaders) {
  bool moved = false;
  for (int i = first_of(batch.begin, position_.rank, leaders); i < batch.end; i += leaders) {
    Incoming& message = messages_[static_cast<std::size_t>(i)];
    const int peer = peer_on(origin_at(i));
    while (message.received < message.bytes && streams_.may_receive(peer)) {
      const std::size_t bytes = std::min(shape_.piece_bytes, message.bytes - message.received);
      std::memcpy(message.at + message.received, streams_.front(peer), bytes);
      streams_.release(peer);
      message.received += bytes;
      moved = true;
    }
  }
  return moved;
}

int LeadersExchange::leaders_for(std::size_t fragment_bytes) const noexcept {
  if (shape_.leaders != 0) return most_leaders_;
  const int others = position_.nodes.count() - 1;
  int paying = (others + messages_of_leader - 1) / messages_of_leader;
  if (message_bytes(largest_node_, largest_node_, fragment_bytes) >= shape_.shared_bytes)
    paying = std::max(paying, shape_.shared_leaders);
  return std::clamp(paying, 1, most_leaders_);
}

int LeadersExchange::peer_on(int node) const noexcept {
  return position_.nodes
      .ranks[static_cast<std::size_t>(node)][static_cast<std::size_t>(std::min(position_.rank, most_leaders_ - 1))];
}

template <class Ready>
void LeadersExchange::wait_until(Ready&& ready, int rank, wait::Site& site) {
  if (ready()) return;
  missing_ = rank;
  team_.wire->wait(*team_.policy, site, ready, static_cast<Prepared*>(this));
  missing_ = -1;
}

}  // namespace papaya
