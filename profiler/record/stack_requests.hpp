// Asks the ranks of a job for their call stacks: those of this machine through their records; and those of other nodes
// by a file in the folder of the run, for which each node's watch looks (StackWishes). The file is taken away again,
// by who has put it there.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/record/stack_request.hpp"

namespace papaya {

class StackRequests {
 public:
  explicit StackRequests(std::string folder) : folder_(std::move(folder)) {}
  StackRequests(const StackRequests&) = delete;
  StackRequests& operator=(const StackRequests&) = delete;
  ~StackRequests();

  // A rank is known by how many were added before it. One of this machine is asked at once.
  void add_near(const std::string& record) { ranks_.push_back({StackRequest(record), {}}); }
  // False, and nothing is added, if there is no such record here.
  bool add_far(const std::string& record);
  // Asks those of other nodes, whose watches then also write out what their ranks have recorded.
  void send();

  // Whether all have answered, or have had the time to: `waited` since send().
  bool are_over(std::chrono::milliseconds waited);
  bool is_sent(std::size_t rank) const noexcept;
  bool is_answered(std::size_t rank) const noexcept;

 private:
  // A record that another node writes. A mapping of it need not show what is written there.
  struct Far {
    std::string record;
    std::uint64_t stacks_offset = 0;
    std::uint32_t before = 0;  // its number of answers
    bool answers = false;
    bool is_answered = false;
  };
  struct Rank {
    std::optional<StackRequest> near;
    Far far;
  };
  bool look_again(Far& far) const;

  std::string folder_;
  std::vector<Rank> ranks_;
  bool is_sent_ = false;  // to other nodes, by this file:
  struct stat file_ {};
  std::chrono::milliseconds next_look_{0};
};

// Whether somebody has asked in this way for the stacks of all nodes.
class StackWishes {
 public:
  // True once for each wish. `folder`: open. Costs one look at the folder as long as nothing changes in it.
  bool is_new(int folder) noexcept;

 private:
  bool is_new_in(int folder) noexcept;

  struct stat folder_ {};
  struct stat file_ {};
  bool has_changed_ = true;
};

}  // namespace papaya
