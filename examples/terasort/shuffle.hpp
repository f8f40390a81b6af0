// Every record goes to the rank of its partition.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

#include "collector.hpp"
#include "job.hpp"
#include "options.hpp"
#include "segment.hpp"
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
  std::size_t slots = 0;        // notified: of each pair of ranks
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

  // This rank's records from `first` on, as the input has them; each is read once. What has been loaded has been seen
  // by the validator, too.
  std::span<const Record> read(std::uint64_t first, std::uint64_t count, Records& room) const {
    std::span<const Record> records;
    {
      const Within phase(times, Phase::read);
      if (first == 0 && job.rank == 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.late));
      records = source.get(first, count, room);
    }
    if (!source.is_loaded()) {
      const Within phase(times, Phase::validate);
      input.see(records);
    }
    return records;
  }
};

// Memory of each rank that the others write to. Collective.
std::unique_ptr<Segment> make_segment(const Plan& plan, const Options& options, const Job& job);

// Asynchronous: a rank partitions its records into buffers, writes each to its reader when it is full, and takes what
// arrives meanwhile. When it has nothing else to do it sorts what has come.
void shuffle_notified(const Task& task, Segment& segment);

// The baseline: partitions all, and exchanges all by MPI_Alltoallv between barriers.
void shuffle_alltoallv(const Task& task);

}  // namespace terasort
