#include "tools/bench/weak_measure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "api/choice.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/quiet.hpp"
#include "tools/bench/weak_turn.hpp"

namespace papaya::bench {

namespace {

constexpr int usual_warmup = 8;  // per turn: each turn's collective is new
constexpr int trial_calls = 8;
constexpr int least_calls = 4;  // per round
constexpr int most_calls = 1000;

// Of one call on one rank.
enum Figure : std::size_t { arrival, leaving, waited, staleness, part_ranks, share, residual, figures };
using CallFigures = std::array<double, figures>;

struct Samples {
  std::vector<CallTimes> calls;
  std::vector<double> waited_us;
  std::vector<double> staleness, ranks, shares, residuals;  // call by call and rank by rank
  std::vector<double> rates;                                // calls per second, the ranks' mean, round by round
  Turns turns;                                              // time inside
  std::uint64_t wrong = 0;
};

struct Measured {
  WeakCandidate candidate;
  double call_us = 0;  // roughly, with what prepares and checks it
  std::uint64_t wrong_here = 0;
  Samples samples;
};

class WeakSize {
 public:
  WeakSize(Job& job, std::size_t bytes)
      : job_(job),
        bytes_(bytes),
        native_(Operation{counterpart(*job.options.weak)}, bytes, job.options.root, job.world),
        alpha_us_(message_us(job.clock, job.world, bytes)) {
    native_.set_size(bytes);
    skew_us_ = job.options.skew_us >= 0 ? job.options.skew_us : std::max(job.options.mif, 0.0) * alpha_us_;
    if (job.options.pattern != Pattern::replay) return;
    const double largest = job.replay.largest_us();
    if (job.options.skew_us >= 0 && largest > 0) scale_ = job.options.skew_us / largest;
    skew_us_ = largest * scale_;
  }

  double alpha_us() const noexcept { return alpha_us_; }
  double skew_us() const noexcept { return skew_us_; }

  // Empty if the candidate can be measured; then it knows about how long its calls take.
  std::string try_out(Measured& one) {
    if (is_native(one)) {
      call_many(one, trial_calls, [&] { return native_call(one); });
      return "";
    }
    Turn turn(job_, one.candidate, bytes_);
    if (!turn.is_there()) return turn.problem();
    call_many(one, trial_calls, [&] { return weak_call(one, turn); });
    end(one, turn);
    return "";
  }

  int calls_per_round(const std::vector<Measured>& all) const {
    const Options& options = job_.options;
    if (options.iterations > 0) return (options.iterations + options.rounds - 1) / options.rounds;
    double turn_us = 0;
    for (const Measured& one : all) turn_us += one.call_us + options.compute_us + skew_us_;
    const double calls = options.seconds * 1e6 / options.rounds * static_cast<double>(all.size()) / turn_us;
    return static_cast<int>(std::clamp(calls, double{least_calls}, double{most_calls}));
  }

  void round(Measured& one, int calls) {
    const int warmup = job_.options.warmup < 0 ? usual_warmup : job_.options.warmup;
    if (is_native(one)) {
      call_many(one, warmup, [&] { return native_call(one); });
      timed(
          one, calls, [&] { return native_call(one); }, [] {});
    } else {
      Turn turn(job_, one.candidate, bytes_);
      if (!turn.is_there()) throw std::runtime_error(turn.problem());
      call_many(one, warmup, [&] { return weak_call(one, turn); });
      timed(
          one, calls, [&] { return weak_call(one, turn); }, [&] { end(one, turn); });
    }
  }

  void next_round(int calls) { pattern_call_ += static_cast<std::uint64_t>(calls); }

 private:
  static bool is_native(const Measured& one) { return one.candidate.selection == "native"; }

  // Both: prepare, wait until `begin_` has come, call, check.
  CallFigures native_call(Measured& one) {
    native_.fill(call_);
    meet();
    CallFigures of{};
    of[arrival] = job_.clock.now_us();
    native_.run(Path::native);
    of[leaving] = job_.clock.now_us();
    if (!native_.check(call_++)) ++one.wrong_here;
    return of;
  }

  CallFigures weak_call(Measured& one, Turn& turn) {
    turn.fill();
    meet();
    CallFigures of{};
    of[arrival] = job_.clock.now_us();
    turn.run();
    of[leaving] = job_.clock.now_us();
    const papaya_weak_status status = turn.status();
    of[waited] = status.waited * 1e6;
    of[staleness] = status.oldest == 0 ? 0 : static_cast<double>(status.clock - status.oldest);
    of[part_ranks] = status.ranks;
    of[share] = status.share;
    of[residual] = status.residual;
    if (!turn.check()) ++one.wrong_here;
    return of;
  }

