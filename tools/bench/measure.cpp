#include "tools/bench/measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "algorithms/algorithm.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/quiet.hpp"

namespace papaya::bench {

namespace {

constexpr int least_warmup = 12;           // auto sets an algorithm up at the ninth call
constexpr double longest_warmup_us = 5e4;  // where -x does not say otherwise
constexpr int timed_groups = 4, timed_calls = 8;
constexpr int warm_again = 3;      // after each change of algorithm
constexpr double block_us = 1000;  // tight loops: time of a block
constexpr double least_calls_of_block = 4;
constexpr int most_blocks = 100;  // per round
constexpr int least_calls = 4;    // per round
constexpr int most_calls = 1000;
constexpr double tolerance_us = 1;  // of the clocks, for what cannot be

struct Samples {
  std::vector<CallTimes> calls;  // rank 0; in a tight loop one per block
  double missed = 0;             // arrivals
  std::uint64_t iterations = 0;
  std::uint64_t wrong = 0;
  std::uint64_t early = 0;
  std::vector<double> round_p50;
};

struct Candidate {
  std::string selection;
  Path path;
  double call_us = 0;            // roughly, from the warm-up
  double period_us = 0;          // from one call's start to the next one's
  double leave_us = 0;           // from a call's start until all ranks have left it, and check it
  std::uint64_t offered = 0;     // calls made
  double served = 1;             // share of them that papaya ran, in the worst round
  std::uint64_t wrong_here = 0;  // results on this rank, since the last collect
  Samples samples;
};

// All of one size; keeps what its steps share.
class Size {
 public:
  Size(Job& job, Calls& calls, Collective collective, std::size_t bytes)
      : job_(job), calls_(calls), collective_(collective) {
    calls_.set_size(bytes);
    alpha_us_ = message_us(job.clock, job.world, collective == Collective::barrier ? 0 : bytes);
    skew_us_ = job.options.skew_us >= 0 ? job.options.skew_us : std::max(job.options.mif, 0.0) * alpha_us_;
    if (job.options.pattern == Pattern::replay) {
      const double largest = job.replay.largest_us();
      scale_ = job.options.skew_us >= 0 && largest > 0 ? job.options.skew_us / largest : 1;
      skew_us_ = largest * scale_;
    }
  }

  bool take(Candidate& candidate) {
    const bool taken = candidate.path == Path::native || job_.algorithms.to(collective_, candidate.selection);
    return quiet::maximum(taken ? 0 : 1, job_.world) == 0;
  }

  void warm_up(Candidate& candidate) {
    const Options& options = job_.options;
    const int first = std::max(1, options.warmup < 0 ? least_warmup : options.warmup);
    double began = job_.clock.now_us();
    checked_calls(candidate, first);
    calls_.meet(candidate.path);
    if (options.warmup < 0) {
      const double each = quiet::maximum((job_.clock.now_us() - began) / first, job_.world);
      checked_calls(candidate, static_cast<int>(std::clamp(longest_warmup_us / each - first, 0.0, 200.0)));
    }
    // Some more, timed: how much fits into a round? The fastest few, since one may meet another process on
    // its core.
    double fastest = 1e300;
    for (int group = 0; group < timed_groups; ++group) {
      quiet::barrier(job_.world);
      began = job_.clock.now_us();
      for (int i = 0; i < timed_calls; ++i) calls_.run(candidate.path);
      fastest = std::min(fastest, quiet::maximum((job_.clock.now_us() - began) / timed_calls, job_.world));
    }
    candidate.offered += timed_groups * timed_calls;
    candidate.call_us = std::max(0.05, fastest);
    if (options.mode == Mode::deadline) find_period(candidate);
  }

