// Files in the Matrix Market array format: `%%MatrixMarket matrix array real general`, comments, the size, then one
// element in a line, by columns. Rank 0 reads and writes; the others need not see the file. Throws CommonProblem.
#pragma once

#include <string>

#include "job.hpp"
#include "matrix.hpp"

namespace matrix_multiplication {

struct Size {
  int rows = 0;
  int columns = 0;
};

// Collective.
Size read_size(const Job& job, const std::string& path);
// Collective: the elements of a file of the matrix's size.
void read(const Job& job, const std::string& path, Matrix& matrix);
// Collective.
void write(const Job& job, const std::string& path, Matrix& matrix);

}  // namespace matrix_multiplication
