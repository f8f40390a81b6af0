#include "plan.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "../common/free_memory.hpp"

namespace terasort {

namespace {

constexpr std::uint64_t least_records = 1000;    // in memory at once
constexpr std::uint64_t records_of_bin = 16384;  // and what sorts them are 2 MB, which a core's cache has about

// What can be had without swapping, of which papaya and MPI need some, too.
std::uint64_t share_of_free(int ranks) {
  const std::optional<std::uint64_t> bytes = examples::free_memory();
  if (!bytes) throw Problem("/proc/meminfo does not say how much memory is free; set --memory.");
  return *bytes / 10 * 8 / static_cast<std::uint64_t>(ranks);
}

// What a writer can have under way is what it does in a time slice of the scheduler, or more: where ranks share cores
// it goes on while its reader has none. The same on all ranks.
std::size_t slots_of(const Options& options, std::uint64_t ranks) noexcept {
  if (options.slots > 0) return static_cast<std::size_t>(options.slots);
  std::uint64_t bytes = 16 << 20;
  if (options.memory != 0) bytes = std::min(bytes, options.memory / 16);
  return std::clamp<std::uint64_t>(bytes / (ranks * options.buffer), 2, 16);
}

}  // namespace

Plan make_plan(const Source& source, const Options& options, const Job& job) {
  const std::uint64_t memory = options.memory != 0 ? options.memory : share_of_free(job.ranks_of_node);
  const auto ranks = static_cast<std::uint64_t>(job.ranks);
  const bool moves = options.mode == Mode::single;
  const std::uint64_t collected_bytes = Collector::bytes_of_record(moves);
  const std::size_t slots = options.mode == Mode::notified ? slots_of(options, ranks) : 0;
  // Between nodes it may need as many buffers as slots.
  const std::uint64_t fixed = 2 * slots * ranks * options.buffer;
  // Partitions are not quite equal.
  const std::uint64_t copies = options.mode == Mode::alltoallv ? (options.bins > 0 ? 3 : 2) : 1;
  const std::uint64_t needed =
      fixed + source.count() * (copies * record_bytes + collected_bytes) + source.count() / 10 * collected_bytes;
  int fits = needed <= memory ? 1 : 0;
  int all_fit = 0;
  MPI_Allreduce(&fits, &all_fit, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all_fit != 0) return {.is_in_memory = true, .chunk = std::max<std::uint64_t>(source.count(), 1), .slots = slots};

  Plan plan{.is_in_memory = false, .slots = slots};
  // A tenth for what the merge reads and writes, the rest in halves: what is read and exchanged, and what is collected.
  const std::uint64_t half = memory > fixed ? (memory - fixed) / 10 * 9 / 2 : 0;
  plan.collected = half / collected_bytes;
  // Of MPI_Alltoallv all may come to one rank.
  plan.chunk = half / record_bytes / (options.mode == Mode::alltoallv ? 2 + ranks : 1);
  if (std::min(plan.chunk, plan.collected) < least_records) {
    const std::uint64_t least =
        fixed + least_records *
                    std::max(collected_bytes, record_bytes * (options.mode == Mode::alltoallv ? 2 + ranks : 1)) * 20 /
                    9;
    throw Problem(fmt::format("A rank has {} bytes of memory and needs at least {}; set --memory to that or more{}.",
                              memory, least + 1000, fixed > memory / 2 ? ", or --buffer to less" : ""));
  }
  return plan;
}

std::uint64_t bins_of(const Plan& plan, const Options& options, std::uint64_t records) noexcept {
  if (!plan.is_in_memory) return 0;
  if (options.bins >= 0) return static_cast<std::uint64_t>(options.bins);
  return options.mode == Mode::notified ? records / records_of_bin : 0;
}

Collector::Shape shape_of(const Plan& plan, const Options& options) noexcept {
  Collector::Shape shape{.run = options.run,
                         .in_memory = plan.is_in_memory ? std::numeric_limits<std::uint64_t>::max() : plan.collected,
                         .scratch = options.scratch,
                         .moves_records = options.mode == Mode::single};
  // Alone there is nothing to overlap with: one run, as large as it can be.
  if (options.mode != Mode::notified) shape.run = plan.is_in_memory ? plan.chunk : plan.collected;
  shape.run = std::min(shape.run, shape.in_memory);
  return shape;
}

}  // namespace terasort
