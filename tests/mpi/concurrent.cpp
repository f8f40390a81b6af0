// MPI_THREAD_MULTIPLE: threads that run collectives on communicators of their own at once, all kinds mixed.
// Run under `papaya run` with PAPAYA_X naming an algorithm.
#include <mpi.h>

#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "tests/mpi/check.hpp"
#include "tests/mpi/small_calls.hpp"

int main(int argc, char** argv) {
  constexpr int thread_count = 3;
  constexpr int calls = 210;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (world_rank == 0) std::printf("this MPI has no MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    return 77;
  }
  std::vector<MPI_Comm> comms(thread_count);
  std::vector<std::unique_ptr<Entries>> entries;
  for (MPI_Comm& comm : comms) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    entries.push_back(std::make_unique<Entries>(comm));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      // Each thread in another order, all ranks alike.
      for (int call = 0; call < calls; ++call) {
        be_late((world_rank + t) % size, size, call);
        small_call(small_collectives[static_cast<std::size_t>(call * (t + 1)) % std::size(small_collectives)],
                   comms[static_cast<std::size_t>(t)], call, entries[static_cast<std::size_t>(t)].get());
      }
    });
  for (std::thread& thread : threads) thread.join();
  entries.clear();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);

  const bool is_right = conclude() == static_cast<long>(calls) * thread_count * size;
  MPI_Finalize();
  return is_right ? 0 : 1;
}
