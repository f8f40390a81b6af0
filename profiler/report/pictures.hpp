// What the report's page draws, taken from the calls one after the other, in memory and size that are bounded however
// many calls and ranks there are: lateness by rank and time, how the imbalance factors are distributed, and single
// calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiler/analysis/analysis.hpp"
#include "profiler/report/site_losses.hpp"

namespace papaya::report {

// Evenly chosen from a sequence whose length is not known before: every stride-th, the stride doubling when there are
// twice `capacity` of them.
template <typename Item>
class EvenSample {
 public:
  explicit EvenSample(std::size_t capacity) : capacity_(capacity) {}

  // For the next of the sequence: is it among the chosen? If so, `add` has to follow.
  bool takes_next() { return seen_++ % stride_ == 0; }
  void add(Item item) {
    items_.push_back(std::move(item));
    if (items_.size() < 2 * capacity_) return;
    for (std::size_t i = 1; 2 * i < items_.size(); ++i) items_[i] = std::move(items_[2 * i]);
    items_.resize(capacity_, items_.front());
    stride_ *= 2;
  }
  const std::vector<Item>& items() const { return items_; }
  std::uint64_t seen() const { return seen_; }

 private:
  std::size_t capacity_;
  std::uint64_t stride_ = 1;
  std::uint64_t seen_ = 0;
  std::vector<Item> items_;
};

// What ranks do at collective calls, by rank and time: how long after the first they arrive and how long others wait
// for them, when the last has arrived; and how long they are inside a call, wait in it, while they do.
class HeatMap {
 public:
  static constexpr std::size_t most_bins = 400;
  static constexpr std::size_t most_cells = 2'000'000;  // fewer bins with more than 5000 ranks

  HeatMap() = default;
  HeatMap(double begin_ns, double end_ns, std::size_t rows, std::uint64_t calls);

  void add(const ComparedCall& call);
  std::size_t bins() const { return bins_; }
  std::size_t rows() const { return rows_; }
  std::size_t bin_of(const ComparedCall& call) const;  // where its last rank arrives
  double begin_ns() const { return begin_ns_; }
  double bin_ns() const { return bin_ns_; }
  // Of a rank's file in a bin; negative: no call.
  double mean_ns(std::size_t row, std::size_t bin) const;
  double worst_ns(std::size_t row, std::size_t bin) const;
  double top_ns() const { return top_ns_; }  // the worst of all
  double caused_ns(std::size_t row, std::size_t bin) const { return static_cast<double>(cell(row, bin).caused_ns); }
  double most_caused_ns() const;  // of all cells
  // Shares of the bin.
  double waiting(std::size_t row, std::size_t bin) const;
  double inside(std::size_t row, std::size_t bin) const;

 private:
  struct Cell {
    double sum_ns = 0;
    float worst_ns = 0;
    float caused_ns = 0;
    float waiting_ns = 0;
    float inside_ns = 0;
    std::uint32_t calls = 0;
  };

  const Cell& cell(std::size_t row, std::size_t bin) const { return cells_[row * bins_ + bin]; }
  std::size_t bin_at(double ns) const;
  // To that time of each bin from `from_ns` to `to_ns`.
  void spread(std::size_t row, double from_ns, double to_ns, float Cell::*time);

  double begin_ns_ = 0;
  double end_ns_ = 0;
  double bin_ns_ = 1;
  std::size_t bins_ = 0;
  std::size_t rows_ = 0;
  double top_ns_ = 0;
  std::vector<Cell> cells_;
};

// Imbalance factors of the calls of one collective and size class.
struct FactorFigures {
  // Cluster-wide worst-case and average-case, then the same within nodes.
  static constexpr std::size_t kinds = 4;
  // Four bins a decade from a tenth on; the first also has what is smaller, the last what is larger.
  static constexpr std::size_t bins = 32;
  static constexpr double bins_per_decade = 4;
  static constexpr double smallest = 0.1;
  static constexpr std::size_t most_points = 500;

  struct Point {
    double at_ns;
    std::array<float, kinds> factors;  // negative: there is none
  };
  std::array<std::array<std::uint64_t, bins>, kinds> counts{};
  EvenSample<Point> points{most_points / 2};

  static std::size_t bin_of(double factor);
  void add(const ComparedCall& call);
};

// One call in full.
struct ShownCall {
  std::uint64_t communicator = 0;
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  std::string algorithm;
  std::string phase;
  double first_ns = 0;
  double worst_ns = 0;
  std::size_t last = 0;
  // By rank, in us since the first arrival. exit: negative where a rank never left.
  std::vector<float> arrivals_us;
  std::vector<float> waits_us;
  std::vector<float> exits_us;
};

// The calls of one call site, or without one of one collective: evenly chosen ones and the worst.
struct ShownCalls {
  explicit ShownCalls(std::size_t capacity) : even(capacity) {}
  EvenSample<ShownCall> even;
  std::vector<ShownCall> worst;
};

class Pictures {
 public:
  static constexpr std::size_t most_worst = 4;
  static constexpr std::size_t most_shown = 80;              // evenly chosen ones of a call site
  static constexpr std::size_t most_entries = 120'000;       // ranks in all the calls shown on a page
  static constexpr std::size_t most_groups = 24;             // call sites with calls shown
  static constexpr std::size_t most_loss_sites = 8;          // call sites whose losses the page has by rank and time,
  static constexpr std::size_t most_shown_losses = 120'000;  // in so many cells
  static constexpr std::size_t most_loss_cells = 2'000'000;  // kept until it is known which sites those are

  explicit Pictures(const Run& run);
  void add(const ComparedCall& call);

  const HeatMap& heat_map() const { return heat_map_; }
  using Site = std::pair<std::size_t, Collective>;  // ComparedCall::site; the collective tells those without one apart
  const std::map<Site, ShownCalls>& calls() const { return calls_; }
  const std::map<Site, SiteLosses>& losses() const { return losses_; }
  const std::map<std::pair<Collective, SizeClass>, FactorFigures>& factors() const { return factors_; }
  // Files of the ranks of a communicator with calls.
  const std::vector<std::uint32_t>& files_of(std::uint64_t communicator) const {
    return communicators_.at(communicator).files;
  }
  const std::string& name_of(std::uint64_t communicator) const { return communicators_.at(communicator).name; }
  const Run& run() const { return run_; }

 private:
  struct Communicator {
    std::string name;
    std::vector<std::uint32_t> files;
  };

  ShownCall shown(const ComparedCall& call) const;

  const Run& run_;
  HeatMap heat_map_;
  std::map<Site, ShownCalls> calls_;
  std::map<Site, SiteLosses> losses_;
  std::map<std::pair<Collective, SizeClass>, FactorFigures> factors_;
  std::map<std::uint64_t, Communicator> communicators_;
};

// The data of the page beside report.json's; `analysis` is that of the same run, made with these pictures as observer.
std::string to_json(const Pictures& pictures, const Analysis& analysis) noexcept;

}  // namespace papaya::report
