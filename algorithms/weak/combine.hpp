// Many operands combined into one, in one pass over memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "algorithms/datatype.hpp"

namespace papaya {

// out = operands[0] op operands[1] op ..., `bytes` of whole elements; `out` is none of them. Of all operands so much at
// a time that the result stays in the first-level cache: each operand is read once, and the result is written once.
inline void combine_all(const Reduction& reduction, std::span<const std::byte* const> operands, std::byte* out,
                        std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (operands.size() == 1) {
    std::memcpy(out, operands[0], bytes);
    return;
  }
  constexpr std::size_t piece_bytes = 16 << 10;
  const std::size_t piece = std::max<std::size_t>(piece_bytes / reduction.element_bytes, 1) * reduction.element_bytes;
  for (std::size_t at = 0; at < bytes; at += piece) {
    const std::size_t count = std::min(piece, bytes - at) / reduction.element_bytes;
    reduction.combine(reduction, operands[0] + at, operands[1] + at, out + at, count);
    for (std::size_t i = 2; i < operands.size(); ++i)
      reduction.combine(reduction, out + at, operands[i] + at, out + at, count);
  }
}

}  // namespace papaya
