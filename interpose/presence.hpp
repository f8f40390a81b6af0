// Which ranks of this job on this node have papaya: a file of shared memory named after the job, in which each rank
// says so before MPI_Init. Any rank can look without the others' help, and whoever is missing there has no papaya, or
// another tool in front of it. It knows no MPI: a rank for which libpapaya.so finds no flavour is on it as well.
// census.hpp decides.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/file_identity.hpp"

namespace papaya::presence {

enum class Part : std::uint32_t { unknown, takes_part, stands_aside };
enum class Verdict : std::uint32_t { open, together, natively };

// Both layouts stay as they are from version to version: that is how versions find out about each other.
struct Entry {
  std::atomic<Part> part;  // stored last (release); whoever acquires it may read the rest
  std::int32_t rank;       // in MPI_COMM_WORLD
  std::uint64_t build;
  char version[16];
};
struct Roster {
  std::atomic<std::uint32_t> arrived;  // entries given out
  std::atomic<Verdict> here;           // on this node's ranks; decided once, by whichever rank can
  std::atomic<Verdict> whole;          // on the job's
  std::uint32_t unused;

  Entry* entries() noexcept { return reinterpret_cast<Entry*>(this + 1); }
};
static_assert(sizeof(Entry) == 32 && sizeof(Roster) == 16 && std::atomic<Part>::is_always_lock_free);

// By what the launcher told the process its place. Variables of the other kind may be those of an outer job, inside
// which this one was started.
enum class Launcher { pmix, pmi };

// What a process knows of its node's roster.
struct Node {
  Launcher launcher = Launcher::pmix;
  Roster* roster =
      nullptr;  // null: a node of one rank, no shared memory, or a launcher that does not tell what is needed
  std::uint32_t ranks = 0;  // of the job on this node
  int rank = -1;            // this one's in MPI_COMM_WORLD
  std::uint64_t build = 0;  // of the flavour, by the linker's build id
  Entry* mine = nullptr;
  std::size_t bytes = 0;             // of the roster, and behind it the memory of out-of-band collectives
  std::byte* out_of_band = nullptr;  // null: too many ranks for it
  int file = -1;                     // open, and locked; behind `bytes` there is room for more
  FileIdentity file_identity;
  char path[64] = "";
};

// Of "2(x3)", as Slurm gives it, if all nodes have as many.
std::uint32_t tasks_of_each_node(const char* text) noexcept;

void announce(Node& node, Part part) noexcept;  // once; later calls say nothing
void remove_name(Node& node) noexcept;          // so that nothing stays behind
void close(Node& node) noexcept;

}  // namespace papaya::presence
