// Out-of-band collectives in shared memory, with threads as ranks: late ranks, ranks that run ahead to the next call,
// texts that go in pieces, and memory that calls by turns reuse.
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/transport/shared_out_of_band.hpp"
#include "tests/catch.hpp"

namespace papaya {
namespace {

std::atomic<std::uint64_t> pokes{0};
void poke() {
  pokes.fetch_add(1, std::memory_order_relaxed);
}

// Runs `body(out_of_band)` as each of the ranks.
template <typename Body>
void as_ranks(int ranks, Body body) {
  std::vector<std::byte> memory(SharedOutOfBand::bytes_for(static_cast<std::size_t>(ranks)) + 64);
  std::byte* const begin = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      SharedOutOfBand one(begin, rank, ranks, poke);
      body(one);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("every rank gets what every rank has given, call after call") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    std::atomic<int> wrong{0};
    as_ranks(ranks, [&](OutOfBand& node) {
      for (int call = 0; call < 200; ++call) {
        if (call % 50 == node.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const std::vector<int> all = node.gather(1000 * call + node.rank());
        for (int rank = 0; rank < ranks; ++rank) wrong += all[static_cast<std::size_t>(rank)] != 1000 * call + rank;
        std::uint64_t word = node.rank() == 0 ? static_cast<std::uint64_t>(call) * 7 : 1;
        node.broadcast(&word, sizeof word);
        wrong += word != static_cast<std::uint64_t>(call) * 7;
        wrong += node.least(call + node.rank()) != call;
        wrong += node.most(call + node.rank()) != call + ranks - 1;
      }
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("a text of any length comes to every rank") {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, SharedOutOfBand::most_broadcast_bytes,
                                   SharedOutOfBand::most_broadcast_bytes + 1, std::size_t{100'000}}) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + i % 23);
    std::atomic<int> wrong{0};
    as_ranks(3, [&](OutOfBand& node) {
      for (int call = 0; call < 3; ++call)
        wrong += node.broadcast(node.rank() == 0 ? text : std::string("not this")) != text;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("nobody leaves a meeting before the last rank has come, and who waits asks for progress") {
  pokes = 0;
  std::atomic<int> here{0};
  std::atomic<int> early{0};
  as_ranks(4, [&](OutOfBand& node) {
    for (int call = 1; call <= 20; ++call) {
      if (call % 4 == node.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      here.fetch_add(1);
      node.meet();
      early += here.load() < 4 * call;
    }
  });
  CHECK(early == 0);
  CHECK(pokes > 0);
}

}  // namespace papaya
