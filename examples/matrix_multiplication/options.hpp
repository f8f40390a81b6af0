// What the user asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan.hpp"

namespace matrix_multiplication {

enum class Variant { both, notified, pdgemm };

struct Options {
  std::optional<int> m;  // else as the files say, or as many as by default
  std::optional<int> n;
  std::optional<int> k;
  int block = 512;
  Placement placement = Placement::random;
  std::uint64_t seed = 1;
  Assignment assignment = Assignment::least;
  Order order = Order::panels;
  int buffers = 0;
  Variant variant = Variant::both;
  std::string grid;  // empty: as square as it gets
  int pdgemm_block = 256;
  int panel = 256;
  int rounds = 3;
  std::string a;  // files; empty: generated
  std::string b;
  std::string out;
  std::string json;
  bool plants_error = false;
};

const char* name_of(Placement placement) noexcept;
const char* name_of(Assignment assignment) noexcept;
const char* name_of(Order order) noexcept;

// Nothing: the process ends with `code`; rank 0 says why.
std::optional<Options> parse(int argc, char** argv, int rank, int& code);

}  // namespace matrix_multiplication
