// What the system did for this process: processor time, waits for a core, page faults, memory. Asked at the beginning
// and at the end, so that it costs a call of the program nothing.
#pragma once

#include "profiler/record/format.hpp"

namespace papaya {

class UsageMeter {
 public:
  void start() noexcept;
  // Since start().
  trace::Usage so_far() const noexcept;

 private:
  trace::Usage begin_{};  // wall_ns: the clock
};

}  // namespace papaya
