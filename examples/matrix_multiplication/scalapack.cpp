#include "scalapack.hpp"

#include <array>

#include "blas.hpp"

// ScaLAPACK has no header.
extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridexit(int context);
void pdgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
             const double* alpha, const double* a, const int* row_a, const int* column_a, const int* of_a,
             const double* b, const int* row_b, const int* column_b, const int* of_b, const double* beta, double* c,
             const int* row_c, const int* column_c, const int* of_c);
}

namespace matrix_multiplication {

namespace {

int panel_of_all = 32;

// A matrix as ScaLAPACK describes it.
std::array<int, 9> description_of(const Matrix& matrix, int context) {
  constexpr int dense = 1;
  const Layout& layout = matrix.layout();
  return {dense, context, layout.rows.size, layout.columns.size, layout.rows.block, layout.columns.block,
          0,     0,       matrix.stride()};
}

}  // namespace

Layouts Scalapack::layouts_of(const Layouts& layouts, Grid grid, int block) {
  const auto cyclic = [&](const Layout& layout) {
    return cyclic_layout({layout.rows.size, block}, {layout.columns.size, block}, grid);
  };
  return {cyclic(layouts.a), cyclic(layouts.b), cyclic(layouts.c)};
}

// The matrices once more, and what is redistributed as it is sent and as it comes.
std::uint64_t Scalapack::bytes_of(const Layouts& layouts, Grid grid, int block, int rank) {
  const Layouts cyclic = layouts_of(layouts, grid, block);
  std::uint64_t bytes = 0;
  for (const Name name : {Name::a, Name::b, Name::c})
    bytes += layouts.of(name).bytes_of(rank) + 2 * cyclic.of(name).bytes_of(rank);
  return bytes;
}

Scalapack::Scalapack(const Job& job, const Layouts& layouts, Grid grid, int block, int panel)
    : layouts_(layouts_of(layouts, grid, block)),
      grid_(grid),
      a_(layouts_.a, job.rank, grid),
      b_(layouts_.b, job.rank, grid),
      c_(layouts_.c, job.rank, grid),
      to_a_(layouts.a, layouts_.a, job.rank, job.ranks),
      to_b_(layouts.b, layouts_.b, job.rank, job.ranks),
      from_c_(layouts_.c, layouts.c, job.rank, job.ranks) {
  panel_of_all = panel;
}

void Scalapack::open() {
  Cblacs_get(-1, 0, &context_);
  Cblacs_gridinit(&context_, "R", grid_.rows, grid_.columns);
}

Scalapack::~Scalapack() {
  if (context_ >= 0) Cblacs_gridexit(context_);
}

void Scalapack::multiply() {
  const double one = 1;
  const double zero = 0;
  const int first = 1;
  const std::array<int, 9> a = description_of(a_, context_);
  const std::array<int, 9> b = description_of(b_, context_);
  const std::array<int, 9> c = description_of(c_, context_);
  pdgemm_("N", "N", &c[2], &c[3], &a[3], &one, a_.array(), &first, &first, a.data(), b_.array(), &first, &first,
          b.data(), &zero, c_.array(), &first, &first, c.data());
}

Baseline Scalapack::run(Matrix& a, Matrix& b, Matrix& c, bool is_redistributed) {
  if (!is_redistributed && !has_operands_) {
    to_a_.run(a, a_);
    to_b_.run(b, b_);
    has_operands_ = true;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  take_seconds_in_dgemm();
  Baseline baseline;
  const double start = clock_seconds();
  if (is_redistributed) {
    to_a_.run(a, a_);
    to_b_.run(b, b_);
  }
  const double before = clock_seconds();
  multiply();
  const double after = clock_seconds();
  if (is_redistributed) from_c_.run(c_, c);
  baseline.seconds = clock_seconds() - start;
  baseline.redistribution = baseline.seconds - (after - before);
  baseline.dgemm = take_seconds_in_dgemm();
  if (!is_redistributed) from_c_.run(c_, c);
  return baseline;
}

}  // namespace matrix_multiplication

// PBLAS asks this function of its own for the panel, which without this one is 32: that costs a quarter of the speed.
extern "C" [[gnu::visibility("default")]] int pilaenv_(const int* /*context*/, const char* /*type*/) {
  return matrix_multiplication::panel_of_all;
}
