#include "tools/bench/weak_turn.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace papaya::bench {

Turn::Turn(const Job& job, const WeakCandidate& candidate, std::size_t bytes)
    : data_(*job.options.weak, candidate, job.options.of_ranks, job.rank, job.ranks, job.options.root,
            bytes / sizeof(double)),
      world_(job.world) {
  weak::Wish wish{.collective = *job.options.weak,
                  .count = static_cast<MPI_Count>(bytes / sizeof(double)),
                  .type = MPI_DOUBLE,
                  .share = candidate.share.value_or(1),
                  .algorithm = candidate.selection.c_str()};
  if (counterpart(wish.collective) != Collective::bcast) wish.op = MPI_SUM;
  switch (bound_of(wish.collective)) {
    case Bound::slack:
      wish.values = {{"slack", candidate.slack.value_or(0)}};
      break;
    case Bound::threshold:
      wish.root = job.options.root;
      wish.values = {{"of_ranks", job.options.of_ranks ? 1 : 0}};
      break;
    case Bound::share:
      wish.values = {{"per_million", std::llround(std::ceil(wish.share * 1e6))}};
      break;
    case Bound::none:
      break;
  }
  instance_ = weak::Instance::create(job.world, wish, error_);
}

void Turn::run() {
  if (const weak::Error error = instance_->start(data_.contribution(), data_.result()); error.is_set())
    throw std::runtime_error(error.sentence);
  instance_->wait(-1);
}

bool Turn::check() {
  const papaya_weak_status status = instance_->status();
  return data_.check({.clock = static_cast<std::uint64_t>(status.clock),
                      .oldest = static_cast<std::uint64_t>(status.oldest),
                      .ranks = status.ranks,
                      .elements = static_cast<std::size_t>(status.elements)});
}

bool Turn::end() {
  bool is_right = true;
  if (data_.has_totals()) {
    instance_->flush();
    fill();
    run();
    is_right = check();
  }
  if (const weak::Error error = instance_->close(); error.is_set()) {
    static_cast<void>(instance_.release());  // others may still write there
    throw std::runtime_error(error.sentence);
  }
  instance_.reset();
  if (!data_.has_totals()) return is_right;
  const std::span<double> brought = data_.brought();
  PMPI_Allreduce(MPI_IN_PLACE, brought.data(), static_cast<int>(brought.size()), MPI_DOUBLE, MPI_SUM, world_);
  return is_right && std::equal(brought.begin(), brought.end(), data_.received().begin());
}

}  // namespace papaya::bench
