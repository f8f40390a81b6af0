// OpenBLAS's DGEMM with a clock: what this program calls, and what ScaLAPACK calls inside PDGEMM.
#pragma once

namespace matrix_multiplication {

// One thread for each rank: OpenBLAS looks at the environment when it is loaded, so the program starts itself again.
void use_one_thread(char** arguments);

// C = A * B + beta * C, by columns; `a` is m x k.
void multiply(int m, int n, int k, const double* a, int stride_a, const double* b, int stride_b, double beta, double* c,
              int stride_c) noexcept;

// Seconds in DGEMM since the last call.
double take_seconds_in_dgemm() noexcept;

// GFLOP/s of this rank at products of square blocks of that size, the best of some.
double measure_dgemm(int block);

}  // namespace matrix_multiplication
