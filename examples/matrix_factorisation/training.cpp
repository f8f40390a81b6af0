#include "training.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mistake.hpp"
#include "straggler.hpp"
#include "sum.hpp"

namespace {

// What ranks exchange is the items' factors and, behind them, this.
struct Told {
  double squared_error = 0;   // of the rank's model before the iteration
  double last_iteration = 0;  // after which all end; 0: not decided
};
constexpr std::size_t told_values = 2;

// Rank 0 decides when to end. Others hear of that at different times, but by the bound of the collective all have
// heard `slack` iterations after it was told. Only then they end, all after the same iteration.
class Ending {
 public:
  Ending(const Options& options, const Part& part, bool decides)
      : target_(options.target),
        held_out_(static_cast<double>(part.all_held_out)),
        slack_(options.allreduce == Allreduce::ssp ? options.slack : 0),
        decides_(decides),
        last_(options.iterations) {}

  long long last() const { return last_; }
  double announced() const { return announced_; }

  // With what all have told until iteration `now`. What is announced then is told in the next one.
  void hear(long long now, const Told& all) {
    if (all.last_iteration > 0) last_ = std::min(last_, std::llround(all.last_iteration));
    const double error = std::sqrt(all.squared_error / held_out_);
    const bool is_over = error <= target_ || !std::isfinite(error);
    if (decides_ && is_over && announced_ == 0) announced_ = static_cast<double>(now + 1 + slack_);
  }

 private:
  double target_;
  double held_out_;
  int slack_;
  bool decides_;
  long long last_;
  double announced_ = 0;
};

// One rank's iterations.
class Training {
 public:
  Training(const Options& options, const Part& part, int rank, int ranks)
      : adds_up_(options.exchange == Exchange::updates),
        ranks_(ranks),
        step_{options.learning_rate, options.regularisation},
        model_(part, options.factors, options.generated.seed, rank),
        first_(model_.items().begin(), model_.items().end()),
        contribution_(first_.size() + told_values),
        result_(contribution_.size()),
        contributed_(first_.size()) {
    const auto mine = static_cast<double>(part.training.size());
    share_ = static_cast<std::size_t>(std::ceil(options.batch * mine / static_cast<double>(part.all_training)));
    begin_ = first_;
  }

  std::size_t values() const { return contribution_.size(); }
  double squared_error() const { return model_.squared_error(); }

  // Returns what all have told.
  Told iterate(Sum& sum, const Told& told, SumCall& call) {
    model_.train(share_, step_);
    contribute(told);
    call = sum.call(contribution_, result_);
    take_result();
    return {result_[first_.size()], result_[first_.size() + 1]};
  }

  // All ranks' models become the one that has all contributions.
  void make_equal(MPI_Comm comm) {
    MPI_Allreduce(MPI_IN_PLACE, contributed_.data(), static_cast<int>(contributed_.size()), MPI_DOUBLE, MPI_SUM, comm);
    std::copy(contributed_.begin(), contributed_.end(), result_.begin());
    take_result();
  }

 private:
  void contribute(const Told& told) {
    const std::span<const double> items = model_.items();
    for (std::size_t i = 0; i < items.size(); ++i) {
      contribution_[i] = adds_up_ ? items[i] - begin_[i] : items[i];
      contributed_[i] = adds_up_ ? contributed_[i] + contribution_[i] : contribution_[i];
    }
    // Where contributions add up, the sum of all changes is the newest value.
    contribution_[items.size()] = told.squared_error - (adds_up_ ? told_.squared_error : 0);
    contribution_[items.size() + 1] = told.last_iteration - (adds_up_ ? told_.last_iteration : 0);
    told_ = told;
  }

  void take_result() {
    const std::span<double> items = model_.items();
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = adds_up_ ? first_[i] + result_[i] : result_[i] / ranks_;
    begin_.assign(items.begin(), items.end());
  }

  bool adds_up_;
  int ranks_;
  Step step_;
  Model model_;
  std::size_t share_;          // of the batch
  std::vector<double> first_;  // the items' factors before the first iteration
  std::vector<double> begin_;  // and before this one
  std::vector<double> contribution_;
  std::vector<double> result_;
  std::vector<double> contributed_;  // all of this rank's updates, or its newest model
  Told told_;
};

// What one rank measured.
struct Measured {
  std::vector<double> seconds, squared_error, collective, waited, age;
};

std::vector<double> reduced(const std::vector<double>& mine, MPI_Op op, MPI_Comm comm) {
  std::vector<double> all(mine.size());
  MPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_DOUBLE, op, 0, comm);
  return all;
}

std::vector<double> mean(const std::vector<double>& mine, int ranks, MPI_Comm comm) {
  std::vector<double> all = reduced(mine, MPI_SUM, comm);
  for (double& one : all) one /= ranks;
  return all;
}

History gather(const Measured& mine, long long held_out, int ranks, MPI_Comm comm) {
  History history;
  history.seconds = reduced(mine.seconds, MPI_MAX, comm);
  history.mean_seconds = mean(mine.seconds, ranks, comm);
  history.error = reduced(mine.squared_error, MPI_SUM, comm);
  for (double& one : history.error) one = std::sqrt(one / static_cast<double>(held_out));
  history.collective = mean(mine.collective, ranks, comm);
  history.waited = mean(mine.waited, ranks, comm);
  history.age = mean(mine.age, ranks, comm);
  history.oldest = reduced(mine.age, MPI_MAX, comm);
  return history;
}

}  // namespace

History train(const Options& options, const Part& part, MPI_Comm comm) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  if (static_cast<long long>(part.items) * options.factors > std::numeric_limits<int>::max() - 2)
    throw Mistake("the items have more factors than one MPI_Allreduce can sum: lower --factors.");
  Training training(options, part, rank, ranks);
  const Straggler straggler(options.straggling, options.delay_ms, options.generated.seed, rank, ranks);
  Ending ending(options, part, rank == 0);
  const double before = MPI_Wtime();
  const std::unique_ptr<Sum> sum = make_sum(options, comm, training.values());
  MPI_Barrier(comm);
  const double begin = MPI_Wtime();
  Measured mine;
  double squared_error = training.squared_error();
  for (long long iteration = 1; iteration <= ending.last(); ++iteration) {
    straggler.sleep(iteration);
    SumCall call;
    const Told all = training.iterate(*sum, {squared_error, ending.announced()}, call);
    mine.seconds.push_back(MPI_Wtime() - begin);
    squared_error = training.squared_error();
    mine.squared_error.push_back(squared_error);
    mine.collective.push_back(call.seconds);
    mine.waited.push_back(call.waited);
    mine.age.push_back(static_cast<double>(call.age));
    ending.hear(iteration, all);
  }
  // Others may still need this rank, and are helped in here: not in a collective of MPI's.
  const std::string info = sum->info();
  sum->end();
  History history = gather(mine, part.all_held_out, ranks, comm);
  history.info = info;
  history.setup_seconds = begin - before;
  training.make_equal(comm);
  history.final_error =
      std::sqrt(reduced({training.squared_error()}, MPI_SUM, comm)[0] / static_cast<double>(part.all_held_out));
  return history;
}

std::size_t reached(const History& history, double target) {
  const auto found =
      std::find_if(history.error.begin(), history.error.end(), [target](double error) { return error <= target; });
  return static_cast<std::size_t>(found - history.error.begin());
}
