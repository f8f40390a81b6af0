// The totals and the table of algorithms of a record. They have as many rows as its papaya knew collectives and forms
// of calls, which its header tells; here they get those of today, the further ones empty.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "profiler/read/read.hpp"
#include "profiler/record/format.hpp"

namespace papaya::report {

struct TotalsShape {
  std::size_t collectives;
  std::size_t forms;

  explicit TotalsShape(const trace::Header& header)
      : collectives(header.collectives == 0 ? trace::first_collectives : header.collectives),
        forms(header.forms == 0 ? trace::first_forms : header.forms) {}
  bool is_known() const { return collectives <= collective_count && forms <= form_count; }
  std::size_t reasons_bytes() const { return collectives * sizeof(trace::Totals::native_calls_by_reason[0]); }
  std::size_t by_size_bytes() const { return collectives * forms * sizeof(trace::Totals::by_size[0][0]); }
  std::size_t totals_bytes() const { return by_size_bytes() + 2 * reasons_bytes(); }
  std::size_t counts_bytes() const { return collectives * sizeof(trace::Algorithm::calls[0]); }
  std::size_t algorithm_bytes() const { return trace::name_bytes + 2 * counts_bytes(); }
};

// From `totals_bytes` bytes.
trace::Totals totals_of(const TotalsShape& shape, const std::byte* totals);
// From `algorithm_bytes` for each of `rows`.
std::vector<trace::Algorithm> algorithms_of(const TotalsShape& shape, const std::byte* table, std::size_t rows);
// Its counts that are not zero.
std::vector<AlgorithmCalls> calls_of(std::span<const trace::Algorithm> algorithms);

}  // namespace papaya::report