  // Timed calls per algorithm and round, the same for all of them, so that they meet the same arrivals. In
  // tight loops every algorithm gets the same time instead.
  int calls_per_round(const std::vector<Candidate>& candidates) const {
    const Options& options = job_.options;
    if (options.iterations > 0) return (options.iterations + options.rounds - 1) / options.rounds;
    double turn_us = 0;
    for (const Candidate& candidate : candidates)
      turn_us += options.mode == Mode::deadline ? candidate.period_us : 4 * candidate.call_us + skew_us_;
    const double calls = options.seconds * 1e6 / options.rounds * static_cast<double>(candidates.size()) / turn_us;
    return static_cast<int>(std::clamp(calls, double{least_calls}, double{most_calls}));
  }

  void round(Candidate& candidate, int calls) {
    const std::uint64_t replaced = job_.algorithms.replaced(collective_);
    const std::uint64_t offered = candidate.offered;
    checked_calls(candidate, warm_again);
    const std::size_t before = candidate.samples.calls.size();
    if (job_.options.mode == Mode::tight)
      tight_round(candidate, calls);
    else
      stamped_round(candidate, calls);
    const double served = static_cast<double>(job_.algorithms.replaced(collective_) - replaced) /
                          static_cast<double>(candidate.offered - offered);
    candidate.served = std::min(candidate.served, served);
    std::vector<double> excess;
    for (std::size_t i = before; i < candidate.samples.calls.size(); ++i)
      excess.push_back(candidate.samples.calls[i].excess);
    candidate.samples.round_p50.push_back(median(excess));
    // The first guess may have met a disturbance.
    if (job_.options.mode == Mode::tight)
      candidate.call_us =
          std::max(0.05, std::min(candidate.call_us, quiet::share(candidate.samples.round_p50.back(), job_.world)));
  }

  void next_round(int calls) {
    pattern_call_ += static_cast<std::uint64_t>(calls);
    ++rounds_;
  }

  double alpha_us() const { return alpha_us_; }
  double skew_us() const { return skew_us_; }

 private:
  // Checked, not timed.
  void checked_calls(Candidate& candidate, int count) {
    for (int i = 0; i < count; ++i) {
      calls_.fill(call_);
      calls_.run(candidate.path);
      if (!calls_.check(call_++)) ++candidate.wrong_here;
    }
    candidate.offered += static_cast<std::uint64_t>(count);
  }

  double lateness_us(std::uint64_t call) const {
    if (job_.options.pattern == Pattern::replay) return scale_ * job_.replay.offset_us(job_.rank, call);
    return skew_us_ * lateness(job_.options.pattern, job_.rank, job_.ranks, call, job_.options.seed);
  }

  // From what a few calls took, far apart: time for the slowest rank to leave the call, check and prepare the
  // next.
  void find_period(Candidate& candidate) {
    candidate.leave_us = skew_us_ + std::max(20 * candidate.call_us, 3000.0);
    candidate.period_us = 2 * candidate.leave_us;
    double leaving = 0;
    double preparing = 0;
    const double start = start_us();
    for (int i = 0; i < least_calls; ++i) {
      const double begin = start + i * candidate.period_us;
      calls_.fill(call_);
      job_.clock.wait_until(begin + lateness_us(call_), job_.core_each);
      const double arrival = job_.clock.now_us();
      calls_.run(candidate.path);
      ++candidate.offered;
      leaving = std::max(leaving, job_.clock.now_us() - std::max(begin, arrival - skew_us_));
      job_.clock.wait_until(begin + candidate.leave_us, false);
      const double left = job_.clock.now_us();
      if (!calls_.check(call_++)) ++candidate.wrong_here;
      calls_.fill(call_);  // as the next call will
      preparing = std::max(preparing, job_.clock.now_us() - left);
    }
    candidate.leave_us = 1.5 * quiet::maximum(leaving, job_.world) + 100;
    candidate.period_us = candidate.leave_us + 1.5 * quiet::maximum(preparing, job_.world) + 200;
  }

  double start_us() const { return quiet::share(job_.clock.now_us() + (job_.core_each ? 1000 : 3000), job_.world); }

