#include "profiler/read/read_totals.hpp"

#include <cstdint>
#include <cstring>

namespace papaya::report {

trace::Totals totals_of(const TotalsShape& shape, const std::byte* totals) {
  trace::Totals today{};
  const std::size_t one = shape.forms * sizeof today.by_size[0][0];
  for (std::size_t c = 0; c < shape.collectives; ++c) std::memcpy(today.by_size[c], totals + c * one, one);
  std::memcpy(today.native_calls_by_reason, totals + shape.by_size_bytes(), shape.reasons_bytes());
  std::memcpy(today.native_nonblocking_by_reason, totals + shape.by_size_bytes() + shape.reasons_bytes(),
              shape.reasons_bytes());
  return today;
}

std::vector<trace::Algorithm> algorithms_of(const TotalsShape& shape, const std::byte* table, std::size_t rows) {
  std::vector<trace::Algorithm> today(rows);
  for (std::size_t a = 0; a < rows; ++a, table += shape.algorithm_bytes()) {
    std::memcpy(today[a].name, table, trace::name_bytes);
    std::memcpy(today[a].calls, table + trace::name_bytes, shape.counts_bytes());
    std::memcpy(today[a].nonblocking, table + trace::name_bytes + shape.counts_bytes(), shape.counts_bytes());
  }
  return today;
}

std::vector<AlgorithmCalls> calls_of(std::span<const trace::Algorithm> algorithms) {
  std::vector<AlgorithmCalls> all;
  const auto add = [&](std::size_t number, Form form, std::span<const std::uint64_t> calls) {
    for (std::size_t c = 0; c < calls.size(); ++c)
      if (calls[c] > 0)
        all.push_back({static_cast<std::uint32_t>(number), static_cast<std::uint8_t>(c), form, calls[c]});
  };
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    add(a, Form::blocking, algorithms[a].calls);
    add(a, Form::nonblocking, algorithms[a].nonblocking);
  }
  all.shrink_to_fit();
  return all;
}

}  // namespace papaya::report
