// Which rank a record goes to, by keys that divide samples of all ranks evenly. Records with equal keys are told apart
// by their places in the input, so that they are divided, too: no distribution of keys overloads a rank.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "bounds.hpp"
#include "record.hpp"
#include "source.hpp"
#include "times.hpp"

namespace terasort {

class Splitters {
 public:
  // Collective.
  Splitters(const Source& source, std::uint64_t samples, const Job& job, Times& times);

  // Of the record of that place in the input of all ranks.
  int rank_of(const Key& key, std::uint64_t place) const noexcept;

  // Keys that divide this rank's partition about evenly into so many bins, at most: the least of each bin but the
  // first.
  std::vector<Key> bounds(std::uint64_t bins) const;

 private:
  struct Sample {
    Key key;
    std::uint64_t place;
    auto operator<=>(const Sample&) const = default;
  };
  static std::vector<Sample> draw(const Source& source, std::uint64_t samples);

  std::vector<Sample> splitters_;  // of each rank but the first: the least that goes to it
  Bounds keys_;                    // of the splitters
  std::vector<Key> own_;           // of this rank's partition, sorted
};

}  // namespace terasort
