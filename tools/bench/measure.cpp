#include "tools/bench/measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "algorithms/algorithm.hpp"
#include "base/settings.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/quiet.hpp"
#include "tuning/native_algorithms.hpp"
#include "tuning/selection.hpp"

namespace papaya::bench {

namespace {

constexpr int least_warmup = 12;  // auto sets an algorithm up at the ninth call
constexpr int least_native_warmup = 3;
constexpr double longest_warmup_us = 2e4;  // where -x does not say otherwise
constexpr int timed_groups = 4, timed_calls = 8;
constexpr double slow_us = 1000;     // calls so long, where ranks wait for a core, are made as seldom as possible
constexpr int usual_warm_again = 3;  // after each change of algorithm; one of slow calls
constexpr double block_us = 1000;    // tight loops: time of a block
constexpr double least_calls_of_block = 2;
constexpr int most_blocks = 100;  // per round
constexpr int least_calls = 4;    // per round
constexpr int most_calls = 1000;
constexpr std::uint64_t computed_at_a_time = 32;
constexpr double tolerance_us = 1;  // of the clocks, for what cannot be

struct Samples {
  std::vector<CallTimes> calls;  // rank 0; in a tight loop one per block
  double missed = 0;             // arrivals
  std::uint64_t iterations = 0;
  std::uint64_t wrong = 0;
  std::uint64_t early = 0;
  Turns turns;  // the excess
  // Of nonblocking ones, turn by turn: the ranks' mean of each call.
  Turns pure, computed, total;
};

struct Candidate {
  std::string selection;
  Path path;
  double call_us = 0;            // roughly, from the warm-up
  double period_us = 0;          // from one call's start to the next one's
  double leave_us = 0;           // from a call's start until all ranks have left it, and check it
  std::uint64_t offered = 0;     // calls made
  bool runs = true;              // false: papaya left all calls of the warm-up to MPI
  double served = 1;             // share of them that papaya ran, in the worst round
  std::uint64_t wrong_here = 0;  // results on this rank, since the last collect
  Samples samples;

  // What papaya chooses by itself may be MPI.
  bool is_measured() const { return runs || selection == "auto"; }
  int warm_again() const { return call_us > slow_us ? 1 : usual_warm_again; }
};

// All of one size; keeps what its steps share.
class Size {
 public:
  Size(Job& job, Calls& calls, Operation operation, std::size_t bytes)
      : job_(job), calls_(calls), operation_(operation), collective_(operation.collective) {
    calls_.set_size(bytes);
    alpha_us_ = message_us(job.clock, job.world, collective_ == Collective::barrier ? 0 : bytes);
    skew_us_ = job.options.skew_us >= 0 ? job.options.skew_us : std::max(job.options.mif, 0.0) * alpha_us_;
    if (job.options.pattern == Pattern::replay) {
      const double largest = job.replay.largest_us();
      scale_ = job.options.skew_us >= 0 && largest > 0 ? job.options.skew_us / largest : 1;
      skew_us_ = largest * scale_;
    }
  }

  bool take(Candidate& candidate) {
    calls_.use(job_.natives == nullptr ? MPI_COMM_NULL : job_.natives->use(collective_, candidate.selection));
    const bool taken = candidate.path == Path::native || operation_.form != Form::blocking ||
                       job_.algorithms.to(collective_, candidate.selection);
    return quiet::maximum(taken ? 0 : 1, job_.world) == 0;
  }

