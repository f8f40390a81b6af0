// What the user asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace terasort {

enum class Command { sort, generate, validate };
enum class Mode { notified, alltoallv, single };

struct Options {
  Command command = Command::sort;
  Mode mode = Mode::notified;
  std::uint64_t records = 100'000;  // per rank, where they are generated
  bool is_ascii = false;
  double skew = 0;
  std::string input;   // empty: they are generated
  std::string output;  // empty: none
  std::string scratch = "/tmp";
  std::string json;
  std::string checksum;            // validate: what it has to be
  double late = 0;                 // seconds that rank 0 comes later to the shuffle
  std::uint64_t memory = 0;        // bytes of a rank; 0: a share of what is free
  std::size_t buffer = 256 << 10;  // bytes
  int slots = 0;                   // buffers of a pair of ranks that may be under way; 0: as memory suggests
  std::uint64_t samples = 1000;    // of each rank
  std::uint64_t run = 131072;      // records that are sorted at once while others arrive
  std::int64_t bins = -1;          // that records are put into by their keys; -1: as many as suit the mode
};

const char* name_of(Mode mode) noexcept;

// Nothing: the process ends with `code`; rank 0 says why.
std::optional<Options> parse(int argc, char** argv, int rank, int& code);

}  // namespace terasort
