#include "check.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace matrix_multiplication {

namespace {

using Vector = std::vector<double>;

void add_over_ranks(Vector& vector) {
  MPI_Allreduce(MPI_IN_PLACE, vector.data(), static_cast<int>(vector.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

// act(row, column, element) for each of this rank's.
template <class Act>
void each_element(Matrix& matrix, Act&& act) {
  const Layout& layout = matrix.layout();
  layout.each_of(matrix.rank(), [&](int row, int column) {
    const Matrix::Block block = matrix.block(row, column);
    for (int j = 0; j < layout.columns.length(column); ++j)
      for (int i = 0; i < layout.rows.length(row); ++i)
        act(static_cast<std::size_t>(layout.rows.begin(row) + i),
            static_cast<std::size_t>(layout.columns.begin(column) + j),
            block.data[static_cast<std::size_t>(j) * static_cast<std::size_t>(block.stride) +
                       static_cast<std::size_t>(i)]);
  });
}

Vector times(Matrix& matrix, const Vector& vector) {
  Vector result(static_cast<std::size_t>(matrix.layout().rows.size));
  each_element(matrix,
               [&](std::size_t row, std::size_t column, double element) { result[row] += element * vector[column]; });
  add_over_ranks(result);
  return result;
}

// NaN where there is one: it must not get lost in a comparison.
double larger(double x, double y) noexcept {
  return std::isnan(x) || x > y ? x : y;
}

double largest(const Vector& vector) noexcept {
  double most = 0;
  for (const double number : vector) most = larger(most, std::abs(number));
  return most;
}

double norm(Matrix& matrix) {
  Vector sums(static_cast<std::size_t>(matrix.layout().rows.size));
  each_element(matrix, [&](std::size_t row, std::size_t, double element) { sums[row] += std::abs(element); });
  add_over_ranks(sums);
  return largest(sums);
}

// 0 where there is no error, of matrices of zeros, too.
double by_rounding(double error, Matrix& a, Matrix& b) {
  const int longest = std::max({a.layout().rows.size, a.layout().columns.size, b.layout().columns.size});
  const double bound = norm(a) * norm(b) * longest * std::numeric_limits<double>::epsilon();
  return error == 0 ? 0 : error / bound;
}

}  // namespace

double residual(Matrix& a, Matrix& b, Matrix& c, std::uint64_t seed) {
  Vector x(static_cast<std::size_t>(b.layout().columns.size));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>(random_number(seed + 7, Name::c, i, 0) >> 11) * 0x1p-53 - 0.5;
  const Vector wanted = times(a, times(b, x));
  Vector error = times(c, x);
  for (std::size_t i = 0; i < error.size(); ++i) error[i] -= wanted[i];
  return by_rounding(largest(error) / largest(x), a, b);
}

double difference(const Job& job, Matrix& a, Matrix& b, Matrix& c, Matrix& d) {
  Vector errors(static_cast<std::size_t>(job.ranks));
  double& mine = errors[static_cast<std::size_t>(job.rank)];
  const Layout& layout = c.layout();
  layout.each_of(job.rank, [&](int row, int column) {
    for (std::size_t i = 0; i < layout.elements(row, column); ++i)
      mine = larger(mine, std::abs(c.data(row, column)[i] - d.data(row, column)[i]));
  });
  add_over_ranks(errors);
  return by_rounding(largest(errors), a, b);
}

}  // namespace matrix_multiplication
