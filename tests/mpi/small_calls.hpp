// One small call of a collective, its result checked by arithmetic: for loops of thousands, several
// collectives mixed, several threads.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/mpi/check.hpp"

inline constexpr std::string_view small_collectives[] = {"reduce",     "bcast",          "alltoall",
                                                         "allreduce",  "alltoallv",      "allgather",
                                                         "barrier",    "reduce_scatter", "reduce_scatter_block",
                                                         "allgatherv", "gather",         "scatter"};

// Counts each rank's entries into barriers, in memory that all ranks see, so that who leaves early is found
// out.
class Entries {
 public:
  explicit Entries(MPI_Comm comm) {
    int rank = 0;
    int size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    MPI_Comm node;
    int node_size = 0;
    PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    PMPI_Comm_size(node, &node_size);
    PMPI_Comm_free(&node);
    PMPI_Allreduce(MPI_IN_PLACE, &node_size, 1, MPI_INT, MPI_MIN, comm);
    if (node_size < size) return;
    void* mine = nullptr;
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, &mine, &window_);
    for (int r = 0; r < size; ++r) {
      MPI_Aint bytes = 0;
      int unit = 0;
      void* at = nullptr;
      MPI_Win_shared_query(window_, r, &bytes, &unit, &at);
      counters_.push_back(static_cast<std::atomic<long>*>(at));
    }
    mine_ = new (mine) std::atomic<long>(0);
    PMPI_Barrier(comm);
  }
  ~Entries() {
    if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
  }
  Entries(const Entries&) = delete;
  Entries& operator=(const Entries&) = delete;

  void enter() {
    ++number_;
    // Pairs with the acquire in all_entered().
    if (mine_ != nullptr) mine_->store(number_, std::memory_order_release);
  }
  bool all_entered() const {
    for (const auto* counter : counters_)
      if (counter->load(std::memory_order_acquire) < number_) return false;
    return true;
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::atomic<long>*> counters_;
  std::atomic<long>* mine_ = nullptr;
  long number_ = 0;
};

