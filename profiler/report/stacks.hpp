// The call stacks of ranks in words, alike ones together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "profiler/read/read_stacks.hpp"

namespace papaya::report {

// A rank that was asked for its stacks.
struct AskedRank {
  RankStacks stacks;
  bool is_sent = false;  // the wish; else it could not be asked
  bool has_answered = false;
  bool is_stopped = false;  // its process is
};

struct StackGroup {
  std::string reason;              // why there is no stack; empty: there is one
  std::vector<std::string> lines;  // innermost function first
  bool is_first = true;            // of the processes' first threads
  auto operator<=>(const StackGroup&) const = default;
};

class StackGroups {
 public:
  // `name` finds out what is known of a frame.
  void add(AskedRank rank, const std::function<void(NamedFrame&)>& name);

  struct Of {
    StackGroup group;
    std::vector<RankRange> ranks;
    std::size_t count = 0;
  };
  // Those of few ranks first: what few do is what one looks for.
  std::vector<Of> sorted() const;
  std::string whole() const;  // a line for each function
  std::string brief() const;  // a line for each group of ranks

 private:
  std::string ranks_in_words() const;

  std::map<StackGroup, std::vector<std::int32_t>> groups_;
  std::map<std::int32_t, std::string> hosts_;  // by node
  std::int32_t nodes_of_job_ = 0;
};

}  // namespace papaya::report
