// What an algorithm needs to know of a reduction: how many bytes an element has when packed, how two operands are
// combined, and how a buffer that is not contiguous is packed. Algorithms see packed elements only and know no MPI;
// interpose builds a Reduction from MPI's type and operation.
#pragma once

#include <cstddef>

namespace papaya {

class Reduction {
 public:
  // out = left op right, element by element, `count` packed elements. `out` may be `left` or `right`. The operands
  // keep their order: left holds the lower ranks.
  using Combine = void (*)(const Reduction&, const void* left, const void* right, void* out, std::size_t count);
  using Pack = void (*)(const Reduction&, const void* buffer, void* packed, std::size_t count);
  using Unpack = void (*)(const Reduction&, const void* packed, void* buffer, std::size_t count);

  std::size_t element_bytes = 0;
  bool commutative = true;
  bool by_table = false;  // the combine function is a kernel: cheap, and alike on all ranks
  Combine combine = nullptr;
  Pack pack = nullptr;      // nullptr: contiguous, copied as it is
  Unpack unpack = nullptr;  // set together with pack
  const void* context = nullptr;  // of the functions above
};

}  // namespace papaya
