#include "blas.hpp"

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "job.hpp"

namespace matrix_multiplication {

namespace {

double seconds_in_dgemm = 0;

class InDgemm {
 public:
  InDgemm() = default;
  ~InDgemm() { seconds_in_dgemm += clock_seconds() - since_; }
  InDgemm(const InDgemm&) = delete;
  InDgemm& operator=(const InDgemm&) = delete;

 private:
  const double since_ = clock_seconds();
};

CBLAS_TRANSPOSE transpose_of(char letter) noexcept {
  return letter == 'n' || letter == 'N' ? CblasNoTrans : CblasTrans;
}

}  // namespace

void use_one_thread(char** arguments) {
  constexpr const char* name = "OPENBLAS_NUM_THREADS";
  const char* const threads = std::getenv(name);
  if (threads != nullptr && std::string_view(threads) == "1") return;
  setenv(name, "1", 1);
  execv("/proc/self/exe", arguments);
  openblas_set_num_threads(1);  // there is no /proc
}

void multiply(int m, int n, int k, const double* a, int stride_a, const double* b, int stride_b, double beta, double* c,
              int stride_c) noexcept {
  const InDgemm here;
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, stride_a, b, stride_b, beta, c, stride_c);
}

double take_seconds_in_dgemm() noexcept {
  const double seconds = seconds_in_dgemm;
  seconds_in_dgemm = 0;
  return seconds;
}

double measure_dgemm(int block) {
  constexpr double least_seconds = 0.01;
  constexpr int rounds = 5;
  const auto elements = static_cast<std::size_t>(block) * static_cast<std::size_t>(block);
  const std::vector<double> a(elements, 0.5);
  std::vector<double> c(elements);
  const double flops = 2.0 * block * block * block;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    int products = 0;
    const double start = clock_seconds();
    double seconds = 0;
    for (; seconds < least_seconds; seconds = clock_seconds() - start, ++products)
      multiply(block, block, block, a.data(), block, a.data(), block, 0, c.data(), block);
    best = std::max(best, flops * products / seconds / 1e9);
  }
  take_seconds_in_dgemm();
  return best;
}

}  // namespace matrix_multiplication

// ScaLAPACK finds this one before that of its BLAS: both variants compute with the same library, and by the same clock.
extern "C" [[gnu::visibility("default")]] void dgemm_(const char* transpose_a, const char* transpose_b, const int* m,
                                                      const int* n, const int* k, const double* alpha, const double* a,
                                                      const int* stride_a, const double* b, const int* stride_b,
                                                      const double* beta, double* c, const int* stride_c) {
  const matrix_multiplication::InDgemm here;
  cblas_dgemm(CblasColMajor, matrix_multiplication::transpose_of(*transpose_a),
              matrix_multiplication::transpose_of(*transpose_b), *m, *n, *k, *alpha, a, *stride_a, b, *stride_b, *beta,
              c, *stride_c);
}
