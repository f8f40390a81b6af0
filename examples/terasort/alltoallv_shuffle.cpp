// The MPI way: every rank partitions what it has, all meet at a barrier, MPI_Alltoallv moves everything, and only then
// is anything sorted. Where memory is short that is done in rounds.
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "shuffle.hpp"

namespace terasort {

namespace {

void barrier(Times& times) {
  const Waiting waiting(times);
  MPI_Barrier(MPI_COMM_WORLD);
}

// What goes to one rank lies together afterwards.
std::vector<int> partition(const Task& task, std::span<const Record> records, std::uint64_t place, Records& sorted) {
  const Within phase(task.times, Phase::partition);
  std::vector<int> ranks_of(records.size());
  std::vector<int> counts(static_cast<std::size_t>(task.job.ranks));
  for (std::size_t i = 0; i < records.size(); ++i) {
    ranks_of[i] = task.splitters.rank_of(records[i].key(), place + i);
    ++counts[static_cast<std::size_t>(ranks_of[i])];
  }
  std::vector<std::size_t> next(counts.size());
  for (std::size_t rank = 1; rank < counts.size(); ++rank)
    next[rank] = next[rank - 1] + static_cast<std::size_t>(counts[rank - 1]);
  sorted.resize(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) sorted[next[static_cast<std::size_t>(ranks_of[i])]++] = records[i];
  return counts;
}

std::vector<int> displacements(const std::vector<int>& counts) {
  std::vector<int> places(counts.size());
  for (std::size_t rank = 1; rank < counts.size(); ++rank) places[rank] = places[rank - 1] + counts[rank - 1];
  return places;
}

void exchange(const Task& task, const Records& records, const std::vector<int>& counts, MPI_Datatype type,
              Records& room) {
  const Within phase(task.times, Phase::shuffle);
  std::vector<int> arriving(counts.size());
  barrier(task.times);
  {
    const Calling call(task.times);
    MPI_Alltoall(counts.data(), 1, MPI_INT, arriving.data(), 1, MPI_INT, MPI_COMM_WORLD);
  }
  std::uint64_t all = 0;
  for (const int count : arriving) all += static_cast<std::uint64_t>(count);
  Record* to = nullptr;
  const bool is_in_place = task.plan.is_in_memory && !task.collector.is_divided();
  if (is_in_place) {
    to = task.collector.room_for(all).data();
  } else {
    room.resize(all);
    to = room.data();
  }
  {
    const Calling call(task.times);
    MPI_Alltoallv(records.data(), counts.data(), displacements(counts).data(), type, to, arriving.data(),
                  displacements(arriving).data(), type, MPI_COMM_WORLD);
  }
  barrier(task.times);
  if (!is_in_place) task.collector.add(room);
}

}  // namespace

void shuffle_alltoallv(const Task& task) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(record_bytes, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  const std::uint64_t mine = (task.source.count() + task.plan.chunk - 1) / task.plan.chunk;
  std::uint64_t rounds = 0;
  MPI_Allreduce(&mine, &rounds, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  Records read;
  Records sorted;
  Records room;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t first = std::min(round * task.plan.chunk, task.source.count());
    const std::uint64_t count = std::min(task.plan.chunk, task.source.count() - first);
    const std::span<const Record> chunk = task.read(first, count, read);
    const std::vector<int> counts = partition(task, chunk, task.source.first() + first, sorted);
    exchange(task, sorted, counts, type, room);
  }
  MPI_Type_free(&type);
}

}  // namespace terasort
