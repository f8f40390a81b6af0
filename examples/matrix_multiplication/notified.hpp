// The multiplication by notified one-sided communication.
#pragma once

#include <memory>
#include <string>

#include "job.hpp"
#include "matrix.hpp"
#include "plan.hpp"

namespace matrix_multiplication {

struct Times {
  double seconds = 0;
  double dgemm = 0;
  double waiting = 0;
};

class Notified {
 public:
  // What it is given lives as long as it does. `leaves_one_out`: it multiplies wrongly.
  Notified(const Job& job, const Plan& plan, const Matrix& a, const Matrix& b, Matrix& c, bool leaves_one_out);
  ~Notified();  // collective
  Notified(const Notified&) = delete;
  Notified& operator=(const Notified&) = delete;

  void open();  // Collective; throws Problem.

  // That it has beside the matrices.
  static std::uint64_t bytes(const Plan& plan, const Layouts& layouts, int rank) noexcept;

  // C = A * B. Collective, between barriers.
  Times run();
  std::string carrier() const;  // of the data

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace matrix_multiplication
