// Asks a process for the call stacks of its threads, through its record (trace::Stacks). The reader finds them there
// (profiler/read/read_stacks.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "profiler/record/format.hpp"

namespace papaya {

class StackRequest {
 public:
  // Of the process that writes this record, on this machine. Without effect if it does not answer.
  explicit StackRequest(const std::string& record);
  StackRequest(StackRequest&& other) noexcept;
  StackRequest& operator=(StackRequest&&) = delete;
  ~StackRequest();

  bool is_sent() const noexcept { return number_ != 0; }
  bool is_answered() const noexcept;
  // Whether the process is there and is not stopped.
  bool can_answer() const noexcept;

 private:
  std::string name_;  // of the record
  void* page_ = nullptr;
  std::size_t bytes_ = 0;
  trace::Stacks* stacks_ = nullptr;
  std::uint32_t number_ = 0;
  std::int64_t process_ = 0;
};

// Whether the process that writes this record, of this name, is one of this machine's that this user may look at; and
// whether it is that and stopped by a signal or a debugger.
bool is_near(std::int64_t process, const std::string& name) noexcept;
bool is_stopped(std::int64_t process, const std::string& name) noexcept;

}  // namespace papaya
