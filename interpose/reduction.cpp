#include "interpose/reduction.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "interpose/inner_calls.hpp"
#include "interpose/scratch.hpp"

namespace papaya {

namespace {

using kernels::ElementType;
using kernels::Operation;

bool is_logical(Operation operation) noexcept {
  return operation == Operation::land || operation == Operation::lor || operation == Operation::lxor;
}

// Integers, whatever the operation: sums and products wrap around.
bool is_exact(ElementType element) noexcept {
  switch (element) {
    case ElementType::i8:
    case ElementType::i16:
    case ElementType::i32:
    case ElementType::i64:
    case ElementType::u8:
    case ElementType::u16:
    case ElementType::u32:
    case ElementType::u64:
    case ElementType::boolean:
    case ElementType::byte:
    case ElementType::logical:
      return true;
    default:
      return false;
  }
}

const ReductionContext& context_of(const Reduction& reduction) {
  return *static_cast<const ReductionContext*>(reduction.context);
}

// MPI_Reduce_local computes inout = in op inout; `in` holds the lower ranks.
void combine_contiguous(const Reduction& reduction, const void* left, const void* right, void* out, std::size_t count) {
  const ReductionContext& context = context_of(reduction);
  const std::size_t bytes = count * reduction.element_bytes;
  if (out == left) {
    // The result must stand where the left operand does: through a buffer.
    std::max_align_t few[64];
    std::vector<std::max_align_t> many(bytes > sizeof few ? bytes / sizeof(std::max_align_t) + 1 : 0);
    std::max_align_t* const scratch = many.empty() ? few : many.data();
    std::memcpy(scratch, right, bytes);
    oddities::must_succeed(PMPI_Reduce_local(left, scratch, static_cast<int>(count), context.type, context.op));
    std::memcpy(out, scratch, bytes);
    return;
  }
  if (out != right) std::memcpy(out, right, bytes);
  oddities::must_succeed(PMPI_Reduce_local(left, out, static_cast<int>(count), context.type, context.op));
}

// A user's operation sees its own datatype: packed operands are laid out by it, reduced and packed again,
// some elements at a time. The memory for it is kept for the next time.
constexpr std::size_t laid_out_bytes = std::size_t{1} << 20;
constexpr std::size_t most_kept = std::size_t{256} << 20;

void combine_laid_out(const Reduction& reduction, const void* left, const void* right, void* out, std::size_t count) {
  const ReductionContext& context = context_of(reduction);
  const auto one = static_cast<std::size_t>(context.true_extent);
  const auto step = static_cast<std::size_t>(context.extent < 0 ? -context.extent : context.extent);
  const std::size_t at_once =
      one >= laid_out_bytes || step == 0 ? 1 : std::min(count, 1 + (laid_out_bytes - one) / step);
  const std::size_t span = one + (at_once - 1) * step + sizeof(std::max_align_t);
  static thread_local Scratch storage;
  const std::size_t half = (span + 63) / 64 * 64;
  if (storage.bytes() < 2 * half) storage = Scratch(2 * half);
  if (storage.data() == nullptr) end_for_lack_of_memory(2 * half);
  for (std::size_t first = 0; first < count; first += at_once) {
    const std::size_t some = std::min(at_once, count - first);
    // Where element 0 begins, so that the lowest byte of all elements is the storage's first.
    const MPI_Aint origin =
        -context.true_lower_bound + (context.extent < 0 ? -context.extent * static_cast<MPI_Aint>(some - 1) : 0);
    std::byte* const a = storage.data() + origin;
    std::byte* const b = storage.data() + half + origin;
    const std::size_t offset = first * reduction.element_bytes;
    unpack(static_cast<const std::byte*>(left) + offset, a, some, context.type, reduction.element_bytes);
    unpack(static_cast<const std::byte*>(right) + offset, b, some, context.type, reduction.element_bytes);
    oddities::must_succeed(PMPI_Reduce_local(a, b, static_cast<int>(some), context.type, context.op));
    pack(b, some, context.type, reduction.element_bytes, static_cast<std::byte*>(out) + offset);
  }
  if (storage.bytes() > most_kept) storage = Scratch();
}

}  // namespace

bool operation_of(MPI_Op op, Operation& operation) noexcept {
  if (op == MPI_SUM) return operation = Operation::sum, true;
  if (op == MPI_MAX) return operation = Operation::max, true;
  if (op == MPI_MIN) return operation = Operation::min, true;
  if (op == MPI_PROD) return operation = Operation::prod, true;
  if (op == MPI_LAND) return operation = Operation::land, true;
  if (op == MPI_LOR) return operation = Operation::lor, true;
  if (op == MPI_LXOR) return operation = Operation::lxor, true;
  if (op == MPI_BAND) return operation = Operation::band, true;
  if (op == MPI_BOR) return operation = Operation::bor, true;
  if (op == MPI_BXOR) return operation = Operation::bxor, true;
  if (op == MPI_MINLOC) return operation = Operation::minloc, true;
  if (op == MPI_MAXLOC) return operation = Operation::maxloc, true;
  return false;
}

bool is_plausible_operation(MPI_Op op) noexcept {
#if defined(MPICH)
  return ((static_cast<unsigned>(op) >> 26) & 0xf) == 0x6 && (static_cast<unsigned>(op) >> 30) != 0;
#else
  return op != MPI_OP_NULL;
#endif
}

bool describe(MPI_Datatype type, MPI_Op op, Reduction& reduction, ReductionContext& context) noexcept {
  if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP) return false;
  Operation operation{};
  const bool predefined_op = operation_of(op, operation);
  const TypeRow* const row = find_row(type);
  if (row != nullptr) {
    if (predefined_op) {
      reduction.element_bytes = row->bytes;
      if (row->fortran_integer && is_logical(operation)) return false;
      reduction.combine = kernels::find(row->element, operation);
      reduction.by_table = true;
      reduction.exact = is_exact(row->element);
      return reduction.combine != nullptr;
    }
  } else if (predefined_op) {
    // A Fortran type of an unusual kind, or an error: MPI knows which.
    return false;
  }
  // A user's operation takes any type that has the same signature: what counts is packed.
  if (!is_plausible_operation(op) || !is_committed(type)) return false;
  const std::int64_t bytes = element_bytes_of(type);
  if (bytes <= 0) return false;
  int commutative = 0;
  if (PMPI_Op_commutative(op, &commutative) != MPI_SUCCESS) return false;
  reduction.commutative = commutative != 0;
  reduction.element_bytes = static_cast<std::size_t>(bytes);
  context.type = type;
  context.op = op;
  reduction.context = &context;
  if (is_dense(type)) {
    reduction.combine = combine_contiguous;
    return true;
  }
  MPI_Aint lower = 0;
  if (PMPI_Type_get_extent(type, &lower, &context.extent) != MPI_SUCCESS ||
      PMPI_Type_get_true_extent(type, &context.true_lower_bound, &context.true_extent) != MPI_SUCCESS)
    return false;
  reduction.combine = combine_laid_out;
  return true;
}

}  // namespace papaya