  void meet() {
    if (job_.options.mode == Mode::balanced)
      PMPI_Barrier(job_.world);
    else if (begin_ > 0)
      job_.clock.wait_until(begin_, job_.core_each);
  }

  template <class Call>
  void call_many(Measured& one, int count, Call&& call) {
    begin_ = 0;
    const double begin = job_.clock.now_us();
    for (int i = 0; i < count; ++i) call();
    if (count > 0) one.call_us = quiet::maximum((job_.clock.now_us() - begin) / count, job_.world);
  }

  // A computation's length counts from the previous call's end: what prepares and checks is part of it.
  template <class Call, class End>
  void timed(Measured& one, int count, Call&& call, End&& end) {
    std::vector<CallFigures> mine;
    const double start = quiet::share(job_.clock.now_us() + (job_.core_each ? 1000 : 3000), job_.world);
    double last = start;
    for (int i = 0; i < count; ++i) {
      begin_ = last + job_.options.compute_us + lateness_us(pattern_call_ + static_cast<std::uint64_t>(i));
      mine.push_back(call());
      last = mine.back()[leaving];
    }
    end();
    collect(one, mine, last - start);
  }

  void end(Measured& one, Turn& turn) {
    if (!turn.end()) ++one.wrong_here;
  }

  double lateness_us(std::uint64_t call) const {
    if (job_.options.pattern == Pattern::replay) return scale_ * job_.replay.offset_us(job_.rank, call);
    return skew_us_ * lateness(job_.options.pattern, job_.rank, job_.ranks, call, job_.options.seed);
  }

  void collect(Measured& one, const std::vector<CallFigures>& mine, double took_us) {
    const std::size_t count = mine.size();
    const auto ranks = static_cast<std::size_t>(job_.ranks);
    std::vector<double> flat = {static_cast<double>(one.wrong_here), 1e6 * static_cast<double>(count) / took_us};
    for (const CallFigures& of : mine) flat.insert(flat.end(), of.begin(), of.end());
    one.wrong_here = 0;
    std::vector<double> all(job_.rank == 0 ? flat.size() * ranks : 0);
    quiet::gather(flat.data(), static_cast<int>(flat.size()), all.data(), job_.world);
    if (job_.rank != 0) return;
    const auto of_rank = [&](std::size_t rank) { return all.data() + rank * flat.size(); };
    Samples& samples = one.samples;
    double wrong = 0, rate = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      wrong = std::max(wrong, of_rank(rank)[0]);
      rate += of_rank(rank)[1] / job_.ranks;
    }
    samples.wrong += static_cast<std::uint64_t>(wrong);
    samples.rates.push_back(rate);
    std::vector<double> inside;
    for (std::size_t i = 0; i < count; ++i) {
      const auto figure = [&](std::size_t rank, Figure which) { return of_rank(rank)[2 + i * figures + which]; };
      CallTimes times;
      double first = figure(0, arrival), last = first, waited_us = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const double in = figure(rank, leaving) - figure(rank, arrival);
        times.excess_mean += in / job_.ranks;
        times.excess_max = std::max(times.excess_max, in);
        if (rank == static_cast<std::size_t>(job_.options.root)) times.root_inside = in;
        first = std::min(first, figure(rank, arrival));
        last = std::max(last, figure(rank, arrival));
        waited_us += figure(rank, waited) / job_.ranks;
        samples.staleness.push_back(figure(rank, staleness));
        samples.ranks.push_back(figure(rank, part_ranks));
        samples.shares.push_back(figure(rank, share));
        samples.residuals.push_back(figure(rank, residual));
      }
      times.imbalance = last - first;
      times.inside = job_.options.mode == Mode::balanced ? times.excess_max : times.excess_mean;
      times.excess = times.inside;
      samples.calls.push_back(times);
      samples.waited_us.push_back(waited_us);
      inside.push_back(times.inside);
    }
    samples.turns.push_back(std::move(inside));
  }

  Job& job_;
  std::size_t bytes_;
  Calls native_;
  double alpha_us_;
  double skew_us_ = 0;
  double scale_ = 1;
  double begin_ = 0;                // of the next call; 0: at once
  std::uint64_t call_ = 1;          // of native
  std::uint64_t pattern_call_ = 0;  // the first call of this round in the pattern
};

std::vector<double> picked(const std::vector<CallTimes>& calls, double CallTimes::*figure) {
  std::vector<double> values;
  for (const CallTimes& call : calls) values.push_back(call.*figure);
  return values;
}

