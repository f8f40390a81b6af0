// Parts of messages from one rank of a team to another over the wire, in order: whoever sends may be ahead of whoever
// receives by a number of slots. Both know the parts' sizes.
//
// A stream is a sliding window. Its part number n, from 1, goes to slot n mod `slots` of the stream in the receiver's
// segment, and its notification is n. The receiver answers every half of the slots how many parts it has taken.
//
// Whose message may go apart, since MPI would let its sender leave the call, never waits for slots: if they are in use
// the parts go as messages, which MPI sends as it would have sent the program's own. The sender notifies after how many
// parts the messages begin. The receiver, once it has taken those, takes messages, and answers at the first one. Then
// the slots are free, and the sender goes back to them with an empty message. So what is written to a rank that does
// not look is bounded: two answers or one notification, whatever the number of calls.
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
  static constexpr std::size_t least_part = 4096;
  // Above, MPI makes the sender wait for the receiver, too.
  static constexpr std::size_t most_apart = 65536;

  // The bytes of a part, as wanted or so many fewer that parts from all writers take 1 MiB of a segment, but
  // `least_part` at least.
  static std::size_t fair_part(int writers, std::size_t wanted) noexcept {
    constexpr std::size_t memory = 1 << 20;
    return in_lines(
        std::max(std::min(wanted, memory / (slots_of_a_pair * static_cast<std::size_t>(writers))), least_part));
  }

  // Of a rank's lines: a stream that it writes, to `to`, and one that it reads, from `from`.
  struct Line {
    int to;
    int from;
    int place_there;   // where the slots of the first lie at `to`, counted in streams
    int place_here;    // those of the second, here
    int number_there;  // which line this one is to the other ends: what is notified there goes by it
    int number_here;   // and here
  };
  static SegmentShape segment_of(int lines, int places, std::uint64_t slots, std::size_t part_bytes) noexcept {
    return {std::max<std::size_t>(static_cast<std::size_t>(places) * slots * in_lines(part_bytes), 64),
            std::max(3 * lines, 1)};
  }

  // Any rank may send to any, at any time; a line's number is the peer's rank. Room for parts of `part_bytes` from each
  // of `writers`: all ranks, 1 where only one ever writes to a rank, or, where only leaders do, as many as nodes. Then
  // `nodes` says whose leader a writer is.
  struct Shape {
    int ranks;
    std::size_t part_bytes;
    int writers;
    const Nodes* nodes = nullptr;

    static Shape among_leaders(const Layout& layout, std::size_t part_bytes) noexcept {
      return {layout.ranks, part_bytes, layout.leaders(), layout.nodes};
    }

    SegmentShape segment() const noexcept { return segment_of(ranks, writers, slots_of_a_pair, part_bytes); }
    int place_of(int writer) const noexcept {
      return nodes == nullptr ? writer % writers : nodes->of_rank[static_cast<std::size_t>(writer)];
    }
    std::vector<Line> lines(int rank) const {
      std::vector<Line> all;
      for (int peer = 0; peer < ranks; ++peer)
        all.push_back({.to = peer,
                       .from = peer,
                       .place_there = place_of(rank),
                       .place_here = place_of(peer),
                       .number_there = rank,
                       .number_here = peer});
      return all;
    }
  };
  Streams(const Team& team, const Shape& shape)
      : Streams(team, shape.lines(team.rank), slots_of_a_pair, shape.part_bytes) {}

  Streams(const Team& team, const std::vector<Line>& lines, std::uint64_t slots, std::size_t part_bytes)
      : team_(team), slots_(slots), part_bytes_(in_lines(part_bytes)), before_(team.first_round - 1) {
    const SlidingWindow window{.slots = slots, .answered_at_once = slots / 2};
    for (const Line& line : lines) {
      out_.push_back({.line = line, .window = {window, 0}});
      in_.push_back({.line = line, .window = {window, 0}});
    }
  }

  // The last answers of the others, which have no more to say after them.
  ~Streams() {
    wait::Site site;
    if (!may_end())
      team_.wire->wait(
          *team_.policy, site, [this] { return may_end(); }, nullptr);
  }
  bool may_end() const noexcept {
    return std::all_of(out_.begin(), out_.end(), [this](const Out& to) {
      const std::uint64_t last = last_answer(to);
      return last == 0 || answer(to) >= last;
    });
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Whether parts of the calls' message may go apart: equal on all ranks.
  bool may_go_apart(std::size_t message_bytes) const noexcept {
    return team_.messages != nullptr && message_bytes != 0 && message_bytes <= most_apart;
  }

  bool may_send(int line, bool may_go_apart = false) noexcept {
    Out& to = out(line);
    return may_go_apart || (to.is_apart ? may_return(to) : has_slot(to));
  }
  // After may_send(), with the same answer to what may go apart. The source stays as it is until are_sources_free().
  void send(int line, const void* part, std::size_t bytes, bool may_go_apart = false) noexcept {
    Out& to = out(line);
    const int peer = to.line.to;
    if (to.is_apart) {
      if (may_go_apart) team_.wire->progress();  // who waits for nothing makes none otherwise
      if (!may_return(to)) return team_.messages->begin_send(peer, part, bytes);
      team_.messages->begin_send(peer, nullptr, 0);
      to.is_apart = false;
      to.window.knows_taken(to.sent_before_apart);
    } else if (may_go_apart && !has_slot(to) && !is_soon([&] { return has_slot(to); })) {
      to.is_apart = true;
      to.sent_before_apart = to.window.sent();
      team_.wire->notify(peer, apart_id(to.line.number_there), to.window.sent());
      return team_.messages->begin_send(peer, part, bytes);
    }
    const std::uint64_t number = to.window.send();
    team_.wire->write_notify(peer, slot(to.line.place_there, number), part, bytes, part_id(to.line.number_there),
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

  bool may_receive(int line) {
    In& from = in(line);
    if (from.message_bytes != 0) return true;
    const auto is_in_slot = [&] {
      return team_.wire->look(part_id(from.line.number_here)) > before_ + from.window.taken();
    };
    if (!from.is_apart) {
      if (is_in_slot()) return true;
      if (team_.messages == nullptr) return false;
      const std::uint64_t begin = team_.wire->look(apart_id(from.line.number_here));
      // What was sent before has been received, so that none of it can still be on its way to a slot.
      if (begin != from.window.taken() || begin == from.last_apart) return false;
      from.message.resize(part_bytes_);
      from.last_apart = begin;
      from.is_apart = true;
      from.is_answer_due = true;
    }
    if (!team_.messages->has_received(from.line.from, from.message.data(), part_bytes_, from.message_bytes))
      return false;
    if (from.message_bytes != 0) return true;
    from.is_apart = false;
    return is_in_slot();
  }
  // After may_receive(): the oldest part, until it is taken.
  const std::byte* front(int line) const noexcept {
    const In& from = in_[static_cast<std::size_t>(line)];
    return from.message_bytes != 0 ? from.message.data()
                                   : team_.wire->segment() + slot(from.line.place_here, from.window.taken() + 1);
  }
  void take(int line) noexcept {
    In& from = in(line);
    const int id = answer_id(from.line.number_there);
    if (from.message_bytes == 0) {
      if (from.window.take()) team_.wire->notify(from.line.from, id, 2 * from.window.taken());
      return;
    }
    from.message_bytes = 0;
    if (from.is_answer_due) team_.wire->notify(from.line.from, id, 2 * from.window.taken() + 1);
    from.is_answer_due = false;
  }

 private:
  // Numbers of parts count from the first call.
  struct Out {
    Line line;
    SlidingWindow::Sender window;
    std::uint64_t sent_before_apart = 0;  // the last time
    bool is_apart = false;
  };
  struct In {
    Line line;
    SlidingWindow::Receiver window;
    std::uint64_t last_apart = 0;   // how many those were when messages came, the last time; 0: never
    std::size_t message_bytes = 0;  // 0: there is none to be taken
    std::vector<std::byte> message;
    bool is_apart = false;
    bool is_answer_due = false;
  };

  int count() const noexcept { return static_cast<int>(out_.size()); }
  Out& out(int line) noexcept { return out_[static_cast<std::size_t>(line)]; }
  In& in(int line) noexcept { return in_[static_cast<std::size_t>(line)]; }

  // Twice the parts taken from slots, and one more once messages after them have begun to come: it only grows.
  std::uint64_t answer(const Out& to) const noexcept { return team_.wire->look(answer_id(to.line.number_here)); }
  std::uint64_t last_answer(const Out& to) const noexcept {
    const std::uint64_t of_slots = 2 * to.window.last_answer();
    return to.sent_before_apart == 0 ? of_slots : std::max(of_slots, 2 * to.sent_before_apart + 1);
  }
  bool has_slot(Out& to) const noexcept {
    return to.window.has_slot([&] { return answer(to) / 2; });
  }
  template <class Ready>
  bool is_soon(Ready ready) const noexcept {
    return team_.policy->is_soon([&] {
      team_.wire->progress();
      return ready();
    });
  }
  // Its reader takes messages, and has left all slots behind.
  bool may_return(const Out& to) const noexcept { return answer(to) > 2 * to.sent_before_apart; }

  std::size_t slot(int place, std::uint64_t number) const noexcept {
    return (static_cast<std::size_t>(place) * static_cast<std::size_t>(slots_) +
            static_cast<std::size_t>(number % slots_)) *
           part_bytes_;
  }
  int part_id(int number) const noexcept { return number; }
  int answer_id(int number) const noexcept { return count() + number; }
  int apart_id(int number) const noexcept { return 2 * count() + number; }

  const Team team_;
  const std::uint64_t slots_;
  const std::size_t part_bytes_;
  const std::uint64_t before_;  // what the notifications of parts begin after
  std::vector<Out> out_;
  std::vector<In> in_;
};

}  // namespace papaya