  void warm_up(Candidate& candidate) {
    const Options& options = job_.options;
    const int usual = candidate.path == Path::native ? least_native_warmup : least_warmup;
    const int first = std::max(1, options.warmup < 0 ? usual : options.warmup);
    const std::uint64_t replaced = job_.algorithms.replaced(collective_);
    double began = job_.clock.now_us();
    checked_calls(candidate, first);
    calls_.meet(candidate.path);
    double each = quiet::maximum((job_.clock.now_us() - began) / (first + 1), job_.world);
    if (options.warmup < 0)
      checked_calls(candidate, static_cast<int>(std::clamp(longest_warmup_us / each - first, 0.0, 200.0)));
    // Some more, timed: how much fits into a round? The fastest few, since one may meet another process on
    // its core.
    const bool slow = each > slow_us;
    const int groups = slow ? 1 : timed_groups, calls = slow ? 2 : timed_calls;
    double fastest = 1e300;
    for (int group = 0; group < groups; ++group) {
      quiet::barrier(job_.world);
      began = job_.clock.now_us();
      for (int i = 0; i < calls; ++i) calls_.run(candidate.path);
      fastest = std::min(fastest, quiet::maximum((job_.clock.now_us() - began) / calls, job_.world));
    }
    candidate.offered += static_cast<std::uint64_t>(groups * calls);
    candidate.call_us = std::max(0.05, fastest);
    candidate.runs =
        candidate.path == Path::native || operation_.form != Form::blocking || !job_.algorithms.counts_replaced() ||
        candidate.offered < least_warmup ||
        quiet::maximum(static_cast<double>(job_.algorithms.replaced(collective_) - replaced), job_.world) > 0;
    if (options.mode == Mode::deadline && candidate.is_measured()) find_period(candidate);
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
    checked_calls(candidate, candidate.warm_again());
    const std::size_t before = candidate.samples.calls.size();
    if (operation_.form != Form::blocking)
      overlapped_round(candidate, calls);
    else if (job_.options.mode == Mode::tight)
      tight_round(candidate, calls);
    else
      stamped_round(candidate, calls);
    const double served = static_cast<double>(job_.algorithms.replaced(collective_) - replaced) /
                          static_cast<double>(candidate.offered - offered);
    candidate.served = std::min(candidate.served, served);
    std::vector<double> excess;
    for (std::size_t i = before; i < candidate.samples.calls.size(); ++i)
      excess.push_back(candidate.samples.calls[i].excess);
    candidate.samples.turns.push_back(std::move(excess));
    // The first guess may have met a disturbance.
    if (job_.options.mode == Mode::tight)
      candidate.call_us =
          std::max(0.05, std::min(candidate.call_us, quiet::share(median(candidate.samples.turns.back()), job_.world)));
  }

  void next_round(int calls) {
    pattern_call_ += static_cast<std::uint64_t>(calls);
    ++rounds_;
  }

  std::string why_native() const { return calls_.why_native(job_.algorithms); }
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
      const double turn_us = options.seconds * 1e6 / options.rounds;
      blocks = std::floor(std::clamp(turn_us / (each * candidate.call_us), 1.0, double{most_blocks}));
    }
    const auto calls = static_cast<std::uint64_t>(each);
    std::vector<double> arrivals, exits;
    for (int block = 0; block < static_cast<int>(blocks); ++block) {
      const std::uint64_t filled = call_;
      calls_.fill(filled);
      // The barrier of who is measured: MPI's own takes milliseconds where its ranks spin on each other's cores.
      calls_.meet(candidate.path);
      if (collective_ == Collective::barrier) ++candidate.offered;
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

  // As the OSU benchmarks do: alone, then beside a computation that takes as long as it did alone. With a pattern both
  // meet the same arrivals, and what the call takes alone has waiting for late ranks in it.
  void overlapped_round(Candidate& candidate, int count) {
    const bool by_deadline = job_.options.mode == Mode::deadline;
    std::vector<double> arrivals, exits, computed, total;
    double start = 0, period_us = candidate.period_us, leave_us = candidate.leave_us;
    std::uint64_t missed = 0;
    const auto timed = [&](int i, auto&& meanwhile) {
      const std::uint64_t number = call_++;
      calls_.fill(number);
      const double begin = start + i * period_us;
      const double deadline = begin + lateness_us(pattern_call_ + static_cast<std::uint64_t>(i));
      if (by_deadline)
        job_.clock.wait_until(deadline, job_.core_each);
      else
        PMPI_Barrier(job_.world);
      const double arrival = job_.clock.now_us();
      calls_.start(candidate.path);
      meanwhile();
      calls_.wait(candidate.path);
      const double exit = job_.clock.now_us();
      if (by_deadline) {
        if (is_missed(arrival, deadline)) ++missed;
        job_.clock.wait_until(begin + leave_us, false);
      }
      if (!calls_.check(number)) ++candidate.wrong_here;
      return std::pair(arrival, exit);
    };
    if (by_deadline) start = start_us();
    for (int i = 0; i < count; ++i) {
      const auto [arrival, exit] = timed(i, [] {});
      arrivals.push_back(arrival);
      exits.push_back(exit);
    }
    std::vector<double> pure;
    for (int i = 0; i < count; ++i)
      pure.push_back(exits[static_cast<std::size_t>(i)] - arrivals[static_cast<std::size_t>(i)]);
    const double alone_us = median(pure);
    if (by_deadline) {
      const double longest_us = 1.5 * quiet::maximum(alone_us, job_.world);
      period_us += longest_us;
      leave_us += longest_us;
      start = start_us();
    }
    for (int i = 0; i < count; ++i) {
      double took = 0;
      const auto [arrival, exit] = timed(i, [&] { took = compute_for(candidate, alone_us); });
      computed.push_back(took);
      total.push_back(exit - arrival);
    }
    collect(candidate, arrivals, exits, by_deadline ? missed_share(candidate, missed, 2 * count) : 0);
    candidate.offered += 2 * static_cast<std::uint64_t>(count);
    candidate.samples.iterations += static_cast<std::uint64_t>(count);
    candidate.samples.pure.push_back(mean_over_ranks(pure));
    candidate.samples.computed.push_back(mean_over_ranks(computed));
    candidate.samples.total.push_back(mean_over_ranks(total));
  }

  // Computes for so long, with as many MPI_Test as asked for in between, whose time does not count. How long it was.
  double compute_for(Candidate& candidate, double us) {
    const int parts = job_.options.tests + 1;
    double computed = 0;
    for (int part = 0; part < parts; ++part) {
      if (part > 0) calls_.test(candidate.path);
      const double begin = job_.clock.now_us();
      double now = begin;
      for (; now < begin + us / parts; now = job_.clock.now_us()) compute(computed_at_a_time);
      computed += now - begin;
    }
    return computed;
  }

  // On rank 0.
  std::vector<double> mean_over_ranks(const std::vector<double>& mine) {
    const std::size_t count = mine.size();
    std::vector<double> all(job_.rank == 0 ? count * static_cast<std::size_t>(job_.ranks) : 0);
    quiet::gather(mine.data(), static_cast<int>(count), all.data(), job_.world);
    std::vector<double> means(count, 0);
    for (std::size_t i = 0; i < all.size(); ++i) means[i % count] += all[i] / job_.ranks;
    return means;
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
      if (mode == Mode::deadline && is_missed(arrival, deadline)) ++missed;
    }
    candidate.offered += static_cast<std::uint64_t>(count);
    candidate.samples.iterations += static_cast<std::uint64_t>(count);
    collect(candidate, arrivals, exits, missed_share(candidate, missed, count));
  }

