// Writes this rank's file rank-NNNNN.papx (profiler/record/approx_format.hpp): what has become of the rules of
// PAPAYA_APPROX. Where nothing is recorded it counts all the same, in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/collective.hpp"
#include "profiler/record/approx_format.hpp"
#include "profiler/record/format.hpp"
#include "profiler/record/mapped_file.hpp"

namespace papaya {

class ApproxRecorder {
 public:
  ApproxRecorder() = default;
  ~ApproxRecorder() { close(); }
  ApproxRecorder(const ApproxRecorder&) = delete;
  ApproxRecorder& operator=(const ApproxRecorder&) = delete;

  // For so many rules. `path` is empty: in memory alone. `record`: of the rank's .pap.
  void open(const std::string& path, const trace::Header* record, std::size_t rules);
  void describe(std::size_t rule, Collective collective, std::string_view places, std::string_view bound) noexcept;
  void close() noexcept;

  // Any thread.
  void count_exact(std::size_t rule, std::string_view why) noexcept;
  // `staleness` in calls; negative: the result has no contribution.
  void count_approximate(std::size_t rule, std::int64_t staleness) noexcept;
  void count_error(std::size_t rule, double error) noexcept;

  std::uint64_t calls(std::size_t rule) const noexcept { return rows_[rule].calls; }

 private:
  trace::ApproxHeader* header_ = nullptr;  // of the file, if there is one
  trace::ApproxRow* rows_ = nullptr;
  MappedFile file_;
  std::unique_ptr<trace::ApproxRow[]> in_memory_;
};

}  // namespace papaya
