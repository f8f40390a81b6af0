#include "tools/bench/quiet.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace papaya::bench::quiet {

namespace {

constexpr long first_sleep_ns = 10000;
constexpr long longest_sleep_ns = 200000;

void wait(MPI_Request request) {
  timespec pause{0, first_sleep_ns};
  for (int done = 0; PMPI_Test(&request, &done, MPI_STATUS_IGNORE), done == 0;) {
    nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(longest_sleep_ns, pause.tv_nsec * 2);
  }
}

double combined(double value, MPI_Op op, MPI_Comm comm) {
  double result = value;
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Iallreduce(&value, &result, 1, MPI_DOUBLE, op, comm, &request);
  wait(request);
  return result;
}

}  // namespace

void barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Ibarrier(comm, &request);
  wait(request);
}

void share(void* data, std::size_t bytes, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Ibcast(data, static_cast<int>(bytes), MPI_BYTE, 0, comm, &request);
  wait(request);
}

double share(double value, MPI_Comm comm) {
  share(&value, sizeof value, comm);
  return value;
}

std::string share(std::string text, MPI_Comm comm) {
  std::uint64_t length = text.size();
  share(&length, sizeof length, comm);
  text.resize(length);
  if (length != 0) share(text.data(), length, comm);
  return text;
}

double maximum(double value, MPI_Comm comm) {
  return combined(value, MPI_MAX, comm);
}
double sum(double value, MPI_Comm comm) {
  return combined(value, MPI_SUM, comm);
}

void unite(void* bits, int bytes, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Iallreduce(MPI_IN_PLACE, bits, bytes, MPI_BYTE, MPI_BOR, comm, &request);
  wait(request);
}

void gather(const double* mine, int count, double* all, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  PMPI_Igather(mine, count, MPI_DOUBLE, all, count, MPI_DOUBLE, 0, comm, &request);
  wait(request);
}

}  // namespace papaya::bench::quiet