// The `call`-th call of `collective` on `comm`. What is sent depends on rank, peer and call; counts and roots
// vary.
inline void small_call(std::string_view collective, MPI_Comm comm, int call, Entries* entries) {
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  const int root = call / 3 % size;  // the same for a few calls: a root that only sends may run ahead
  const int count = collective.starts_with("all") && collective != "allreduce" ? 1 + call * 7 % 90 : 1 + call * 7 % 700;
  const auto n = static_cast<std::size_t>(count);
  const auto p = static_cast<std::size_t>(size);
  const int ranks_sum = size * (size - 1) / 2;
  const bool in_place = call % 5 == 2 && (collective != "reduce" || count <= 500);  // MPICH's own crashes above 2 KiB
  bool right = true;
  const auto all_are = [&](const std::vector<int>& values, std::size_t first, std::size_t number, int expected) {
    for (std::size_t i = first; i < first + number; ++i)
      right = right && values[i] == expected + static_cast<int>(i - first);
  };
  const auto numbers = [](std::vector<int>& values, std::size_t first, std::size_t number, int value) {
    for (std::size_t i = first; i < first + number; ++i) values[i] = value + static_cast<int>(i - first);
  };
  if (collective == "barrier") {
    if (entries != nullptr) entries->enter();
    MPI_Barrier(comm);
    right = entries == nullptr || entries->all_entered();
  } else if (collective == "bcast") {
    std::vector<int> values(n, -1);
    if (rank == root) numbers(values, 0, n, call);
    MPI_Bcast(values.data(), count, MPI_INT, root, comm);
    all_are(values, 0, n, call);
  } else if (collective == "reduce" || collective == "allreduce") {
    std::vector<int> send(n, rank + call);
    std::vector<int> receive(n, in_place ? rank + call : -1);
    const bool here = collective == "allreduce" || rank == root;
    const void* from = in_place && here ? MPI_IN_PLACE : send.data();
    if (collective == "allreduce")
      MPI_Allreduce(from, receive.data(), count, MPI_INT, MPI_SUM, comm);
    else
      MPI_Reduce(from, here ? receive.data() : nullptr, count, MPI_INT, MPI_SUM, root, comm);
    for (const int value : receive) right = right && (!here || value == size * call + ranks_sum);
    for (const int value : send) right = right && value == rank + call;
  } else if (collective == "allgather") {
    std::vector<int> send(n);
    std::vector<int> receive(n * p, -1);
    numbers(send, 0, n, rank * 1000 + call);
    if (in_place) numbers(receive, n * static_cast<std::size_t>(rank), n, rank * 1000 + call);
    if (in_place)
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive.data(), count, MPI_INT, comm);
    else
      MPI_Allgather(send.data(), count, MPI_INT, receive.data(), count, MPI_INT, comm);
    for (std::size_t r = 0; r < p; ++r) all_are(receive, n * r, n, static_cast<int>(r) * 1000 + call);
  } else if (collective == "gather") {
    const bool here = rank == root;
    std::vector<int> send(n);
    std::vector<int> receive(n * p, -1);
    numbers(in_place && here ? receive : send, in_place && here ? n * static_cast<std::size_t>(rank) : 0, n,
            rank * 1000 + call);
    MPI_Gather(in_place && here ? MPI_IN_PLACE : send.data(), count, MPI_INT, here ? receive.data() : nullptr, count,
               MPI_INT, root, comm);
    for (std::size_t r = 0; r < p && here; ++r) all_are(receive, n * r, n, static_cast<int>(r) * 1000 + call);
  } else if (collective == "scatter") {
    const bool here = rank == root;
    std::vector<int> send(here ? n * p : 0);
    std::vector<int> receive(n, -1);
    for (std::size_t r = 0; r < p && here; ++r) numbers(send, n * r, n, static_cast<int>(r) * 1000 + call);
    MPI_Scatter(send.data(), count, MPI_INT, in_place && here ? MPI_IN_PLACE : receive.data(), count, MPI_INT, root,
                comm);
    if (!in_place || !here) all_are(receive, 0, n, rank * 1000 + call);
  } else if (collective == "allgatherv") {
    // Rank r has (r + call) % count elements, none at times; the blocks stand in reverse.
    std::vector<int> send(n);
    std::vector<int> receive(n * p, -1);
    std::vector<int> counts(p);
    std::vector<int> places(p);
    for (std::size_t r = 0; r < p; ++r) {
      counts[r] = (static_cast<int>(r) + call) % count;
      places[r] = (size - 1 - static_cast<int>(r)) * count;
    }
    const auto me = static_cast<std::size_t>(rank);
    const auto own = static_cast<std::size_t>(counts[me]);
    numbers(in_place ? receive : send, in_place ? static_cast<std::size_t>(places[me]) : 0, own, rank * 1000 + call);
    if (in_place)
      MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive.data(), counts.data(), places.data(), MPI_INT, comm);
    else
      MPI_Allgatherv(send.data(), counts[me], MPI_INT, receive.data(), counts.data(), places.data(), MPI_INT, comm);
    for (std::size_t r = 0; r < p; ++r) {
      const auto at = static_cast<std::size_t>(places[r]);
      const auto got = static_cast<std::size_t>(counts[r]);
      all_are(receive, at, got, static_cast<int>(r) * 1000 + call);
      for (std::size_t i = at + got; i < at + n; ++i) right = right && receive[i] == -1;
    }
  } else if (collective == "alltoall") {
    std::vector<int> send(n * p);
    std::vector<int> receive(n * p, -1);
    for (std::size_t r = 0; r < p; ++r)
      numbers(in_place ? receive : send, n * r, n, rank * 10000 + static_cast<int>(r) * 1000 + call);
    if (in_place)
      MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive.data(), count, MPI_INT, comm);
    else
      MPI_Alltoall(send.data(), count, MPI_INT, receive.data(), count, MPI_INT, comm);
    for (std::size_t r = 0; r < p; ++r) all_are(receive, n * r, n, static_cast<int>(r) * 10000 + rank * 1000 + call);
  } else if (collective == "alltoallv") {
    // Between ranks a and b: (a + b + call) % count elements, none at times; the blocks stand in reverse.
    std::vector<int> send(n * p);
    std::vector<int> receive(n * p, -1);
    std::vector<int> counts(p);
    std::vector<int> places(p);
    for (std::size_t r = 0; r < p; ++r) {
      counts[r] = (rank + static_cast<int>(r) + call) % count;
      places[r] = (size - 1 - static_cast<int>(r)) * count;
      numbers(send, static_cast<std::size_t>(places[r]), n, rank * 10000 + static_cast<int>(r) * 1000 + call);
    }
    MPI_Alltoallv(send.data(), counts.data(), places.data(), MPI_INT, receive.data(), counts.data(), places.data(),
                  MPI_INT, comm);
    for (std::size_t r = 0; r < p; ++r) {
      const auto at = static_cast<std::size_t>(places[r]);
      const auto got = static_cast<std::size_t>(counts[r]);
      all_are(receive, at, got, static_cast<int>(r) * 10000 + rank * 1000 + call);
      for (std::size_t i = at + got; i < at + n; ++i) right = right && receive[i] == -1;
    }
  } else if (collective == "reduce_scatter_block" || collective == "reduce_scatter") {
    // Rank r gets (r + call) % count elements of a reduce_scatter, none at times.
    std::vector<int> counts(p, count);
    std::size_t begin = 0;
    std::size_t all = 0;
    for (std::size_t r = 0; r < p; ++r) {
      if (collective == "reduce_scatter") counts[r] = (static_cast<int>(r) + call) % count;
      if (static_cast<int>(r) < rank) begin += static_cast<std::size_t>(counts[r]);
      all += static_cast<std::size_t>(counts[r]);
    }
    std::vector<int> send(all + 1);
    std::vector<int> receive(all + 1, -1);
    numbers(in_place ? receive : send, 0, all, rank + call);
    const void* const from = in_place ? MPI_IN_PLACE : send.data();
    if (collective == "reduce_scatter")
      MPI_Reduce_scatter(from, receive.data(), counts.data(), MPI_INT, MPI_SUM, comm);
    else
      MPI_Reduce_scatter_block(from, receive.data(), count, MPI_INT, MPI_SUM, comm);
    for (std::size_t i = 0; i < static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]); ++i)
      right = right && receive[i] == size * (call + static_cast<int>(begin + i)) + ranks_sum;
  }
  const bool is_rooted =
      collective == "bcast" || collective == "reduce" || collective == "gather" || collective == "scatter";
  if (is_rooted && call % 32 == 16) meet(comm);
  ++comparisons;
  if (!right) report("another result", std::string(collective) + ", call " + std::to_string(call));
}

// Ranks are late in turn, by computing or by sleeping; every 97 calls one runs ahead of the rest.
inline void be_late(int rank, int size, int call) {
  if (call % 50 == rank)
    for (volatile int i = 0; i < 20000;) i = i + 1;
  if (call % 97 == 0 && rank != call / 97 % size) std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (call % 211 == 3 * rank) std::this_thread::sleep_for(std::chrono::microseconds(300));
}

// Calls by the thousand while ranks are late in turn; then all collectives in turn on the same communicator.
inline void loops(std::string_view collective, MPI_Comm comm, int laps, int mixed) {
  int rank = 0;
  int size = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  Entries entries(comm);
  for (int call = 0; call < laps; ++call) {
    be_late(rank, size, call);
    small_call(collective, comm, call, &entries);
  }
  for (int call = 0; call < mixed; ++call) {
    be_late(rank, size, call);
    small_call(call % 2 == 0 ? collective
                             : small_collectives[static_cast<std::size_t>(call / 2) % std::size(small_collectives)],
               comm, call, &entries);
  }
}
