// Notified communication through shared memory, with threads as ranks.
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/sliding_window.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/node.hpp"
#include "tests/protocol/notified_property.hpp"
#include "tests/protocol/wires.hpp"

namespace papaya {
namespace {

constexpr std::size_t most_bytes = 4096;

TEST_CASE("notified: data before their notification, none lost, none twice", "[protocol]") {
  for (const int ranks : {1, 2, 3, 5, 8})
    for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block}) {
      Wires wires(ranks, NotifiedProperty::shape(ranks, most_bytes), mode);
      std::atomic<int> wrong{0};
      on_ranks(ranks, [&](int rank) {
        wait::Site site;
        wrong += NotifiedProperty(wires[rank], rank, ranks, most_bytes, 60).run(wires.policy(rank), site);
      });
      CHECK(wrong == 0);
    }
}

// What both ends of a window do alike at number n of a call: a chunk, numbers without chunks, credit out of turn.
enum class Turn { chunk, gap, credit };
Turn turn_of(std::uint64_t n) {
  return n % 23 == 22 ? Turn::gap : n % 17 == 16 ? Turn::credit : Turn::chunk;
}

TEST_CASE("sliding window: no chunk is overwritten before its release, nobody is stuck, the last credit comes",
          "[protocol]") {
  constexpr int arrived = 0;
  constexpr int credited = 1;
  constexpr std::size_t chunk_bytes = 256;
  constexpr std::uint64_t chunks = 600;
  for (const std::uint64_t slots : {1, 2, 3, 8})
    for (std::uint64_t at_once = 1; at_once <= slots; ++at_once)
      for (const std::uint64_t before : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 100}) {
        CAPTURE(slots, at_once, before);
        const SlidingWindow window{slots, at_once};
        Wires wires(2, {slots * chunk_bytes, 2}, wait::Mode::automatic);
        std::atomic<int> wrong{0};
        on_ranks(2, [&](int rank) {
          Notified& wire = wires[rank];
          wait::Site site;
          std::minstd_rand random(static_cast<unsigned>(rank + 1) * 7);
          const auto wait_for = [&](auto&& ready) {
            if (!ready()) wire.wait(wires.policy(rank), site, ready, nullptr);
          };
          SlidingWindow::Sender to(window, before);
          SlidingWindow::Receiver from(window, before);
          std::array<std::uint64_t, chunk_bytes / sizeof(std::uint64_t)> words{};
          for (std::uint64_t n = 0; n < chunks; ++n) {
            if (random() % 64 == 0) std::this_thread::yield();
            const Turn turn = turn_of(n);
            if (rank == 0) {
              if (turn == Turn::gap) {
                to.skip_to(to.sent() + 5);
                continue;
              }
              wait_for([&] { return to.has_slot([&] { return wire.look(credited); }); });
              const std::uint64_t number = to.send();
              words.fill(number);
              wire.write_notify(1, number % slots * chunk_bytes, words.data(), chunk_bytes, arrived, number);
              if (turn == Turn::credit) to.expect_credit();
              if (to.last_credit() > to.sent() || to.sent() - to.last_credit() >= at_once) ++wrong;
            } else {
              bool is_due = false;
              if (turn == Turn::gap) {
                is_due = from.skip_to(from.released() + 5);
              } else {
                wait_for([&] { return wire.look(arrived) > from.released(); });
                if (wire.look(arrived) > from.released() + slots) ++wrong;
                std::memcpy(words.data(), wire.segment() + (from.released() + 1) % slots * chunk_bytes, chunk_bytes);
                for (const std::uint64_t word : words)
                  if (word != from.released() + 1) ++wrong;
                is_due = from.release();
                if (turn == Turn::credit) from.return_credit();
              }
              if (is_due || turn == Turn::credit) wire.notify(0, credited, from.released());
            }
          }
          // The sender goes only then.
          if (rank == 0) wait_for([&] { return wire.look(credited) >= to.last_credit(); });
          if (rank == 0 && wire.look(credited) != to.last_credit()) ++wrong;
          wire.leave();
        });
        CHECK(wrong == 0);
      }
}

TEST_CASE("sliding window: what is known without returned credit, and a new receiver", "[protocol]") {
  SlidingWindow::Sender to({.slots = 2, .credits_at_once = SlidingWindow::explicit_only}, 10);
  int looks = 0;
  const auto heard = [&](std::uint64_t number) {
    return [&looks, number] {
      ++looks;
      return number;
    };
  };
  CHECK(to.has_slot(heard(0)));
  CHECK(to.send() == 11);
  CHECK(to.send() == 12);
  CHECK(looks == 0);  // what it begins with is enough
  CHECK_FALSE(to.has_slot(heard(0)));
  CHECK(looks == 1);
  to.knows_released(11);
  CHECK(to.has_slot(heard(0)));
  CHECK(to.send() == 13);
  CHECK_FALSE(to.has_slot(heard(11)));
  CHECK(to.has_slot(heard(13)));
  to.knows_released(12);  // an old one takes nothing back
  CHECK(to.send() == 14);
  CHECK(to.send() == 15);
  CHECK_FALSE(to.has_slot(heard(13)));
  CHECK(to.last_credit() == 10);
  to.expect_credit();
  CHECK(to.last_credit() == 15);
  to.knows_released(15);
  to.forget_released(10);
  CHECK_FALSE(to.has_slot(heard(10)));
}

TEST_CASE("notified: whoever sleeps is woken by a notification, and by no other's missed one", "[protocol]") {
  Wires wires(3, {64, 4}, wait::Mode::block);
  std::atomic<int> wrong{0};
  // Ranks 1 and 2 notify rank 0 at the same time, over and over; it answers once it has both.
  on_ranks(3, [&](int rank) {
    wait::Site site;
    for (std::uint64_t number = 1; number <= 500; ++number) {
      if (rank == 0) {
        wires[0].wait(
            wires.policy(0), site, [&] { return wires[0].look(1) >= number && wires[0].look(2) >= number; }, nullptr);
        if (wires[0].look_for(1, 2) != 1) ++wrong;
        for (const int peer : {1, 2}) wires[0].notify(peer, 0, number);
      } else {
        wires[rank].notify(0, rank, number);
        wires[rank].wait(
            wires.policy(rank), site, [&] { return wires[rank].look(0) >= number; }, nullptr);
      }
    }
  });
  CHECK(wrong == 0);
  CHECK(wires[0].look(3) == 0);
  CHECK(wires[0].look_for(3, 1) == -1);
}

}  // namespace
}  // namespace papaya
