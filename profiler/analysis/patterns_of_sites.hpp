// What kind of arrival pattern the calls of one call site have, and how well the rank that is late can be foretold: the
// one with the longest wait for it, which is the last where all wait for all.
//
// A site is balanced if its worst-case imbalance factor is on average no more than imbalanced_factor (or the imbalance
// no more than the clocks can be wrong). Else simple predictors name the late rank of each imbalanced call, one
// whose own factor is more than that and whose imbalance is more than a quarter of the site's mean, from the imbalanced
// calls before it on the same communicator:
//   most often    the rank that was late most often so far
//   as before     the rank that was late the time before
//   one step on   that rank plus the step it has most often moved by so far
//   in turn       the rank that was late k calls before, with k from 2 to the number of ranks, or 16
// A predictor that is right at the share h of the calls foretells (h - 1/p) / (1 - 1/p) of what is not luck, p being
// the ranks of the communicator; the best one's value, or 0, is the predictability.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace papaya::report {

enum class PatternClass : std::uint8_t {
  unknown,  // not balanced, but too few calls are imbalanced
  balanced,
  persistent,  // `most often` foretells it: one rank of each communicator
  rotating,    // `one step on` or `in turn` does: ranks take turns
  drifting,    // `as before` does: a rank stays the late one for a while, then another
  random,      // none does
};

// "persistent straggler"
const char* text_of(PatternClass pattern);
// One word, for programs.
const char* name_of(PatternClass pattern);

inline constexpr double imbalanced_factor = 10;  // the least imbalance of the thesis's benchmarks
inline constexpr double imbalanced_part = 0.25;  // of the site's mean: what is less is noise beside it
inline constexpr std::uint64_t fewest_imbalanced = 10;
inline constexpr double foretold = 0.5;  // predictability from which on a predictor gives the class its name

// Of a communicator: the rank that is late at half of its imbalanced calls or more.
struct Straggler {
  std::uint64_t communicator;
  std::int32_t rank;         // of the job
  std::uint64_t imbalanced;  // calls there
};

struct SitePattern {
  PatternClass pattern = PatternClass::unknown;
  std::vector<Straggler> stragglers;     // persistent: most imbalanced calls first
  std::optional<double> predictability;  // unless balanced or unknown
  std::uint64_t imbalanced = 0;          // calls, unless balanced

  // Each once.
  std::vector<std::int32_t> straggling_ranks() const;
  // The rank that is it on all communicators; -1: there is none.
  std::int32_t straggler() const;
};

struct CallOfSite {
  std::uint64_t communicator;
  std::int32_t ranks;  // of it, two or more
  std::int32_t last;   // who was waited for longest, in the communicator; who arrived last, if nobody waited
  std::int32_t rank;   // the same in the job
  double worst_ns;     // imbalance: the longest wait
  double least_ns;     // of an imbalanced call: imbalanced_factor messages, or the clocks' error
};

// What all compared calls of a site are like on average.
struct SiteMeans {
  std::uint64_t calls = 0;
  double worst_ns = 0;  // summed, as is
  double parts = 0;     // the same divided by least_ns

  void add(const CallOfSite& call) {
    ++calls;
    worst_ns += call.worst_ns;
    parts += call.worst_ns / call.least_ns;
  }
  void merge(const SiteMeans& next) {
    calls += next.calls;
    worst_ns += next.worst_ns;
    parts += next.parts;
  }
};

class Archive;

// Finds the pattern of a site's compared calls, of which the means are known: they are read twice.
class PatternFinder {
 public:
  explicit PatternFinder(const SiteMeans& means);
  ~PatternFinder();
  PatternFinder(PatternFinder&&) noexcept;
  PatternFinder& operator=(PatternFinder&&) noexcept;

  // Those of each communicator in the order they were made.
  void add(const CallOfSite& call);
  // The next part of the run, whose calls were foretold from those of the part alone.
  void merge(const PatternFinder& next);
  void pack(Archive& archive);
  SitePattern take() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of calls that are at hand.
SitePattern pattern_of(const std::vector<CallOfSite>& calls);

}  // namespace papaya::report
