// Lateness that relieves the others. A rank that is out of step with the others leaves them what they share with it, as
// memory, so that they compute quicker, and nothing is gained if it comes in step again (Afzal, Hager, Wellein). That
// shows where a rank is late at some calls and at others not: those with lateness are not longer by all of it.
//
// Compared are the calls of one call site that follow those of one other on their communicator, so that the ranks did
// the same before them. Length: the longest time that a rank computed before the call; lateness: by how much that is
// more than the median of the ranks. Calls with lateness are those with at least half of its mean weighted by itself,
// calls without those with a quarter at most.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace papaya::report {

struct GroupCall;
class Archive;

// What the ranks of a communicator do between two calls: the numbers of their call sites.
using Section = std::pair<std::size_t, std::size_t>;

// Tells the section before each call.
class Sections {
 public:
  // A compared call on the communicator, in their order.
  Section before(std::size_t communicator, std::size_t site);

 private:
  std::vector<std::size_t> last_sites_;  // by communicator
};

// Lateness of which less than this costs something is told as relief; noise of all ranks halves it, too.
inline constexpr double strong_relief = 0.4;

struct Relieved {
  std::size_t site = 0;          // number
  std::uint64_t late_calls = 0;  // of the section
  double lateness_ns = 0;        // at them, mean
  double cost_share = 1;         // of it, by which they are longer than calls without
};

class Relief {
 public:
  // A compared call, the number of its site, or that of none, and the median of what its ranks computed before it.
  void add(const GroupCall& call, std::size_t site, double median_computed_ns);
  // The next part of the run, in which the call site of number n is that of number `numbers[n]` here.
  void merge(const Relief& next, std::span<const std::size_t> numbers);
  void pack(Archive& archive);
  // The sections in which lateness costs less than itself.
  std::map<Section, Relieved> relieved() const;

 private:
  // Calls by lateness, doubling from one to the next.
  struct Calls {
    double count = 0;
    double lateness_ns = 0;
    double length_ns = 0;
    double squared_ns = 0;  // lengths

    void add(const Calls& others);
    double mean_lateness_ns() const { return lateness_ns / count; }
    double mean_length_ns() const { return length_ns / count; }
    double variance() const;  // of the mean length
  };
  static constexpr std::size_t bin_count = 32;
  using Bins = std::array<Calls, bin_count>;

  static Relieved judge(std::size_t site, const Bins& bins);

  Sections sections_;
  std::map<Section, Bins> bins_;
};

}  // namespace papaya::report