  void tight_round(Candidate& candidate, int per_round) {
    const Options& options = job_.options;
    double blocks, each;
    if (options.iterations > 0) {
      blocks = std::min(10, per_round);
      each = std::ceil(per_round / blocks);
    } else {
      each = std::floor(std::clamp(block_us / candidate.call_us, least_calls_of_block, 10000.0));
      blocks = std::floor(
          std::clamp(options.seconds * 1e6 / options.rounds / (each * candidate.call_us), 3.0, double{most_blocks}));
    }
    const auto calls = static_cast<std::uint64_t>(each);
    std::vector<double> arrivals, exits;
    for (int block = 0; block < static_cast<int>(blocks); ++block) {
      const std::uint64_t filled = call_;
      calls_.fill(filled);
      PMPI_Barrier(job_.world);
      const double begin = job_.clock.now_us();
      for (std::uint64_t i = 0; i < calls; ++i) {
        calls_.touch(filled + i);
        calls_.run(candidate.path);
      }
      const double end = job_.clock.now_us();
      call_ += calls;
      candidate.offered += calls;
      if (!calls_.check(filled, call_ - 1)) ++candidate.wrong_here;
      arrivals.push_back(0);
      exits.push_back((end - begin) / each);
    }
    candidate.samples.iterations += calls * exits.size();
    collect(candidate, arrivals, exits, 0);
  }

  void stamped_round(Candidate& candidate, int count) {
    const Mode mode = job_.options.mode;
    std::vector<double> arrivals, exits;
    std::uint64_t missed = 0;
    // Listing 4.2 draws the length of the computation once; here once per round, that not one pattern
    // decides.
    const double units = job_.options.mif * uniform(job_.options.seed, rounds_, static_cast<std::uint64_t>(job_.rank)) *
                         alpha_us_ * job_.units_per_us;
    const double start = mode == Mode::deadline ? start_us() : 0;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t call = call_++;
      calls_.fill(call);
      double deadline = 0;
      if (mode == Mode::deadline) {
        deadline = start + i * candidate.period_us + lateness_us(pattern_call_ + static_cast<std::uint64_t>(i));
        job_.clock.wait_until(deadline, job_.core_each);
      } else {
        PMPI_Barrier(job_.world);
        if (mode == Mode::imbalanced) compute(static_cast<std::uint64_t>(units));
      }
      const double arrival = job_.clock.now_us();
      calls_.run(candidate.path);
      const double exit = job_.clock.now_us();
      // Who checked at once would take the core from those who have not left yet.
      if (mode == Mode::deadline) job_.clock.wait_until(start + i * candidate.period_us + candidate.leave_us, false);
      if (!calls_.check(call)) ++candidate.wrong_here;
      arrivals.push_back(arrival);
      exits.push_back(exit);
      if (mode == Mode::deadline && arrival - deadline > std::max(100.0, 0.2 * skew_us_)) ++missed;
    }
    candidate.offered += static_cast<std::uint64_t>(count);
    candidate.samples.iterations += static_cast<std::uint64_t>(count);
    const double share =
        quiet::sum(static_cast<double>(missed), job_.world) / (static_cast<double>(count) * job_.ranks);
    // Later calls must not be pushed by the ones before.
    if (share > 0.1) {
      candidate.period_us *= 1.5;
      candidate.leave_us *= 1.5;
    }
    collect(candidate, arrivals, exits, share);
  }

