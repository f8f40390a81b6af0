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
  // Collective; throws Problem. `panel`: elements of K that PDGEMM handles at once (PBLAS's logical block size).
  Scalapack(const Job& job, const Layouts& layouts, Grid grid, int block, int panel);
  ~Scalapack();
  Scalapack(const Scalapack&) = delete;
  Scalapack& operator=(const Scalapack&) = delete;

  // Collective, between barriers. `is_redistributed`: what brings A and B there and C back is part of the time; else it
  // is done once, before, and C comes back after it.
  Baseline run(Matrix& a, Matrix& b, Matrix& c, bool is_redistributed);
  std::uint64_t bytes() const noexcept { return to_a_.bytes() + to_b_.bytes() + from_c_.bytes(); }

  static Layouts layouts_of(const Layouts& layouts, Grid grid, int block);

 private:
  void multiply();

  const Layouts layouts_;
  int context_ = 0;
  Matrix a_;
  Matrix b_;
  Matrix c_;
  Redistribution to_a_;
  Redistribution to_b_;
  Redistribution from_c_;
  bool has_operands_ = false;
};

}  // namespace matrix_multiplication
