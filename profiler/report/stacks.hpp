// The call stacks of a node's ranks in words, alike ones together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profiler/read/read_stacks.hpp"

namespace papaya::report {

// A rank that was asked for its stacks.
struct AskedRank {
  RankStacks stacks;
  bool has_answered = false;
  bool is_stopped = false;  // its process is
};

struct StackTexts {
  std::string whole;  // a line for each function
  std::string brief;  // a line for each group of ranks
};

// `name` finds out what is known of a frame.
StackTexts stack_texts(std::vector<AskedRank> ranks, const std::function<void(NamedFrame&)>& name);

}  // namespace papaya::report