  void collect(Candidate& candidate, const std::vector<double>& arrivals, const std::vector<double>& exits,
               double missed) {
    const std::size_t count = exits.size();
    const auto ranks = static_cast<std::size_t>(job_.ranks);
    std::vector<double> mine(arrivals);
    mine.insert(mine.end(), exits.begin(), exits.end());
    mine.push_back(static_cast<double>(candidate.wrong_here));
    candidate.wrong_here = 0;
    std::vector<double> all(job_.rank == 0 ? mine.size() * ranks : 0);
    quiet::gather(mine.data(), static_cast<int>(mine.size()), all.data(), job_.world);
    if (job_.rank != 0) return;
    Samples& samples = candidate.samples;
    double wrong = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) wrong = std::max(wrong, all[rank * mine.size() + 2 * count]);
    samples.wrong += static_cast<std::uint64_t>(wrong);
    samples.missed += missed / job_.options.rounds;
    std::vector<double> a(ranks), e(ranks);
    const bool all_wait = aggregation_of(collective_) == Aggregation::maximum;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        a[rank] = all[rank * mine.size() + i];
        e[rank] = all[rank * mine.size() + count + i];
      }
      const CallTimes times = times_of(collective_, a, e, job_.options.root);
      if (all_wait && job_.options.mode != Mode::tight &&
          times.first_exit_after_last_arrival < -(job_.clock.error_us() + tolerance_us))
        ++samples.early;
      samples.calls.push_back(times);
    }
  }

  Job& job_;
  Calls& calls_;
  Collective collective_;
  double alpha_us_ = 0;
  double skew_us_ = 0;
  double scale_ = 1;
  std::uint64_t call_ = 1;          // tells the data of one call from that of another
  std::uint64_t pattern_call_ = 0;  // the first call of this round in the pattern
  std::uint64_t rounds_ = 0;
};

std::vector<double> picked(const std::vector<CallTimes>& calls, double CallTimes::*figure) {
  std::vector<double> values;
  for (const CallTimes& call : calls) values.push_back(call.*figure);
  return values;
}

Row row_of(const Job& job, const Size& size, Collective collective, std::size_t bytes, const Candidate& candidate,
           const Candidate& native) {
  const Samples& samples = candidate.samples;
  const auto summary = [&](double CallTimes::*figure) { return summarize(picked(samples.calls, figure)); };
  Row row;
  row.collective = collective;
  row.algorithm = candidate.selection;
  row.bytes = bytes;
  row.iterations = samples.iterations;
  row.excess_us = summary(&CallTimes::excess);
  row.inside_us = summary(&CallTimes::inside);
  row.excess_max_us = summary(&CallTimes::excess_max);
  row.excess_mean_us = summary(&CallTimes::excess_mean);
  if (aggregation_of(collective) == Aggregation::mean) row.root_inside_us = summary(&CallTimes::root_inside);
  row.imbalance_us = median(picked(samples.calls, &CallTimes::imbalance));
  const double reference = summarize(picked(native.samples.calls, &CallTimes::excess)).p50;
  if (reference > 0) row.ratio_to_native = row.excess_us.p50 / reference;
  for (std::size_t i = 0; i < samples.round_p50.size(); ++i) {
    if (native.samples.round_p50[i] <= 0) continue;
    const double ratio = samples.round_p50[i] / native.samples.round_p50[i];
    row.ratio_lowest = std::min(row.ratio_lowest.value_or(ratio), ratio);
    row.ratio_highest = std::max(row.ratio_highest.value_or(ratio), ratio);
  }
  row.skew_us = size.skew_us();
  row.alpha_us = size.alpha_us();
  row.checked_results = collective == Collective::barrier ? 0 : samples.calls.size();
  row.wrong_results = samples.wrong;
  row.early_exits = samples.early;
  row.missed_arrivals = samples.missed;
  if (candidate.path == Path::preloaded && job.algorithms.counts_replaced()) row.replaced = candidate.served;
  return row;
}

// PAPAYA_ORDER=arrival allows algorithms whose result depends on it.
template <class AnyDescriptor>
bool order_allows(const AnyDescriptor& descriptor) {
  if constexpr (requires { descriptor.needs_arrival_order; }) {
    const char* const order = std::getenv("PAPAYA_ORDER");
    return !descriptor.needs_arrival_order || (order != nullptr && std::strcmp(order, "arrival") == 0);
  }
  return true;
}

