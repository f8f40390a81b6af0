// Exchanges of blocks: single copy, MPI_Alltoallv, ranks that decline.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "algorithms/algorithm.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/call.hpp"
#include "tests/protocol/every.hpp"
#include "tests/protocol/node.hpp"

namespace papaya {

namespace {

std::atomic<int> reads;
std::atomic<int> fails_at;  // the number of the read that fails, 0: none

bool sometimes_read(pid_t pid, const void* address, void* to, std::size_t bytes) {
  const int number = reads.fetch_add(1) + 1;
  return number != fails_at.load() && read_memory(pid, address, to, bytes);
}

}  // namespace

TEST_CASE("single copy: blocks are read from their owner; after a read that fails all go through the window",
          "[protocol]") {
  for (const Collective collective : {Collective::allgather, Collective::alltoall})
    for (const Descriptor* descriptor : algorithms_for(collective, false)) {
      std::vector<std::int64_t> values = default_values(*descriptor);
      bool has_parameter = false;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (descriptor->parameters[i].name == "single_copy_bytes") {
          values[i] = 1;
          has_parameter = true;
        }
      if (!has_parameter) continue;
      for (const int ranks : {2, 3, 5})
        for (const int fail : {0, 1, 7}) {
          reads = 0;
          fails_at = fail;
          Node node(*descriptor, ranks, wait::Mode::automatic, {.values = values, .read = sometimes_read});
          const Reduction reduction = reduction_for(true, true);
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            std::mt19937 random(static_cast<unsigned>(rank));
            for (int number = 0; number < 40; ++number) {
              const std::size_t count = number % 4 == 0 ? 3 * capacity / sizeof(Matrix) / 2 : 5;
              // Now and then in place, and with a rank that declines.
              const bool declined = number % 7 == 3;
              Call call(collective, reduction, rank, ranks, number, count, number % 5 == 0);
              call.operands().declines = declined && number % ranks == rank;
              if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
              const bool done = node.rank(rank).run(call.operands(), site);
              if (done == declined || (done ? !call.is_right() : !call.is_untouched())) ++wrong;
            }
          });
          CHECK(wrong == 0);
          CHECK(reads > 0);
        }
    }
}

TEST_CASE("single copy: begins where the second copy would not come from a cache", "[protocol]") {
  constexpr int ranks = 3;
  constexpr std::size_t count = 4;
  constexpr auto bytes = static_cast<std::int64_t>(count * sizeof(Matrix));
  for (const Collective collective : {Collective::allgather, Collective::alltoall})
    for (const Descriptor* descriptor : algorithms_for(collective, false)) {
      std::vector<std::int64_t> values = default_values(*descriptor);
      std::int64_t* single_copy_bytes = nullptr;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (descriptor->parameters[i].name == "single_copy_bytes") single_copy_bytes = &values[i];
      if (single_copy_bytes == nullptr) continue;
      // What comes from all others, or for each reader.
      const std::int64_t limit = collective == Collective::alltoall ? bytes * (ranks - 1) : bytes / (ranks - 1);
      for (const std::int64_t value : {limit, limit + 1}) {
        *single_copy_bytes = value;
        reads = 0;
        fails_at = 0;
        Node node(*descriptor, ranks, wait::Mode::automatic, {.values = values, .read = sometimes_read});
        const Reduction reduction = reduction_for(true, true);
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank) {
          wait::Site site;
          for (int number = 0; number < 4; ++number) {
            Call call(collective, reduction, rank, ranks, number, count, false);
            if (!node.rank(rank).run(call.operands(), site) || !call.is_right()) ++wrong;
          }
        });
        CHECK(wrong == 0);
        CHECK((reads > 0) == (value == limit));
      }
    }
}

namespace {

// One alltoallv of one rank: sizes that differ from pair to pair, in buffers with gaps.
class VaryingCall {
 public:
  VaryingCall(int rank, int ranks, int number)
      : rank_(rank), ranks_(ranks), number_(number), in_place_(number % 3 == 1) {
    const auto place = [&](std::vector<Block>& blocks, std::vector<std::byte>& buffer, auto size) {
      std::size_t all = gap;
      for (int peer = 0; peer < ranks; ++peer) all += size(peer) + gap;
      buffer.assign(all, untouched);
      std::byte* at = buffer.data() + all;
      for (int peer = 0; peer < ranks; ++peer) {
        at -= size(peer) + gap;
        blocks.push_back({at, size(peer)});
      }
    };
    place(receive_, received_, [&](int peer) { return bytes(peer, rank_) + room(peer); });
    if (!in_place_) place(send_, sent_, [&](int peer) { return bytes(rank_, peer); });
    for (int peer = 0; peer < ranks; ++peer)
      for (std::size_t i = 0; i < sends()[peer].bytes; ++i) sends()[peer].at[i] = value(rank_, peer, i);
  }

  Operands operands() {
    Operands all{.send = nullptr, .receive = nullptr, .count = 0, .bytes = 0, .root = -1, .reduction = &none_};
    all.send_blocks = sends();
    all.receive_blocks = receive_.data();
    return all;
  }
  bool is_right() {
    std::vector<std::byte> expected(received_.size(), untouched);
    for (int peer = 0; peer < ranks_; ++peer) {
      if (receive_[static_cast<std::size_t>(peer)].bytes != bytes(peer, rank_)) return false;
      std::byte* const at = expected.data() + (receive_[static_cast<std::size_t>(peer)].at - received_.data());
      for (std::size_t i = 0; i < bytes(peer, rank_); ++i) at[i] = value(peer, rank_, i);
    }
    return received_ == expected;
  }
  bool is_untouched() {
    for (int peer = 0; peer < ranks_; ++peer)
      for (std::size_t i = 0; i < sends()[peer].bytes; ++i)
        if (sends()[peer].at[i] != value(rank_, peer, i)) return false;
    return true;
  }

