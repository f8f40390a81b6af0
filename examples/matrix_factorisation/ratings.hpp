// Who rated what, and how: a sparse matrix of users and items.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Rating {
  std::int32_t user;
  std::int32_t item;
  float value;
};

struct Ratings {
  int users = 0;
  int items = 0;
  std::vector<Rating> all;  // users and items are numbered from 0 without gaps
};

// MovieLens' files: u.data (100K), ratings.dat (1M, 10M) and ratings.csv (20M, 25M), told apart by their first line.
// Throws std::runtime_error with a sentence that names file and line.
Ratings read_ratings(const std::string& file);

// A matrix of low rank plus noise, in steps of half a star from 0.5 to 5. Few items have most of the ratings, and some
// users rate much more than others. The same for equal arguments, however many ranks there are.
struct Generated {
  int users;
  int items;
  int ratings;
  int rank;      // of the matrix without its noise
  double noise;  // standard deviation, in stars
  std::uint64_t seed;
};
Ratings generate_ratings(const Generated& wanted);
