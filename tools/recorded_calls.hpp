// The blocking calls of a recorded run that all ranks of a communicator recorded, for what measures them again.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

#include "profiler/analysis/call_stream.hpp"
#include "profiler/analysis/matching.hpp"
#include "profiler/report/report.hpp"

namespace papaya {

class RecordedCalls {
 public:
  // Of one communicator.
  struct OnOne {
    std::uint64_t communicator = 0;
    std::string name;
    std::uint64_t calls = 0;
    std::size_t ranks = 0;
    Collective collective{};  // of the first
    // By the largest power of two that is no larger: the calls, and the largest of them.
    struct Size {
      std::uint64_t calls = 0;
      std::uint64_t largest_bytes = 0;
    };
    std::map<std::uint64_t, Size> sizes;
  };

  // `wanted` null: of all collectives. The run must outlive this.
  RecordedCalls(const report::Run& run, const Collective* wanted) : run_(run), clocks_(run), wanted_(wanted) {}

  // Of the communicators that are called so (by name or id), or of all, with so many ranks, or any number for 0: the
  // one with most calls. Without calls, if there is none.
  OnOne find(const std::string& communicator, std::size_t ranks) const;

  // A line for each call, or for each `every`th: when its ranks came, in microseconds after the first of them.
  void write(std::ostream& out, const OnOne& calls, std::uint64_t every = 1) const;

 private:
  template <class Body>
  void for_each(Body&& body) const;

  const report::Run& run_;
  const report::Clocks clocks_;
  const Collective* wanted_;
};

}  // namespace papaya
