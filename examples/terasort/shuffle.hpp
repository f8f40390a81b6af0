// Every record goes to the rank of its partition.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collector.hpp"
#include "job.hpp"
#include "options.hpp"
#include "source.hpp"
#include "splitters.hpp"
#include "times.hpp"
#include "validator.hpp"

namespace terasort {

// How much a rank handles at once.
struct Plan {
  bool is_in_memory = true;     // input and partition
  std::uint64_t chunk = 1;      // records that are read at once
  std::uint64_t collected = 0;  // records of its partition in memory, where not all are
};

struct Task {
  const Source& source;
  const Splitters& splitters;
  const Plan& plan;
  const Options& options;
  const Job& job;
  Collector& collector;
  Validator& input;
  Times& times;

  // This rank's records from `first` on, as the input has them; each is read once.
  std::span<const Record> read(std::uint64_t first, std::uint64_t count, std::vector<Record>& room) const {
    std::span<const Record> records;
    {
      const Within phase(times, Phase::read);
      if (first == 0 && job.rank == 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.late));
      records = source.get(first, count, room);
    }
    const Within phase(times, Phase::validate);
    input.see(records);
    return records;
  }
};

// Asynchronous: a rank partitions its records into buffers, two for each other rank, writes them there when they are
// full, and takes what arrives, and sorts a run of it, whenever it would wait. What carries the data.
std::string shuffle_notified(const Task& task);

// The baseline: partitions all, and exchanges all by MPI_Alltoallv between barriers.
void shuffle_alltoallv(const Task& task);

}  // namespace terasort
