#include "run.hpp"

#include <algorithm>
#include <cmath>

namespace kmeans {

Run::Run(const Options& options, const Input& input, const Shape& shape, Points points, Team& team, Fate& fate)
    : options_(options),
      input_(input),
      shape_(shape),
      points_(std::move(points)),
      loaded_(team.part()),
      team_(team),
      fate_(fate),
      start_(now()) {}

bool Run::work() {
  while (true) {
    try {
      return attempt();
    } catch (const Interrupted&) {
      team_.recover();
      if (team_.is_done()) return false;
      ++outcome_.recoveries;
      outcome_.until_agreed += now() - team_.outage_began();
      outage_ = outage_ == 0 ? team_.outage_began() : std::min(outage_, team_.outage_began());
    }
  }
}

bool Run::has_ended() const noexcept {
  return team_.iteration() >= options_.iterations || moved_ <= options_.tolerance;
}

bool Run::attempt() {
  const int part = team_.part();
  if (part >= 0) {
    load(part);
    iterate(part);
    if (!team_.is_done() && team_.is_first_holder()) return true;
  }
  while (!team_.is_done()) team_.wait();
  return false;
}

void Run::load(int part) {
  if (part == loaded_) return;
  const double began = now();
  loaded_ = -1;
  points_ = input_.load(part, [&] {
    fate_.meet(Moment::loading);
    team_.poll();
  });
  loaded_ = part;
  outcome_.in_loading += now() - began;
}

void Run::iterate(int part) {
  centroids_ = team_.view().centroids;
  moved_ = HUGE_VAL;  // a checkpoint is never of the last iteration
  Numbers sums(shape_.sums());
  while (!has_ended()) {
    auto mine = std::make_shared<Numbers>(shape_.sums());
    add_points(
        points_, centroids_, shape_,
        [&] {
          fate_.meet(Moment::adding, team_.iteration());
          team_.poll();
        },
        *mine);
    team_.send_sums(mine, team_.iteration());
    exchange(mine, sums);
    if (team_.is_done()) return;
    moved_ = move_centroids(sums, shape_, centroids_);
    team_.advance();
    outcome_.square_distances = sums.back();
    note_step();
    save(part);
  }
  outcome_.centroids = centroids_;
  outcome_.iterations = team_.iteration();
  outcome_.seconds = now() - start_;
}

// In the order of the parts, whoever holds them: the same bits in every run.
void Run::exchange(const Content& mine, Numbers& sums) {
  std::fill(sums.begin(), sums.end(), 0.0);
  const std::vector<int> holders = team_.view().holders;
  for (std::size_t part = 0; part < holders.size(); ++part) {
    const int holder = holders[part];
    const bool is_mine = static_cast<int>(part) == loaded_;
    while (!is_mine && !team_.has_sums(holder, team_.iteration())) {
      fate_.meet(Moment::waiting, team_.iteration());
      team_.wait();
      if (team_.is_done()) return;
    }
    const double* const other = is_mine ? mine->data() : team_.sums_of(holder, team_.iteration());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other[i];
  }
}

void Run::save(int part) {
  if (options_.checkpoint == 0 || team_.iteration() % options_.checkpoint != 0 || has_ended()) return;
  const double began = now();
  team_.send_checkpoint(part, std::make_shared<const Numbers>(centroids_), team_.iteration());
  ++outcome_.checkpoints;
  outcome_.in_checkpoints += now() - began;
}

// The iteration that others were in is done: what all this took, but for the work that it would have been anyway.
void Run::note_step() {
  const double ended = now() - start_;
  const double last = outcome_.steps.empty() ? 0 : outcome_.steps.back().ended;
  outcome_.steps.push_back({team_.iteration(), ended});
  if (outage_ == 0) {
    usual_ = ended - last;
  } else if (team_.iteration() > team_.view().reached) {
    outcome_.in_recovery += std::max(0.0, now() - outage_ - usual_);
    outage_ = 0;
  }
}

Outcome run_plainly(const Options& options, const Points& points, const Shape& shape, Numbers centroids) {
  Outcome outcome;
  Numbers sums(shape.sums());
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now();
  for (double moved = HUGE_VAL; outcome.iterations < options.iterations && moved > options.tolerance;) {
    add_points(
        points, centroids, shape, [] {}, sums);
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(sums.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    moved = move_centroids(sums, shape, centroids);
    outcome.square_distances = sums.back();
    outcome.steps.push_back({++outcome.iterations, now() - start});
  }
  outcome.seconds = now() - start;
  outcome.centroids = std::move(centroids);
  return outcome;
}

}  // namespace kmeans
