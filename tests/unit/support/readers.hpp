// Processes that read a run together, as threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "profiler/analysis/readers.hpp"

namespace papaya::support {

class ReaderThreads {
 public:
  explicit ReaderThreads(std::size_t all) : all_(all) {}

  // `helps(readers)` in the others, and meanwhile `reads(readers)` in number 0, which returns what that does.
  template <class Reads, class Helps>
  auto run(const Reads& reads, const Helps& helps) {
    std::vector<std::thread> others;
    for (std::size_t number = 1; number < all_; ++number)
      others.emplace_back([&, number] {
        One one(*this, number);
        helps(one);
      });
    One first(*this, 0);
    auto result = reads(first);
    for (std::thread& other : others) other.join();
    return result;
  }

  // Before run(): a message is lost for which this holds, and arrives empty: from whom, to whom, and which one from
  // there to there, from 0.
  std::function<bool(std::size_t from, std::size_t to, std::size_t which)> is_lost;
  std::size_t asked_for() const { return asked_; }
  std::size_t bytes() const { return bytes_; }

 private:
  class One final : public report::Readers {
   public:
    One(ReaderThreads& of, std::size_t number) : of_(of), number_(number) {}
    std::size_t number() const override { return number_; }
    std::size_t all() const override { return of_.all_; }
    void send(std::size_t to, std::span<const std::byte> message) noexcept override {
      const std::lock_guard lock(of_.mutex_);
      std::vector<std::byte> sent(message.begin(), message.end());
      of_.bytes_ += sent.size();
      if (of_.is_lost && of_.is_lost(number_, to, of_.sent_[{number_, to}]++)) sent.clear();
      of_.messages_[{number_, to}].push_back(std::move(sent));
      of_.come_.notify_all();
    }
    std::vector<std::byte> receive(std::size_t from) noexcept override {
      std::unique_lock lock(of_.mutex_);
      std::deque<std::vector<std::byte>>& queue = of_.messages_[{from, number_}];
      of_.come_.wait(lock, [&] { return !queue.empty(); });
      std::vector<std::byte> message = std::move(queue.front());
      queue.pop_front();
      return message;
    }
    void ask(std::size_t count) noexcept override {
      const std::lock_guard lock(of_.mutex_);
      of_.asked_ = count;
      of_.has_asked_ = true;
      of_.come_.notify_all();
    }
    std::size_t asked() noexcept override {
      std::unique_lock lock(of_.mutex_);
      of_.come_.wait(lock, [&] { return of_.has_asked_; });
      return of_.asked_;
    }

   private:
    ReaderThreads& of_;
    const std::size_t number_;
  };

  const std::size_t all_;
  std::mutex mutex_;
  std::condition_variable come_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<std::vector<std::byte>>> messages_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> sent_;
  std::size_t bytes_ = 0;
  std::size_t asked_ = 0;
  bool has_asked_ = false;
};

}  // namespace papaya::support
