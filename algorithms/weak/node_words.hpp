// Memory that all ranks of a node share, as words that they change by atomic operations and data that these words
// guard: a doorbell, the words, each on a line of its own, then the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "algorithms/team.hpp"
#include "algorithms/transport/notified.hpp"

namespace papaya {

struct NodeWords {
  static constexpr std::size_t line = 64;

  static constexpr std::size_t bytes(std::size_t words) noexcept { return sizeof(wait::Doorbell) + words * line; }
  template <class Word>
  static Word& word(std::byte* region, std::size_t which) noexcept {
    return *reinterpret_cast<Word*>(region + bytes(which));
  }

  template <class Value>
  static Value read(const std::byte* from) noexcept {
    Value value{};
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  template <class Value>
  static void write(std::byte* to, const Value& value) noexcept {
    std::memcpy(to, &value, sizeof value);
  }

  // A wire that waits need no more of than its bell: all else is in the region.
  class Bell final : public Notified {
   public:
    explicit Bell(std::byte* region) noexcept { bell_ = reinterpret_cast<wait::Doorbell*>(region); }
    // After what others may wait for.
    void ring(const wait::Policy& policy) const noexcept {
      if (policy.is_anybody_asleep(*bell_)) policy.ring(*bell_, bell_->completed.load(std::memory_order_relaxed) + 1);
    }

    void write_notify(int, std::size_t, const void*, std::size_t, int, std::uint64_t) noexcept override {
      std::abort();
    }
    std::uint64_t look(int) noexcept override { std::abort(); }
    std::uint64_t reset(int) noexcept override { std::abort(); }
    void progress() noexcept override {}
  };
  static Team over(const Team& team, Bell& wire) noexcept {
    Team with = team;
    with.wire = &wire;
    return with;
  }
};

}  // namespace papaya
