#include "model.hpp"

#include <cmath>
#include <random>

namespace {

std::vector<double> random_factors(int rows, std::size_t factors, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1 / std::sqrt(static_cast<double>(factors)));
  std::vector<double> made(static_cast<std::size_t>(rows) * factors);
  for (double& one : made) one = normal(random);
  return made;
}

double product(const double* a, const double* b, std::size_t factors) {
  double sum = 0;
  for (std::size_t k = 0; k < factors; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

// All ranks begin with the same items.
Model::Model(const Part& part, int factors, std::uint64_t seed, int rank)
    : part_(part),
      factors_(static_cast<std::size_t>(factors)),
      users_(random_factors(part.users, factors_, seed + 2 + static_cast<std::uint64_t>(rank))),
      items_(random_factors(part.items, factors_, seed + 1)) {}

void Model::train(std::size_t count, const Step& step) {
  if (part_.training.empty()) return;
  for (; count > 0; --count) {
    const Rating& rating = part_.training[next_];
    next_ = next_ + 1 < part_.training.size() ? next_ + 1 : 0;
    double* p = user(rating);
    double* q = item(rating);
    const double error = rating.value - part_.mean - product(p, q, factors_);
    for (std::size_t k = 0; k < factors_; ++k) {
      const double old = p[k];
      p[k] += step.learning_rate * (error * q[k] - step.regularisation * old);
      q[k] += step.learning_rate * (error * old - step.regularisation * q[k]);
    }
  }
}

double Model::squared_error() const {
  double sum = 0;
  for (const Rating& rating : part_.held_out) {
    const double* p = users_.data() + static_cast<std::size_t>(rating.user) * factors_;
    const double* q = items_.data() + static_cast<std::size_t>(rating.item) * factors_;
    const double error = rating.value - part_.mean - product(p, q, factors_);
    sum += error * error;
  }
  return sum;
}
