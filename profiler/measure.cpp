#include "profiler/measure.hpp"

#include <time.h>

#include <algorithm>
#include <vector>

#include "base/clock.hpp"

namespace papaya::measure {

namespace {
constexpr int clock_rounds = 30;
constexpr int message_rounds = 10;
constexpr int tag = 1;
constexpr long longest_nap_ns = 1'000'000;
}  // namespace

trace::ClockOffset clock_offset(MPI_Comm leaders, double ns_per_tick, std::uint64_t begin_ticks) noexcept {
  int rank = 0;
  int size = 1;
  PMPI_Comm_rank(leaders, &rank);
  PMPI_Comm_size(leaders, &size);
  const auto now = [&] { return static_cast<double>(clock::ticks() - begin_ticks) * ns_per_tick; };
  trace::ClockOffset result{0, 0, clock::ticks(), 1};
  if (rank == 0) {
    for (int peer = 1; peer < size; ++peer)
      for (int round = 0; round < clock_rounds; ++round) {
        double time = 0;
        PMPI_Recv(&time, 1, MPI_DOUBLE, peer, tag, leaders, MPI_STATUS_IGNORE);
        time = now();
        PMPI_Send(&time, 1, MPI_DOUBLE, peer, tag, leaders);
      }
    return result;
  }
  double shortest = 1e300;
  for (int round = 0; round < clock_rounds; ++round) {
    double time = 0;
    const double sent = now();
    PMPI_Send(&time, 1, MPI_DOUBLE, 0, tag, leaders);
    PMPI_Recv(&time, 1, MPI_DOUBLE, 0, tag, leaders, MPI_STATUS_IGNORE);
    const double received = now();
    if (received - sent < shortest) {
      shortest = received - sent;
      result.offset_ns = static_cast<std::int64_t>(time - (sent + received) / 2);
      result.error_ns = static_cast<std::uint64_t>(shortest / 2) + 1;
      result.at_ticks = clock::ticks();
    }
  }
  return result;
}

void meet_asleep(MPI_Comm comm) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  if (PMPI_Ibarrier(comm, &request) != MPI_SUCCESS) return;
  timespec nap{0, 50'000};
  for (int all_here = 0; PMPI_Test(&request, &all_here, MPI_STATUS_IGNORE) == MPI_SUCCESS && all_here == 0;) {
    nanosleep(&nap, nullptr);
    nap.tv_nsec = std::min(2 * nap.tv_nsec, longest_nap_ns);
  }
}

void message_times(MPI_Comm comm, int peer, double budget_ms, std::uint64_t* ns) noexcept {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  std::fill(ns, ns + alpha_size_count, 0);
  if (rank != 0 && rank != peer) return;
  const int other = rank == 0 ? peer : 0;
  std::vector<char> buffer(alpha_sizes[alpha_size_count - 1]);
  const std::uint64_t begin = clock::monotonic_ns();
  for (int i = 0; i < alpha_size_count; ++i) {
    const int bytes = static_cast<int>(alpha_sizes[i]);
    std::uint64_t shortest = ~std::uint64_t{0};
    for (int round = 0; round < message_rounds; ++round) {
      // Rank 0 decides whether there is time for another one and says so in the message.
      if (rank == 0) {
        const bool last = round == message_rounds - 1 ||
                          static_cast<double>(clock::monotonic_ns() - begin) > budget_ms * 1e6;
        buffer[0] = last ? 1 : 0;
        const std::uint64_t sent = clock::monotonic_ns();
        PMPI_Send(buffer.data(), bytes, MPI_BYTE, other, tag, comm);
        PMPI_Recv(buffer.data(), bytes, MPI_BYTE, other, tag, comm, MPI_STATUS_IGNORE);
        shortest = std::min(shortest, clock::monotonic_ns() - sent);
      } else {
        PMPI_Recv(buffer.data(), bytes, MPI_BYTE, other, tag, comm, MPI_STATUS_IGNORE);
        PMPI_Send(buffer.data(), bytes, MPI_BYTE, other, tag, comm);
      }
      if (buffer[0] != 0) break;
    }
    ns[i] = std::max<std::uint64_t>(shortest / 2, 1);
  }
}

}  // namespace papaya::measure
