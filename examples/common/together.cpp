#include "together.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace examples {

void abort_job(const char* program, const std::string& sentence) {
  fmt::print(stderr, "{}: {}\n", program, sentence);
  std::fflush(stderr);
  usleep(200'000);  // MPICH's launcher now and then drops what it has not read yet when a job is aborted
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void agree(std::string sentence) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int mine = sentence.empty() ? ranks : rank;
  int first = ranks;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == ranks) return;
  int length = static_cast<int>(sentence.size());
  MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD);
  sentence.resize(static_cast<std::size_t>(length));
  MPI_Bcast(sentence.data(), length, MPI_CHAR, first, MPI_COMM_WORLD);
  throw CommonProblem(sentence);
}

}  // namespace examples
