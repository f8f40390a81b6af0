// Parts of messages from one rank of a team to another over the wire, in order: whoever sends may be ahead of whoever
// receives by `slots` parts. Both know the parts' sizes. Any rank may send to any, at any time.
//
// The parts from one rank to another are counted from the first call on. Number n, from 1, goes to slot n mod `slots` of the
// pair in the receiver's segment, and its notification, of that writer, is n. The receiver answers every half of the slots
// how many parts it has taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/team.hpp"
#include "algorithms/transport/notified.hpp"

namespace papaya {

class Streams {
 public:
  static constexpr std::uint64_t slots = 4;
  static constexpr std::size_t least_part = 4096;

  // The bytes of a part, as wanted or so many fewer that parts from all writers take 1 MiB of a segment, but `least_part` at least.
  static std::size_t fair_part(int writers, std::size_t wanted) noexcept {
    constexpr std::size_t memory = 1 << 20;
    return in_lines(std::max(std::min(wanted, memory / (slots * static_cast<std::size_t>(writers))), least_part));
  }

  // Room for parts of `part_bytes` from each of `writers`: all ranks, 1 where only one ever writes to a rank, or, where only
  // leaders do, as many as nodes. Then `nodes` says whose leader a writer is.
  struct Shape {
    int ranks;
    std::size_t part_bytes;
    int writers;
    const Nodes* nodes = nullptr;

    static Shape among_leaders(const Layout& layout, std::size_t part_bytes) noexcept {
      return {layout.ranks, part_bytes, layout.leaders(), layout.nodes};
    }

    SegmentShape segment() const noexcept {
      return {std::max<std::size_t>(static_cast<std::size_t>(writers) * slots * in_lines(part_bytes), 64), 2 * ranks};
    }
  };

  Streams(const Team& team, const Shape& shape)
      : team_(team), shape_(shape), before_(team.first_round - 1), peers_(static_cast<std::size_t>(team.size)) {
    for (Peer& peer : peers_) peer = {before_, before_, before_};
  }

  // The last answers of the others, which have no more to say after them.
  ~Streams() {
    wait::Site site;
    for (int peer = 0; peer < team_.size; ++peer)
      if (const std::uint64_t last = of(peer).sent / answered_at_once * answered_at_once; last > before_)
        team_.wire->wait(
            *team_.policy, site, [&] { return team_.wire->look(answer_id(peer)) >= last; }, nullptr);
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  bool may_send(int peer) noexcept {
    Peer& to = of(peer);
    if (to.sent < to.taken + slots) return true;
    to.taken = std::max(to.taken, team_.wire->look(answer_id(peer)));
    return to.sent < to.taken + slots;
  }
  // After may_send(). The source stays as it is until Notified::release_sources().
  void send(int peer, const void* part, std::size_t bytes) noexcept {
    Peer& to = of(peer);
    ++to.sent;
    team_.wire->write_notify(peer, place(team_.rank, to.sent), part, bytes, part_id(team_.rank), to.sent);
  }

  bool may_receive(int peer) const noexcept {
    return team_.wire->look(part_id(peer)) > peers_[static_cast<std::size_t>(peer)].received;
  }
  // After may_receive(): the oldest part, until it is taken.
  const std::byte* front(int peer) const noexcept {
    return team_.wire->segment() + place(peer, peers_[static_cast<std::size_t>(peer)].received + 1);
  }
  void take(int peer) noexcept {
    Peer& from = of(peer);
    ++from.received;
    if (from.received % answered_at_once == 0)
      team_.wire->notify(peer, answer_id(team_.rank), from.received);
  }

 private:
  static constexpr std::uint64_t answered_at_once = slots / 2;

  struct Peer {
    std::uint64_t sent;
    std::uint64_t received;
    std::uint64_t taken;  // by it, of those sent; as far as is known
  };

  Peer& of(int peer) noexcept { return peers_[static_cast<std::size_t>(peer)]; }
  std::size_t place(int writer, std::uint64_t number) const noexcept {
    const int own = shape_.nodes == nullptr ? writer % shape_.writers
                                            : shape_.nodes->of_rank[static_cast<std::size_t>(writer)];
    return (static_cast<std::size_t>(own) * slots + static_cast<std::size_t>(number % slots)) *
           in_lines(shape_.part_bytes);
  }
  static int part_id(int writer) noexcept { return writer; }
  int answer_id(int reader) const noexcept { return shape_.ranks + reader; }

  const Team team_;
  const Shape shape_;
  const std::uint64_t before_;
  std::vector<Peer> peers_;
};

}  // namespace papaya