 private:
  static constexpr std::size_t gap = 24;
  static constexpr std::byte untouched{0xa5};

  Block* sends() { return in_place_ ? receive_.data() : send_.data(); }
  // Nothing, a few bytes, some, a lot between all; a lot from one rank alone.
  std::size_t bytes(int from, int to) const {
    if (in_place_ && from > to) std::swap(from, to);
    std::minstd_rand random(static_cast<unsigned>(number_ * 1009 + from * 101 + to + 1));
    random.discard(3);
    const std::size_t kind = random() % 4;
    const auto up_to = [&](std::size_t most) { return kind == 0 ? 0 : random() % (most + 1); };
    switch (number_ % 8) {
      case 0:
        return 0;
      case 1:
      case 2:
        return up_to(24);
      case 3:
      case 4:
        return up_to(3000);
      case 5:
        return from == number_ / 8 % ranks_ ? up_to(4 * capacity) + kind * capacity : up_to(9);
      case 6:
        return to == number_ / 8 % ranks_ ? up_to(2 * capacity) + 17 : 0;
      default:
        return up_to(kind == 3 ? 3 * capacity : 70000);
    }
  }
  // Some programs leave more room than is sent.
  std::size_t room(int from) const { return !in_place_ && number_ % 5 == 4 && from != rank_ ? 40 : 0; }
  std::byte value(int from, int to, std::size_t i) const {
    return static_cast<std::byte>(static_cast<unsigned>(from * 31 + to * 17 + number_ * 7) + i * 13 + i / 251);
  }

  const int rank_;
  const int ranks_;
  const int number_;
  const bool in_place_;
  const Reduction none_;
  std::vector<Block> send_;
  std::vector<Block> receive_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
};

template <class Body>
void for_each_alltoallv(Body body) {
  for (const Descriptor* descriptor : registry())
    if (descriptor->serves_alltoallv) {
      INFO(name_of(descriptor->collective) << " " << descriptor->name);
      body(*descriptor);
    }
}

}  // namespace

TEST_CASE("alltoallv: sizes of all kinds, in place or not, declines, calls of one size between", "[protocol]") {
  for_each_alltoallv([](const Descriptor& descriptor) {
    for (const int ranks : {1, 2, 3, 5, 8})
      for (const wait::Mode mode : {wait::Mode::automatic, wait::Mode::yield, wait::Mode::block}) {
        // With a sanitizer all on few ranks, automatic on more.
        if (thorough == 1 && ranks > 3 && mode != wait::Mode::automatic) continue;
        Node node(descriptor, ranks, mode);
        const Reduction reduction = reduction_for(true, true);
        std::atomic<int> wrong{0};
        on_ranks(ranks, [&](int rank) {
          wait::Site site;
          std::mt19937 random(static_cast<unsigned>(rank) * 31 + static_cast<unsigned>(ranks));
          for (int number = 0; number < 21 * thorough; ++number) {
            if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
            VaryingCall call(rank, ranks, number);
            Operands operands = call.operands();
            const bool declined = descriptor.serves_declines && (number % 11 == 7 || number % 16 == 5);
            operands.declines = declined && rank == number % ranks;
            const bool done = node.rank(rank).run(operands, site);
            if (done == declined || (done ? !call.is_right() : !call.is_untouched())) ++wrong;
            if (number % 6 != 0) continue;
            Call even(descriptor.collective, reduction, rank, ranks, number, number % 4 == 0 ? 5000 : 3,
                      number % 12 == 0);
            if (!node.rank(rank).run(even.operands(), site) || !even.is_right()) ++wrong;
          }
        });
        CHECK(wrong == 0);
      }
  });
}

TEST_CASE("alltoallv: every arrival order of few ranks", "[protocol]") {
  for_each_alltoallv([](const Descriptor& descriptor) {
    for (const int ranks : {2, 3, 4}) {
      Node node(descriptor, ranks, wait::Mode::block);
      std::vector<wait::Site> sites(static_cast<std::size_t>(ranks));
      std::atomic<int> wrong{0};
      in_every_order(node, thorough == 1 ? 3 : 8, wait::Mode::block, [&](int rank, int number, auto enter) {
        VaryingCall call(rank, ranks, number);
        enter();
        if (!node.rank(rank).run(call.operands(), sites[static_cast<std::size_t>(rank)]) || !call.is_right()) ++wrong;
      });
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("one rank that declines keeps all out of an exchange, with nothing overwritten", "[protocol]") {
  for (const Collective collective : {Collective::allgather, Collective::allgatherv, Collective::alltoall,
                                      Collective::reduce_scatter, Collective::reduce_scatter_block})
    for (const Descriptor* descriptor : algorithms_for(collective, false))
      for (const int ranks : {2, 3, 5})
        for (const std::size_t count : {std::size_t{2}, 3 * capacity / sizeof(Matrix) / 2}) {
          if (!descriptor->serves_declines) continue;
          Node node(*descriptor, ranks, wait::Mode::automatic);
          const Reduction reduction = reduction_for(true, true);
          std::atomic<int> wrong{0};
          on_ranks(ranks, [&](int rank) {
            wait::Site site;
            for (int number = 0; number < 30; ++number) {
              Call call(collective, reduction, rank, ranks, number, count, number % 2 == 0);
              call.operands().declines = number % 3 != 0 && number % ranks == rank;
              const bool done = node.rank(rank).run(call.operands(), site);
              if (done != (number % 3 == 0) || (done ? !call.is_right() : !call.is_untouched())) ++wrong;
            }
          });
          CHECK(wrong == 0);
        }
}

}  // namespace papaya
