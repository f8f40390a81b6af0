// What the user asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kmeans {

struct Options {
  std::string input;               // empty: points are generated
  std::uint64_t points = 1000000;  // that many are generated
  std::size_t dimensions = 10;     // of a generated point
  std::size_t first_column = 1;    // of the file, from 1
  std::size_t last_column = 0;     // 0: the last one
  std::size_t clusters = 1000;
  long iterations = 500;
  double tolerance = 0;  // ends when the centroids move by no more
  std::uint64_t seed = 1;
  bool is_plain = false;  // MPI_Allreduce, survives nothing
  int spares = 0;
  long checkpoint = 2;    // iterations
  double timeout = 0.25;  // seconds
  int kills = 0;
  std::uint64_t kill_seed = 1;
  std::string output;   // centroids
  std::string initial;  // centroids
  std::string json;
};

// Nothing: the process ends with `code`; rank 0 says why.
std::optional<Options> parse(int argc, char** argv, int rank, int& code);

}  // namespace kmeans
