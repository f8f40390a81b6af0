// Records in bins by their keys. What is in a bin lies in pieces of a common store, so that bins grow without being
// copied, and a bin fits a core's cache when it is sorted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bounds.hpp"
#include "memory.hpp"
#include "record.hpp"
#include "times.hpp"

namespace terasort {

// Where a record is, by its key: 16 bytes are sorted instead of 100.
struct Place {
  std::uint64_t high;
  std::uint32_t index;
  std::uint16_t low;

  friend bool operator<(const Place& a, const Place& b) noexcept {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
};

class Bins {
 public:
  // `bounds`: the least key of each bin but the first; `expected`: records of a bin, about.
  Bins(const std::vector<Key>& bounds, std::uint64_t expected, Times& times);

  void add(std::span<const Record> records);
  // Sorts what has come to a bin, where that is much, but not so much that others would wait for this rank; false:
  // there is no such bin.
  bool sort_one();

  // Sorts each bin and gives its records to `give`, in order.
  template <class Give>
  void drain(Give&& give) {
    constexpr std::size_t ahead = 8;
    std::vector<Place> order;
    for (Bin& bin : bins_) {
      if (!bin.order.empty()) order = std::move(bin.order);
      sort_from(bin, order.size(), order);
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (i + ahead < order.size()) __builtin_prefetch(&at(order[i + ahead].index));
        give(at(order[i].index));
      }
      order.clear();
    }
    bins_.clear();
    store_.clear();
  }

 private:
  struct Bin {
    std::vector<std::uint32_t> pieces;  // where each begins in the store
    std::uint64_t size = 0;             // records
    Record* next = nullptr;             // room for the next one
    Record* end = nullptr;              // of the last piece
    std::vector<Place> order;           // of the first records, sorted
  };

  void grow(Bin& bin);
  const Record& at(std::uint32_t index) const noexcept { return store_[index / in_block][index % in_block]; }
  // The records from `first` on, appended and sorted in.
  void sort_from(const Bin& bin, std::uint64_t first, std::vector<Place>& order);

  static constexpr std::uint32_t in_block = 1U << 18;  // records
  const Bounds bounds_;
  const std::uint32_t in_piece_;      // records, a power of 2
  const std::uint64_t least_sorted_;  // records, before all have come
  const std::uint64_t most_sorted_;
  Times& times_;
  std::vector<Bin> bins_;
  std::vector<Records> store_;
  std::uint32_t stored_ = 0;  // records that pieces have been made for
  std::size_t looked_ = 0;    // the bin that may be sorted next
};

}  // namespace terasort
