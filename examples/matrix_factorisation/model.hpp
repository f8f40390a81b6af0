// A rating is about mean + the product of a user's factors and an item's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ratings.hpp"

// What one rank works on: the ratings of its users, who are numbered from 0 here.
struct Part {
  int users = 0;
  int items = 0;
  double mean = 0;  // of all ranks' training ratings
  std::vector<Rating> training;
  std::vector<Rating> held_out;
  long long all_training = 0;  // of all ranks
  long long all_held_out = 0;
};

struct Step {
  double learning_rate;
  double regularisation;
};

// The factors of a rank's users, which are its own, and those of the items, which all ranks work on.
class Model {
 public:
  Model(const Part& part, int factors, std::uint64_t seed, int rank);

  // Stochastic gradient descent over the next `count` training ratings of this rank, from the first again after the
  // last. Changes the factors of users and items.
  void train(std::size_t count, const Step& step);

  // Sum of the squared errors of the held-out ratings of this rank.
  double squared_error() const;

  std::span<double> items() { return items_; }
  std::span<const double> items() const { return items_; }

 private:
  double* user(const Rating& rating) { return users_.data() + static_cast<std::size_t>(rating.user) * factors_; }
  double* item(const Rating& rating) { return items_.data() + static_cast<std::size_t>(rating.item) * factors_; }

  const Part& part_;
  std::size_t factors_;
  std::size_t next_ = 0;  // training rating
  std::vector<double> users_;
  std::vector<double> items_;
};
