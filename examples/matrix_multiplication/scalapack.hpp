// The baseline: PDGEMM, on matrices that lie block-cyclically, and what brings them there and back.
#pragma once

#include <cstdint>

#include "job.hpp"
#include "matrix.hpp"
#include "plan.hpp"
#include "redistribution.hpp"

namespace matrix_multiplication {

struct Baseline {
  double seconds = 0;         // of all
  double redistribution = 0;  // of that
  double dgemm = 0;
};

class Scalapack {
 public:
  // Throws Problem. `panel`: elements of K that PDGEMM handles at once (PBLAS's logical block size).
  Scalapack(const Job& job, const Layouts& layouts, Grid grid, int block, int panel);
  ~Scalapack();  // collective
  Scalapack(const Scalapack&) = delete;
  Scalapack& operator=(const Scalapack&) = delete;

  void open();  // Collective.

  // Collective, between barriers. `is_redistributed`: what brings A and B there and C back is part of the time; else it
  // is done once, before, and C comes back after it.
  Baseline run(Matrix& a, Matrix& b, Matrix& c, bool is_redistributed);
  // That this rank sends to redistribute.
  std::uint64_t bytes_sent() const noexcept { return to_a_.bytes() + to_b_.bytes() + from_c_.bytes(); }

  // That it has beside the matrices.
  static std::uint64_t bytes_of(const Layouts& layouts, Grid grid, int block, int rank);

  static Layouts layouts_of(const Layouts& layouts, Grid grid, int block);

 private:
  void multiply();

  const Layouts layouts_;
  const Grid grid_;
  int context_ = -1;  // of BLACS
  Matrix a_;
  Matrix b_;
  Matrix c_;
  Redistribution to_a_;
  Redistribution to_b_;
  Redistribution from_c_;
  bool has_operands_ = false;
};

}  // namespace matrix_multiplication
