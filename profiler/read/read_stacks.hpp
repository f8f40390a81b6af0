// The call stacks that a running process has left in its record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/read/frames.hpp"

namespace papaya::report {

struct Stack {
  bool is_first = false;  // of the process's first thread
  trace::StackState state = trace::StackState::taken;
  std::vector<NamedFrame> frames;  // innermost first
};

struct RankStacks {
  std::int32_t rank = -1;
  std::int32_t node = 0;
  std::int32_t nodes = 0;  // of the job
  std::string host;
  std::int64_t process = 0;
  bool has_ended = false;  // it has come to MPI_Finalize or MPI_Abort
  bool answers = false;
  std::int64_t taken_unix_ns = 0;  // when the stacks were, on its node's clock; 0: never
  std::vector<Stack> threads;
};

// What is in the file now; without threads where it has none, or is not this version's.
RankStacks read_stacks(const std::string& path);

}  // namespace papaya::report
