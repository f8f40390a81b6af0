// What an algorithm needs to know of a reduction: how many bytes an element has and how two operands are
// combined. Algorithms see contiguous elements only and know no MPI; interpose builds a Reduction from MPI's
// type and operation and packs what is not contiguous.
#pragma once

#include <cstddef>

namespace papaya {

class Reduction {
 public:
  // out = left op right, element by element, `count` elements. `out` may be `left` or `right`. The operands
  // keep their order: left holds the lower ranks.
  using Combine = void (*)(const Reduction&, const void* left, const void* right, void* out, std::size_t count);

  std::size_t element_bytes = 0;
  bool commutative = true;
  bool by_table = false;  // the combine function is a kernel: cheap, and alike on all ranks
  bool exact = false;     // the same bits in whatever order operands are combined
  Combine combine = nullptr;
  const void* context = nullptr;  // of combine
};

}  // namespace papaya
