// Whether C is A * B, as HPL and netlib's testers ask it: the residual, by the size of what rounding may do.
#pragma once

#include <cstdint>

#include "job.hpp"
#include "matrix.hpp"

namespace matrix_multiplication {

constexpr double most_residual = 16;

// ||C x - A (B x)|| / (||A|| ||B|| ||x|| n eps) with a random x and n the longest of the dimensions, maximum norms.
// Collective.
double residual(Matrix& a, Matrix& b, Matrix& c, std::uint64_t seed);
// max |C - D| / (||A|| ||B|| n eps), where both have the same layout. Collective.
double difference(const Job& job, Matrix& a, Matrix& b, Matrix& c, Matrix& d);

}  // namespace matrix_multiplication
