// Chunks of messages from one rank of a team to another over the wire, in order: whoever sends may be ahead of whoever
// receives by a number of slots. Both know the chunks' sizes.
//
// A stream is a sliding window. Its chunk number n, from 1, goes to slot n mod `slots` of the stream in the receiver's
// segment, and its notification is n. The receiver returns credit for half of the slots at a time: how many chunks it
// has released.
//
// A sender whose message may fall back, since MPI would let it leave the call, never waits for slots: if they are in
// use the chunks go as messages, which MPI sends as it would have sent the program's own. The sender notifies after how
// many chunks the messages begin. The receiver, once it has released those, takes messages, and says so at the first
// one. Then the slots are free, and the sender goes back to them with an empty message. So what is written to a rank
// that does not look is bounded: credit twice or one notification, whatever the number of calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/sliding_window.hpp"
#include "algorithms/team.hpp"
#include "algorithms/transport/messages.hpp"
#include "algorithms/transport/notified.hpp"

namespace papaya {

class Streams {
 public:
  static constexpr std::uint64_t slots_of_a_pair = 4;
  static constexpr std::size_t least_chunk_bytes = 4096;
  // Above, MPI makes the sender wait for the receiver, too.
  static constexpr std::size_t most_fallback_bytes = 65536;

  // The bytes of a chunk, as wanted or so many fewer that chunks from all writers take 1 MiB of a segment, 2 MiB where
  // they are few and so, mostly, the ranks of a node, which share its memory; but `least_chunk_bytes` at least.
  static constexpr std::size_t fair_chunk(int writers, std::size_t wanted) noexcept {
    constexpr int few = 8;
    const std::size_t memory = writers <= few ? 2 << 20 : 1 << 20;
    return in_lines(
        std::max(std::min(wanted, memory / (slots_of_a_pair * static_cast<std::size_t>(writers))), least_chunk_bytes));
  }

  // The bytes of a chunk inside a node: as wanted, at most `capacity`, in whole cache lines. Between nodes fair_chunk()
  // makes it smaller where there are many ranks.
  static std::size_t region_chunk(std::size_t capacity, std::int64_t wanted) noexcept {
    return in_lines(std::max(std::min(capacity, static_cast<std::size_t>(wanted)), least_chunk_bytes));
  }

  // A rank writes a stream to one rank, `to`, and reads one from another or the same, `from`.
  struct Peer {
    int to;
    int from;
    int slots_there;   // where the slots of the first lie at `to`, counted in streams
    int slots_here;    // those of the second, here
    int number_there;  // which peer this one is to the other ends: what is notified there goes by it
    int number_here;   // and here
  };
  static SegmentShape segment_of(int peers, int writers, std::uint64_t slots, std::size_t chunk_bytes) noexcept {
    return {std::max<std::size_t>(static_cast<std::size_t>(writers) * slots * in_lines(chunk_bytes), 64),
            std::max(3 * peers, 1)};
  }

  // Any rank may send to any, at any time; a peer's number is its rank. Room for chunks of `chunk_bytes` from each of
  // `writers`: all ranks or, where only one rank of each node writes to a rank, as many as nodes. Then `nodes` says on
  // which node a writer is.
  struct Shape {
    int ranks;
    std::size_t chunk_bytes;
    int writers;
    const Nodes* nodes = nullptr;

    static Shape among_leaders(const Layout& layout, std::size_t chunk_bytes) noexcept {
      return {layout.ranks, chunk_bytes, layout.leaders(), layout.nodes};
    }

    SegmentShape segment() const noexcept { return segment_of(ranks, writers, slots_of_a_pair, chunk_bytes); }
    int slots_of(int writer) const noexcept {
      return nodes == nullptr ? writer : nodes->of_rank[static_cast<std::size_t>(writer)];
    }
    std::vector<Peer> peers(int rank) const {
      std::vector<Peer> all;
      for (int peer = 0; peer < ranks; ++peer)
        all.push_back({.to = peer,
                       .from = peer,
                       .slots_there = slots_of(rank),
                       .slots_here = slots_of(peer),
                       .number_there = rank,
                       .number_here = peer});
      return all;
    }
  };
  Streams(const Team& team, const Shape& shape)
      : Streams(team, shape.peers(team.rank), slots_of_a_pair, shape.chunk_bytes) {}

  Streams(const Team& team, const std::vector<Peer>& peers, std::uint64_t slots, std::size_t chunk_bytes)
      : team_(team), slots_(slots), chunk_bytes_(in_lines(chunk_bytes)), before_(team.first_round - 1) {
    const SlidingWindow window{.slots = slots, .credits_at_once = slots / 2};
    for (const Peer& peer : peers) {
      out_.push_back({.peer = peer, .window = {window, 0}});
      in_.push_back({.peer = peer, .window = {window, 0}});
    }
  }

