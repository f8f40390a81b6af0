// What every backend of notified communication must hold, with any number of ranks at once: the data are
// there when their notification is seen, in the segment or where they are redirected to, and no notification is lost
// or comes twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "algorithms/transport/notified.hpp"

namespace papaya {

// Each rank writes `messages` messages to every rank, itself too, of changing size into a place of its own,
// the next to the same rank once the last has been answered. Half of the ids are reset by their owner, the
// others only grow.
class NotifiedProperty {
 public:
  static SegmentShape shape(int ranks, std::size_t most_bytes) {
    return {static_cast<std::size_t>(ranks) * most_bytes, 2 * ranks};  // messages, answers; by who writes
  }

  // `most_bytes`, of a message, is a multiple of 64.
  NotifiedProperty(Notified& wire, int rank, int ranks, std::size_t most_bytes, std::uint64_t messages)
      : wire_(wire),
        rank_(rank),
        ranks_(ranks),
        most_bytes_(most_bytes),
        messages_(messages),
        peers_(static_cast<std::size_t>(ranks)),
        random_(rank + 1u) {}

  // Returns what went wrong, 0 for nothing.
  int run(wait::Policy& policy, wait::Site& site) {
    while (!is_done()) {
      const bool some = step();
      if (!some)
        wire_.wait(
            policy, site, [&] { return may_step(); }, nullptr);
    }
    wire_.leave();
    return wrong_;
  }

 private:
  struct Peer {
    std::uint64_t sent = 0;
    std::uint64_t answered = 0;
    std::uint64_t received = 0;
    std::vector<std::byte> source;
    std::vector<std::byte> place;  // of the message that comes next, if it does not come to the segment
    bool is_redirected = false;
  };

  static std::byte content(int writer, int reader, std::uint64_t number, std::size_t at) {
    return static_cast<std::byte>((static_cast<std::uint64_t>(writer * 131 + reader * 31) + number * 7 + at) & 0xff);
  }
  std::size_t bytes_of(int writer, int reader, std::uint64_t number) const {
    const auto mixed =
        (static_cast<std::uint64_t>(writer) * 7919 + static_cast<std::uint64_t>(reader) * 104729 + number * 1299709);
    return number % 5 == 0 ? mixed % 17 : mixed % (most_bytes_ + 1);
  }
  bool is_reset(int writer) const { return (writer + rank_) % 2 == 0; }

  bool is_done() const {
    return std::all_of(peers_.begin(), peers_.end(),
                       [&](const Peer& p) { return p.received == messages_ && p.answered == messages_; });
  }
  bool may_step() {
    for (int peer = 0; peer < ranks_; ++peer) {
      const Peer& p = peers_[static_cast<std::size_t>(peer)];
      if ((p.sent == p.answered && p.sent < messages_) || wire_.look(ranks_ + peer) > p.answered || has_message(peer))
        return true;
    }
    return false;
  }
  bool has_message(int writer) {
    const std::uint64_t value = wire_.look(writer);
    return is_reset(writer) ? value != 0 : value > peers_[static_cast<std::size_t>(writer)].received;
  }

  // The next message of a writer, which it sends only after an answer, or has not begun: every third to memory of ours.
  void redirect_next(int writer) {
    Peer& p = peers_[static_cast<std::size_t>(writer)];
    const std::size_t bytes = bytes_of(writer, rank_, p.received + 1);
    p.is_redirected = writer != rank_ && bytes != 0 && p.received % 3 == 1 && p.received < messages_;
    if (!p.is_redirected) return;
    p.place.assign(bytes, std::byte{});
    p.is_redirected = wire_.redirect(static_cast<std::size_t>(writer) * most_bytes_, bytes, p.place.data());
  }

  bool step() {
    bool some = false;
    const int first = static_cast<int>(random_() % static_cast<unsigned>(ranks_));
    for (int i = 0; i < ranks_; ++i) {
      const int peer = (first + i) % ranks_;
      Peer& p = peers_[static_cast<std::size_t>(peer)];
      if (wire_.look(ranks_ + peer) > p.answered) {
        ++p.answered;
        if (wire_.look(ranks_ + peer) != p.answered) ++wrong_;  // an answer to what was not sent
        some = true;
      }
      if (p.sent == p.answered && p.sent < messages_) {
        wire_.release_sources();
        p.source.resize(bytes_of(rank_, peer, ++p.sent));
        for (std::size_t at = 0; at < p.source.size(); ++at) p.source[at] = content(rank_, peer, p.sent, at);
        wire_.write_notify(peer, static_cast<std::size_t>(rank_) * most_bytes_, p.source.data(), p.source.size(), rank_,
                           p.sent);
        some = true;
      }
      if (has_message(peer)) {
        const std::uint64_t value = is_reset(peer) ? wire_.reset(peer) : wire_.look(peer);
        if (value != ++p.received) ++wrong_;
        if (is_reset(peer) && wire_.look(peer) != 0) ++wrong_;
        const std::byte* const at =
            p.is_redirected ? p.place.data() : wire_.segment() + static_cast<std::size_t>(peer) * most_bytes_;
        for (std::size_t k = 0; k < bytes_of(peer, rank_, p.received); ++k)
          if (at[k] != content(peer, rank_, p.received, k)) {
            ++wrong_;
            break;
          }
        redirect_next(peer);
        wire_.notify(peer, ranks_ + rank_, p.received);
        some = true;
      }
    }
    return some;
  }

  Notified& wire_;
  const int rank_;
  const int ranks_;
  const std::size_t most_bytes_;
  const std::uint64_t messages_;
  std::vector<Peer> peers_;
  std::minstd_rand random_;
  int wrong_ = 0;
};

}  // namespace papaya
