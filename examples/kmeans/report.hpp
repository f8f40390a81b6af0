// What the program says in the end: for people, and in files.
#pragma once

#include <string>

#include "run.hpp"

namespace kmeans {

// Of the whole run, as the rank knows it that says it.
struct Facts {
  int ranks;
  int parts;
  int deaths;
  std::string place;  // what carried the data
  std::uint64_t points;
  Shape shape;
};

// So that nobody computes for an hour and cannot write then. Throws Problem.
void try_files(const Options& options);
void write_centroids(const std::string& path, const Numbers& centroids, const Shape& shape);
void report(const Options& options, const Outcome& outcome, const Facts& facts);
// Of the bits.
std::string checksum_of(const Numbers& centroids);

}  // namespace kmeans
