// Notified communication through shared memory, with threads as ranks.
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "algorithms/transport/shared_notified.hpp"
#include "tests/catch.hpp"
#include "tests/protocol/node.hpp"
#include "tests/protocol/notified_property.hpp"

namespace papaya {
namespace {

constexpr std::size_t most_bytes = 4096;

class Wires {
 public:
  Wires(int ranks, const SegmentShape& shape, wait::Mode mode)
      : bytes_(SharedNotified::region_bytes(ranks, shape)),
        region_(static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{4096}))),
        policies_(static_cast<std::size_t>(ranks)) {
    std::memset(region_, 0, bytes_);
    for (int rank = 0; rank < ranks; ++rank) {
      wait::Policy& policy = policies_[static_cast<std::size_t>(rank)];
      policy.configure(mode, {.cores = 1, .ranks = ranks, .board = nullptr, .rank = rank, .ns_per_tick = 1.0}, nullptr);
      wires_.push_back(std::make_unique<SharedNotified>(region_, rank, policy, shape));
    }
  }
  ~Wires() { ::operator delete (region_, std::align_val_t{4096}); }
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  Notified& operator[](int rank) { return *wires_[static_cast<std::size_t>(rank)]; }
  wait::Policy& policy(int rank) { return policies_[static_cast<std::size_t>(rank)]; }

 private:
  std::size_t bytes_;
  std::byte* region_;
  std::vector<wait::Policy> policies_;
  std::vector<std::unique_ptr<SharedNotified>> wires_;
};

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
