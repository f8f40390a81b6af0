// Agreement in one process: ranks are threads, or take turns in one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "interpose/agreement.hpp"

namespace papaya::fakes {

inline constexpr int ranks = 4;
inline std::atomic<int> mistakes{0};  // given back twice, or what nobody had taken

// The exchanges of all ranks, in their order.
struct Hub {
  enum class Kind { first, least, gather };
  struct Exchange {
    std::optional<Kind> kind;
    int arrived = 0;
    std::array<std::int64_t, ranks> values{};
    std::array<std::byte, 64> data{};
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::size_t, Exchange> exchanges;
};

class FakeAgreement final : public Agreement {
 public:
  FakeAgreement(Hub& hub, int rank, bool waits) : hub_(hub), rank_(rank), waits_(waits) {}
  std::size_t begun() const noexcept { return begun_; }

 private:
  void begin_from_first(void* data, int bytes) noexcept override {
    data_ = data;
    data_bytes_ = static_cast<std::size_t>(bytes);
    begin(Hub::Kind::first, 0, waits_);
  }
  void begin_least(const int& mine, int& all) noexcept override {
    least_ = &all;
    begin(Hub::Kind::least, mine, waits_);
  }
  void begin_least_while_connecting(const int& mine, int& all) noexcept override {
    least_ = &all;
    begin(Hub::Kind::least, mine, false);
  }
  void begin_gather(const std::int64_t& mine, std::int64_t* all) noexcept override {
    gathered_ = all;
    begin(Hub::Kind::gather, mine, waits_);
  }
  void begin(Hub::Kind kind, std::int64_t mine, bool waits) noexcept {
    std::unique_lock lock(hub_.mutex);
    Hub::Exchange& exchange = hub_.exchanges[begun_++];
    if (exchange.kind.value_or(kind) != kind) ++mistakes;
    exchange.kind = kind;
    exchange.values[static_cast<std::size_t>(rank_)] = mine;
    if (kind == Hub::Kind::first && rank_ == 0)
      std::copy_n(static_cast<const std::byte*>(data_), data_bytes_, exchange.data.begin());
    ++exchange.arrived;
    is_open_ = true;
    hub_.changed.notify_all();
    if (!waits) return;
    hub_.changed.wait(lock, [&] { return exchange.arrived == ranks; });
    end(exchange);
  }
  void end(const Hub::Exchange& exchange) noexcept {
    is_open_ = false;
    const auto& values = exchange.values;
    if (exchange.kind == Hub::Kind::first)
      std::copy_n(exchange.data.begin(), data_bytes_, static_cast<std::byte*>(data_));
    else if (exchange.kind == Hub::Kind::least)
      *least_ = static_cast<int>(*std::min_element(values.begin(), values.end()));
    else
      std::copy(values.begin(), values.end(), gathered_);
  }
  bool is_ended() noexcept override {
    if (!is_open_) return true;
    const std::lock_guard lock(hub_.mutex);
    const Hub::Exchange& exchange = hub_.exchanges[begun_ - 1];
    if (exchange.arrived != ranks) return false;
    end(exchange);
    return true;
  }
  void pause() noexcept override { std::this_thread::yield(); }

  Hub& hub_;
  const int rank_;
  const bool waits_;
  bool is_open_ = false;
  std::size_t begun_ = 0;
  void* data_ = nullptr;
  std::size_t data_bytes_ = 0;
  int* least_ = nullptr;
  std::int64_t* gathered_ = nullptr;
};

}  // namespace papaya::fakes