double least(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

// Of the mean times in each round: most of what a stale call saves is in some of the calls.
std::vector<double> mean_ratios(const Samples& own, const Samples& native) {
  const auto means = [](const Turns& turns) {
    std::vector<double> all;
    for (const std::vector<double>& turn : turns) all.push_back(summarize(turn).mean);
    return all;
  };
  return ratios_of(means(own.turns), means(native.turns));
}

WeakFigures figures_of(const Job& job, const Measured& one, const Measured& native) {
  const Options& options = job.options;
  const Samples& samples = one.samples;
  WeakFigures of;
  of.collective = name_of(*options.weak);
  of.aggregation = options.mode == Mode::balanced ? Aggregation::maximum : Aggregation::mean;
  if (options.mode == Mode::free) of.calls_per_second = median(samples.rates);
  const std::vector<double> ratios = mean_ratios(samples, native.samples);
  if (!ratios.empty()) of.mean_ratio = median(ratios);
  if (&one == &native) return of;
  of.slack = one.candidate.slack;
  of.threshold = one.candidate.share;
  const Bound bound = bound_of(*options.weak);
  of.of = bound == Bound::threshold ? (options.of_ranks ? "ranks" : "data") : bound == Bound::share ? "elements" : "";
  of.waited_us = summarize(samples.waited_us);
  const Summary stale = summarize(samples.staleness);
  of.staleness_mean = stale.mean;
  of.staleness_max = stale.max;
  of.ranks_mean = summarize(samples.ranks).mean;
  of.ranks_least = least(samples.ranks);
  of.share_mean = summarize(samples.shares).mean;
  of.share_least = least(samples.shares);
  of.residual_mean = summarize(samples.residuals).mean;
  return of;
}

Row row_of(const Job& job, const WeakSize& size, std::size_t bytes, const Measured& one, const Measured& native,
           Stop stop) {
  const Samples& samples = one.samples;
  const auto summary = [&](double CallTimes::*figure) { return summarize(picked(samples.calls, figure)); };
  Row row;
  row.collective = counterpart(*job.options.weak);
  row.algorithm = one.candidate.selection;
  row.bytes = bytes;
  row.iterations = row.checked_results = samples.calls.size();
  row.excess_us = row.inside_us = summary(&CallTimes::inside);
  row.excess_max_us = summary(&CallTimes::excess_max);
  row.excess_mean_us = summary(&CallTimes::excess_mean);
  if (bound_of(*job.options.weak) == Bound::threshold) row.root_inside_us = summary(&CallTimes::root_inside);
  row.imbalance_us = median(picked(samples.calls, &CallTimes::imbalance));
  const double reference = summarize(picked(native.samples.calls, &CallTimes::excess)).p50;
  if (reference > 0) row.ratio_to_native = row.excess_us.p50 / reference;
  row.values_us = samples.turns;
  row.interval_us = interval_of(samples.turns);
  row.stop = stop;
  row.skew_us = size.skew_us();
  row.alpha_us = size.alpha_us();
  row.wrong_results = samples.wrong;
  row.weak = figures_of(job, one, native);
  compare_to_native(row, mean_ratios(samples, native.samples), row.weak->mean_ratio, &one == &native,
                    job.options.margin / 100);
  return row;
}

}  // namespace

std::string weak_problem(const Options& options) {
  std::string problem;
  for (const std::string& selection : options.algorithms) {
    WeakChoice choice;
    if (selection != "native" && !choose(*options.weak, selection, {.bytes = 0}, choice, problem))
      return "--algorithms " + selection + ": " + problem + ".";
  }
  return "";
}

std::vector<Row> measure_weak_size(Job& job, std::size_t bytes, const std::function<void(const std::string&)>& problem,
                                   const std::function<void(double, const std::string&)>& step) {
  WeakSize size(job, bytes);
  std::vector<Measured> all;
  for (const WeakCandidate& candidate : weak_candidates(job.options)) {
    Measured one{candidate};
    if (const std::string why = size.try_out(one); why.empty())
      all.push_back(std::move(one));
    else
      problem(candidate.selection + " is left out: " + why + ".");
  }
  const int per_round = size.calls_per_round(all);
  const std::size_t count = all.size();
  Progression progression(count, limits_of(job.options));
  for (int round = 0; progression.goes_on(); ++round) {
    job.clock.synchronise();
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % count;
      Measured& one = all[i];
      if (!progression.goes_on(i)) continue;
      step((round + static_cast<double>(turn) / static_cast<double>(count)) / job.options.rounds,
           one.candidate.selection);
      const double begin = job.clock.now_us();
      size.round(one, per_round);
      progression.turn(i, job.clock.now_us() - begin);
    }
    size.next_round(per_round);
    decide_together(
        progression, job, [&](std::size_t i) { return half_width_of(all[i].samples.turns); }, count);
  }
  std::vector<Row> rows;
  if (job.rank == 0)
    for (std::size_t i = 0; i < count; ++i)
      rows.push_back(row_of(job, size, bytes, all[i], all.front(), progression.stop_of(i)));
  return rows;
}

}  // namespace papaya::bench