// Why an algorithm is not measured; null if it is. `selection` has no parameters where it comes from the registry.
const char* why_unsuitable(const Job& job, Collective collective, std::size_t bytes, const std::string& selection) {
  const Descriptor* const descriptor =
      find_algorithm(collective, std::string_view(selection).substr(0, selection.find(':')));
  if (descriptor == nullptr) return "no algorithm has that name";
  if (descriptor->one_node && job.nodes > 1) return "it works within one node";
  if (!order_allows(*descriptor)) return "it needs PAPAYA_ORDER=arrival";
  if (bytes > descriptor->max_bytes) return "it takes no messages of that size";
  return nullptr;
}

}  // namespace

void compute(std::uint64_t units) noexcept {
  double value = 1;
  for (std::uint64_t i = 0; i < units; ++i) {
    value = value * 0.999 + 0.001;
    __asm__ volatile("" : "+r"(i));
  }
  volatile double keep = value;
  static_cast<void>(keep);
}

double measure_units_per_us(const CommonClock& clock) {
  constexpr std::uint64_t units = 200000;
  double fastest = 0;
  for (int i = 0; i < 5; ++i) {
    const double begin = clock.now_us();
    compute(units);
    fastest = std::max(fastest, static_cast<double>(units) / (clock.now_us() - begin));
  }
  return fastest;
}

std::vector<std::string> algorithms_for(const Job& job, Collective collective, std::size_t bytes,
                                        const std::function<void(const std::string&)>& problem) {
  std::vector<std::string> result = {"native"};
  if (!job.algorithms.is_there()) return result;
  if (job.options.algorithms.empty()) {
    for (const Descriptor* descriptor : registry())
      if (descriptor->collective == collective &&
          why_unsuitable(job, collective, bytes, std::string(descriptor->name)) == nullptr)
        result.emplace_back(descriptor->name);
    if (result.size() > 1 || job.options.collectives.size() == 1) result.emplace_back("auto");
    return result;
  }
  for (const std::string& selection : job.options.algorithms) {
    if (selection == "native") continue;
    const char* const why = selection == "auto" ? nullptr : why_unsuitable(job, collective, bytes, selection);
    if (why == nullptr)
      result.push_back(selection);
    else
      problem(selection + " of " + std::string(name_of(collective)) + " is left out: " + why + ".");
  }
  return result;
}

std::vector<Row> measure_size(Job& job, Calls& calls, Collective collective, std::size_t bytes,
                              const std::function<void(const std::string&)>& problem,
                              const std::function<void(double, const std::string&)>& step) {
  Size size(job, calls, collective, bytes);
  std::vector<Candidate> candidates;
  for (const std::string& selection : algorithms_for(job, collective, bytes, problem)) {
    Candidate candidate{selection, selection == "native" ? Path::native : Path::preloaded};
    if (!size.take(candidate)) {
      problem("the library does not take " + selection + " for " + std::string(name_of(collective)) + "; left out.");
      continue;
    }
    size.warm_up(candidate);
    candidates.push_back(std::move(candidate));
  }
  const int per_round = size.calls_per_round(candidates);
  const std::size_t count = candidates.size();
  for (int round = 0; round < job.options.rounds; ++round) {
    job.clock.synchronise();
    for (std::size_t turn = 0; turn < count; ++turn) {
      // Each begins once: nobody always follows the same one.
      Candidate& candidate = candidates[(turn + static_cast<std::size_t>(round)) % count];
      step((round + static_cast<double>(turn) / static_cast<double>(count)) / job.options.rounds, candidate.selection);
      size.take(candidate);
      size.round(candidate, per_round);
    }
    size.next_round(per_round);
  }
  std::vector<Row> rows;
  if (job.rank == 0)
    for (const Candidate& candidate : candidates)
      rows.push_back(row_of(job, size, collective, bytes, candidate, candidates.front()));
  return rows;
}

}  // namespace papaya::bench