  // Waits for the last credits of the others, which write nothing after them.
  ~Streams() {
    wait::Site site;
    if (!may_end())
      team_.wire->wait(
          *team_.policy, site, [this] { return may_end(); }, nullptr);
  }
  bool may_end() const noexcept {
    return std::all_of(out_.begin(), out_.end(), [this](const Out& to) {
      const std::uint64_t last = last_credit(to);
      return last == 0 || credit(to) >= last;
    });
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Whether chunks of the calls' message may fall back: equal on all ranks.
  bool may_fall_back(std::size_t message_bytes) const noexcept {
    return team_.messages != nullptr && message_bytes != 0 && message_bytes <= most_fallback_bytes;
  }

  bool may_send(int peer, bool may_fall_back = false) noexcept {
    Out& to = out(peer);
    return may_fall_back || (to.in_fallback ? may_end_fallback(to) : has_slot(to));
  }
  // After may_send(), with the same `may_fall_back`. The source stays as it is until are_sources_free().
  void send(int peer, const void* chunk, std::size_t bytes, bool may_fall_back = false) noexcept {
    Out& to = out(peer);
    const int rank = to.peer.to;
    if (to.in_fallback) {
      if (may_fall_back) team_.wire->progress();  // who waits for nothing makes none otherwise
      if (!may_end_fallback(to)) return team_.messages->begin_send(rank, chunk, bytes);
      team_.messages->begin_send(rank, nullptr, 0);
      to.in_fallback = false;
      to.window.knows_released(to.sent_before_fallback);
    } else if (may_fall_back && !has_slot(to) && !is_soon([&] { return has_slot(to); })) {
      to.in_fallback = true;
      to.sent_before_fallback = to.window.sent();
      team_.wire->notify(rank, fallback_id(to.peer.number_there), to.window.sent());
      return team_.messages->begin_send(rank, chunk, bytes);
    }
    const std::uint64_t number = to.window.send();
    team_.wire->write_notify(rank, slot(to.peer.slots_there, number), chunk, bytes, chunk_id(to.peer.number_there),
                             before_ + number);
  }
  bool are_sources_free() noexcept {
    return team_.wire->are_sources_free() && (team_.messages == nullptr || team_.messages->are_sent());
  }
  void release_sources(wait::Site& site, void* stalled) noexcept {
    team_.wire->release_sources();
    if (!are_sources_free())
      team_.wire->wait(
          *team_.policy, site, [this] { return are_sources_free(); }, stalled);
  }

  bool may_receive(int peer) {
    In& from = in(peer);
    if (from.message_bytes != 0) return true;
    const auto is_in_slot = [&] {
      return team_.wire->look(chunk_id(from.peer.number_here)) > before_ + from.window.released();
    };
    if (!from.in_fallback) {
      if (is_in_slot()) return true;
      if (team_.messages == nullptr) return false;
      const std::uint64_t begin = team_.wire->look(fallback_id(from.peer.number_here));
      // What was sent before has been received, so that none of it can still be on its way to a slot.
      if (begin != from.window.released() || begin == from.last_fallback) return false;
      from.message.resize(chunk_bytes_);
      from.last_fallback = begin;
      from.in_fallback = true;
      from.is_credit_due = true;
    }
    if (!team_.messages->has_received(from.peer.from, from.message.data(), chunk_bytes_, from.message_bytes))
      return false;
    if (from.message_bytes != 0) return true;
    from.in_fallback = false;
    return is_in_slot();
  }
  // After may_receive(): the oldest chunk, until release().
  const std::byte* front(int peer) const noexcept {
    const In& from = in_[static_cast<std::size_t>(peer)];
    return from.message_bytes != 0 ? from.message.data()
                                   : team_.wire->segment() + slot(from.peer.slots_here, from.window.released() + 1);
  }
  void release(int peer) noexcept {
    In& from = in(peer);
    const int id = credit_id(from.peer.number_there);
    if (from.message_bytes == 0) {
      if (from.window.release()) team_.wire->notify(from.peer.from, id, 2 * from.window.released());
      return;
    }
    from.message_bytes = 0;
    if (from.is_credit_due) team_.wire->notify(from.peer.from, id, 2 * from.window.released() + 1);
    from.is_credit_due = false;
  }

 private:
  // Numbers of chunks count from the first call.
  struct Out {
    Peer peer;
    SlidingWindow::Sender window;
    std::uint64_t sent_before_fallback = 0;  // the last time
    bool in_fallback = false;
  };
  struct In {
    Peer peer;
    SlidingWindow::Receiver window;
    std::uint64_t last_fallback = 0;  // how many those were when messages came, the last time; 0: never
    std::size_t message_bytes = 0;    // 0: there is none
    std::vector<std::byte> message;
    bool in_fallback = false;
    bool is_credit_due = false;
  };

  int count() const noexcept { return static_cast<int>(out_.size()); }
  Out& out(int peer) noexcept { return out_[static_cast<std::size_t>(peer)]; }
  In& in(int peer) noexcept { return in_[static_cast<std::size_t>(peer)]; }

  // Twice the chunks released from slots, and one more once messages after them have begun to come: it only grows.
  std::uint64_t credit(const Out& to) const noexcept { return team_.wire->look(credit_id(to.peer.number_here)); }
  std::uint64_t last_credit(const Out& to) const noexcept {
    const std::uint64_t of_slots = 2 * to.window.last_credit();
    return to.sent_before_fallback == 0 ? of_slots : std::max(of_slots, 2 * to.sent_before_fallback + 1);
  }
  bool has_slot(Out& to) const noexcept {
    return to.window.has_slot([&] { return credit(to) / 2; });
  }
  template <class Ready>
  bool is_soon(Ready ready) const noexcept {
    return team_.policy->is_soon([&] {
      team_.wire->progress();
      return ready();
    });
  }
  // Its reader takes messages, and has left all slots behind.
  bool may_end_fallback(const Out& to) const noexcept { return credit(to) > 2 * to.sent_before_fallback; }

  std::size_t slot(int stream, std::uint64_t number) const noexcept {
    return (static_cast<std::size_t>(stream) * static_cast<std::size_t>(slots_) +
            static_cast<std::size_t>(number % slots_)) *
           chunk_bytes_;
  }
  int chunk_id(int number) const noexcept { return number; }
  int credit_id(int number) const noexcept { return count() + number; }
  int fallback_id(int number) const noexcept { return 2 * count() + number; }

  const Team team_;
  const std::uint64_t slots_;
  const std::size_t chunk_bytes_;
  const std::uint64_t before_;  // what the notifications of chunks begin after
  std::vector<Out> out_;
  std::vector<In> in_;
};

}  // namespace papaya
