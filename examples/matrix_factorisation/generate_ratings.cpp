#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <unordered_set>

#include "ratings.hpp"

namespace {

using Random = std::mt19937_64;

// Of so many, the k-th most frequent is drawn in proportion to (k + 30)^-exponent; which one that is, is random.
class Skewed {
 public:
  Skewed(int size, double exponent, Random& random) : names_(static_cast<std::size_t>(size)) {
    std::iota(names_.begin(), names_.end(), 0);
    std::shuffle(names_.begin(), names_.end(), random);
    std::vector<double> weights;
    for (int k = 0; k < size; ++k) weights.push_back(std::pow(k + 30, -exponent));
    draw_ = std::discrete_distribution<int>(weights.begin(), weights.end());
  }

  int operator()(Random& random) { return names_[static_cast<std::size_t>(draw_(random))]; }

 private:
  std::vector<int> names_;
  std::discrete_distribution<int> draw_;
};

// So that the product of two rows has variance 1.
std::vector<double> random_factors(int rows, int rank, Random& random) {
  std::normal_distribution<double> normal(0, std::pow(rank, -0.25));
  std::vector<double> factors(static_cast<std::size_t>(rows) * static_cast<std::size_t>(rank));
  for (double& one : factors) one = normal(random);
  return factors;
}

float stars(double value) {
  return static_cast<float>(std::clamp(std::round(2 * value) / 2, 0.5, 5.0));
}

}  // namespace

Ratings generate_ratings(const Generated& wanted) {
  Random random(wanted.seed);
  const std::vector<double> user_factors = random_factors(wanted.users, wanted.rank, random);
  const std::vector<double> item_factors = random_factors(wanted.items, wanted.rank, random);
  Skewed any_user(wanted.users, 0.5, random);
  Skewed any_item(wanted.items, 0.8, random);
  std::normal_distribution<double> noise(0, wanted.noise);
  Ratings ratings{wanted.users, wanted.items, {}};
  std::unordered_set<std::int64_t> known;
  while (ratings.all.size() < static_cast<std::size_t>(wanted.ratings)) {
    const int user = any_user(random), item = any_item(random);
    if (!known.insert(std::int64_t{user} * wanted.items + item).second) continue;
    const auto of_user = user_factors.begin() + std::ptrdiff_t{user} * wanted.rank;
    const auto of_item = item_factors.begin() + std::ptrdiff_t{item} * wanted.rank;
    const double product = std::inner_product(of_user, of_user + wanted.rank, of_item, 0.0);
    ratings.all.push_back({user, item, stars(3.5 + product + (wanted.noise > 0 ? noise(random) : 0))});
  }
  return ratings;
}