  bool is_missed(double arrival, double deadline) const { return arrival - deadline > std::max(100.0, 0.2 * skew_us_); }

  // Of all ranks' arrivals. Later calls must not be pushed by the ones before.
  double missed_share(Candidate& candidate, std::uint64_t missed, int count) {
    const double share =
        quiet::sum(static_cast<double>(missed), job_.world) / (static_cast<double>(count) * job_.ranks);
    if (share > 0.1) {
      candidate.period_us *= 1.5;
      candidate.leave_us *= 1.5;
    }
    return share;
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
    samples.missed += missed;
    std::vector<double> a(ranks), e(ranks);
    // Who only starts a call may leave it before the others come; who waits for it may not.
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
  Operation operation_;
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

OverlapFigures overlap_of(const Samples& samples) {
  OverlapFigures of;
  of.pure_us = summarize(values_of(samples.pure));
  of.compute_us = summarize(values_of(samples.computed));
  of.total_us = summarize(values_of(samples.total));
  of.percent = overlap_percent(of.pure_us.p50, of.compute_us.p50, of.total_us.p50);
  std::vector<double> turns;
  for (std::size_t i = 0; i < samples.pure.size(); ++i)
    turns.push_back(overlap_percent(median(samples.pure[i]), median(samples.computed[i]), median(samples.total[i])));
  of.interval = interval_of_ratios(std::move(turns), of.percent);
  return of;
}

Row row_of(const Job& job, const Size& size, Operation operation, std::size_t bytes, const Candidate& candidate,
           const Candidate& native, Stop stop) {
  const Collective collective = operation.collective;
  const Samples& samples = candidate.samples;
  const auto summary = [&](double CallTimes::*figure) { return summarize(picked(samples.calls, figure)); };
  Row row;
  row.collective = collective;
  row.form = operation.form;
  row.algorithm = candidate.selection;
  row.bytes = bytes;
  row.iterations = samples.iterations;
  row.excess_us = summary(&CallTimes::excess);
  row.inside_us = summary(&CallTimes::inside);
  row.excess_max_us = summary(&CallTimes::excess_max);
  row.excess_mean_us = summary(&CallTimes::excess_mean);
  if (aggregation_of(collective) == Aggregation::mean) row.root_inside_us = summary(&CallTimes::root_inside);
  row.imbalance_us = median(picked(samples.calls, &CallTimes::imbalance));
  row.values_us = samples.turns;
  row.interval_us = interval_of(samples.turns);
  row.stop = stop;
  const double reference = summarize(picked(native.samples.calls, &CallTimes::excess)).p50;
  if (reference > 0) row.ratio_to_native = row.excess_us.p50 / reference;
  const std::vector<double> ratios = ratios_of(medians_of(samples.turns), medians_of(native.samples.turns));
  compare_to_native(row, ratios, row.ratio_to_native, &candidate == &native, job.options.margin / 100);
  row.skew_us = size.skew_us();
  row.alpha_us = size.alpha_us();
  row.checked_results = collective == Collective::barrier ? 0 : samples.calls.size();
  row.wrong_results = samples.wrong;
  row.early_exits = samples.early;
  row.missed_arrivals = samples.missed / static_cast<double>(std::max<std::size_t>(samples.turns.size(), 1));
  if (operation.form != Form::blocking)
    row.overlap = overlap_of(samples);
  else if (candidate.path == Path::preloaded && job.algorithms.counts_replaced())
    row.replaced = candidate.served;
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
      find_algorithm(selected_with(collective), std::string_view(selection).substr(0, selection.find(':')));
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

namespace {

// Of a nonblocking one: what the environment selects, which is decided when MPI starts.
std::vector<std::string> selected_outside(const Operation& operation) {
  Variable variable{};
  if (!tuning::variable_of(operation.collective, variable, Form::nonblocking)) return {};
  const char* const chosen = std::getenv(std::string(row_of(variable).name).c_str());
  if (chosen == nullptr || *chosen == '\0' || std::strcmp(chosen, "native") == 0) return {};
  return {chosen};
}

// What is measured at this size: native first. Algorithms that do not take the size or these ranks are left out.
std::vector<std::string> algorithms_for(const Job& job, const Operation& operation, std::size_t bytes,
                                        const std::function<void(const std::string&)>& problem) {
  std::vector<std::string> result = {"native"};
  if (operation.form != Form::blocking) {
    const std::vector<std::string> chosen = selected_outside(operation);
    result.insert(result.end(), chosen.begin(), chosen.end());
    return result;
  }
  const Collective collective = operation.collective;
  if (job.natives != nullptr)
    for (std::string& selection : job.natives->of(collective, bytes)) result.push_back(std::move(selection));
  const std::span<const Collective> known = with_algorithms();
  if (!job.algorithms.is_there() || std::find(known.begin(), known.end(), selected_with(collective)) == known.end())
    return result;
  if (job.options.algorithms.empty()) {
    for (const Descriptor* descriptor : registry())
      if (descriptor->collective == selected_with(collective) &&
          why_unsuitable(job, collective, bytes, std::string(descriptor->name)) == nullptr)
        result.emplace_back(descriptor->name);
    if (job.options.measures_auto && (result.size() > 1 || job.options.operations.size() == 1))
      result.emplace_back("auto");
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

}  // namespace

Limits limits_of(const Options& options) {
  return {options.precision / 100, options.seconds * 1e6, options.rounds, options.iterations > 0};
}

namespace {

// Algorithms that were measured together.
struct Together {
  std::vector<Row> rows;                 // rank 0: native's first
  std::vector<std::string> left_to_mpi;  // papaya gave all of their calls to MPI,
  std::vector<std::string> why;          // for these reasons; empty where they are not known
  bool has_any = false;                  // of those that papaya runs
};

// `selections` in turn, round by round, native first. `is_again`: native is measured for the sake of the others only.
Together measure_together(Job& job, Size& size, Operation operation, std::size_t bytes,
                          const std::vector<std::string>& selections, bool is_again,
                          const std::function<void(const std::string&)>& problem,
                          const std::function<void(double, const std::string&)>& step) {
  Together together;
  std::vector<Candidate> candidates;
  for (const std::string& selection : selections) {
    Candidate candidate{selection,
                        selection == "native" || tuning::is_native_variant(selection) ? Path::native : Path::preloaded};
    if (!size.take(candidate)) {
      problem("the library does not take " + selection + " for " + name_of(operation) + "; left out.");
      continue;
    }
    size.warm_up(candidate);
    if (!candidate.is_measured()) {
      together.left_to_mpi.push_back(selection);
      together.why.push_back(size.why_native());
      continue;
    }
    together.has_any = together.has_any || candidate.path == Path::preloaded;
    candidates.push_back(std::move(candidate));
  }
  if (is_again && !together.has_any) return together;
  const int per_round = size.calls_per_round(candidates);
  const std::size_t count = candidates.size();
  Progression progression(count, limits_of(job.options));
  for (int round = 0; progression.goes_on(); ++round) {
    job.clock.synchronise();
    for (std::size_t turn = 0; turn < count; ++turn) {
      // Each begins once: nobody always follows the same one.
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % count;
      Candidate& candidate = candidates[i];
      if (!progression.goes_on(i)) continue;
      step((round + static_cast<double>(turn) / static_cast<double>(count)) / job.options.rounds, candidate.selection);
      const double begin = job.clock.now_us();
      size.take(candidate);
      size.round(candidate, per_round);
      progression.turn(i, job.clock.now_us() - begin);
    }
    size.next_round(per_round);
    decide_together(
        progression, job, [&](std::size_t i) { return half_width_of(candidates[i].samples.turns); }, count);
  }
  if (job.rank == 0)
    for (std::size_t i = 0; i < count; ++i)
      together.rows.push_back(
          row_of(job, size, operation, bytes, candidates[i], candidates.front(), progression.stop_of(i)));
  return together;
}

}  // namespace

std::vector<Row> measure_size(Job& job, Calls& calls, Operation operation, std::size_t bytes,
                              const std::function<void(const std::string&)>& problem,
                              const std::function<void(double, const std::string&)>& step) {
  Size size(job, calls, operation, bytes);
  const std::vector<std::string> selections = algorithms_for(job, operation, bytes, problem);
  std::vector<Row> rows;
  // What papaya leaves to MPI may have found its memory taken by the others, or by those of smaller messages, which a
  // job would not set up beside it: it is measured again, on another communicator, until that changes nothing.
  std::vector<std::string> next = selections;
  for (bool is_again = false;; is_again = true) {
    Together together = measure_together(job, size, operation, bytes, next, is_again, problem, step);
    const auto first = together.rows.begin() + (is_again && !together.rows.empty() ? 1 : 0);
    std::move(first, together.rows.end(), std::back_inserter(rows));
    const bool may_change = !is_again || together.has_any;
    if (together.left_to_mpi.empty() || !may_change) {
      for (std::size_t i = 0; i < together.left_to_mpi.size(); ++i)
        problem(together.left_to_mpi[i] + " of " + name_of(operation) + " leaves messages of " + std::to_string(bytes) +
                " bytes to MPI and is left out" + (together.why[i].empty() ? "." : ": " + together.why[i] + "."));
      break;
    }
    calls.renew();
    next = std::move(together.left_to_mpi);
    next.insert(next.begin(), "native");
  }
  if (job.natives != nullptr) job.natives->use(operation.collective, "native");
  const auto place_of = [&](const Row& row) {
    return std::find(selections.begin(), selections.end(), row.algorithm) - selections.begin();
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& one, const Row& other) { return place_of(one) < place_of(other); });
  return rows;
}

void decide_together(Progression& progression, const Job& job,
                     const std::function<std::optional<double>(std::size_t)>& half_width, std::size_t rows) {
  if (job.rank == 0) {
    std::vector<std::optional<double>> all;
    for (std::size_t i = 0; i < rows; ++i) all.push_back(half_width(i));
    progression.decide(all);
  }
  std::vector<std::uint8_t> decisions = progression.decisions();
  quiet::share(decisions.data(), decisions.size(), job.world);
  progression.take(decisions);
}

void compare_to_native(Row& row, const std::vector<double>& ratios, const std::optional<double>& point, bool is_native,
                       double margin) {
  for (const double ratio : ratios) {
    row.ratio_lowest = std::min(row.ratio_lowest.value_or(ratio), ratio);
    row.ratio_highest = std::max(row.ratio_highest.value_or(ratio), ratio);
  }
  if (is_native) return;
  if (point) row.ratio_interval = interval_of_ratios(ratios, *point);
  row.judgement = report::judge(row.ratio_interval, margin);
}

}  // namespace papaya::bench
