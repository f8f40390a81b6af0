// Communication between measurements. Ranks sleep while they wait, so that those who measure or compute have
// the cores: inside MPI's blocking calls ranks spin, some MPIs without ever yielding.
#pragma once

#include <mpi.h>

#include <string>

namespace papaya::bench::quiet {

void barrier(MPI_Comm comm);
void share(void* data, std::size_t bytes, MPI_Comm comm);  // rank 0's bytes on every rank
double share(double value, MPI_Comm comm);
std::string share(std::string text, MPI_Comm comm);
double maximum(double value, MPI_Comm comm);                             // on every rank
double sum(double value, MPI_Comm comm);                                 // on every rank
void unite(void* bits, int bytes, MPI_Comm comm);                        // bitwise or, on every rank
void gather(const double* mine, int count, double* all, MPI_Comm comm);  // to rank 0

}  // namespace papaya::bench::quiet
