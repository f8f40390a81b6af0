#include "interpose/verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace papaya {

namespace {

std::vector<std::byte> packed(const Reduction& reduction, const void* buffer, std::size_t count) {
  std::vector<std::byte> bytes(count * reduction.element_bytes);
  if (reduction.pack != nullptr)
    reduction.pack(reduction, buffer, bytes.data(), count);
  else
    std::memcpy(bytes.data(), buffer, bytes.size());
  return bytes;
}

template <class T>
bool near(const std::byte* left, const std::byte* right, std::size_t bytes, T tolerance) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T a;
    T b;
    std::memcpy(&a, left + at, sizeof a);
    std::memcpy(&b, right + at, sizeof b);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b)))) return false;
  }
  return true;
}

// Pairs hold padding, which has no value to compare.
template <class Value, class Index>
bool same_pairs(const std::byte* left, const std::byte* right, std::size_t bytes) {
  struct Pair {
    Value value;
    Index index;
  };
  for (std::size_t at = 0; at + sizeof(Pair) <= bytes; at += sizeof(Pair)) {
    Pair a;
    Pair b;
    std::memcpy(&a, left + at, sizeof a);
    std::memcpy(&b, right + at, sizeof b);
    if (a.value != b.value || a.index != b.index) return false;
  }
  return true;
}

bool alike(MPI_Datatype type, const std::vector<std::byte>& left, const std::vector<std::byte>& right) {
  using kernels::ElementType;
  const std::byte* const a = left.data();
  const std::byte* const b = right.data();
  const std::size_t bytes = left.size();
  ElementType element{};
  if (element_type_of(type, element)) {
    switch (element) {
      case ElementType::f32:
      case ElementType::c32: return near<float>(a, b, bytes, 1e-4f);
      case ElementType::f64:
      case ElementType::c64: return near<double>(a, b, bytes, 1e-10);
      case ElementType::f80:
      case ElementType::c80: return near<long double>(a, b, bytes, 1e-10L);
      case ElementType::f64_int: return same_pairs<double, int>(a, b, bytes);
      case ElementType::long_int: return same_pairs<long, int>(a, b, bytes);
      case ElementType::short_int: return same_pairs<short, int>(a, b, bytes);
      case ElementType::f80_int: return same_pairs<long double, int>(a, b, bytes);
      default: break;
    }
  }
  return std::memcmp(a, b, bytes) == 0;
}

}  // namespace

Verification::Verification(const AllreduceArguments& arguments, MPI_Comm comm, const Reduction& reduction) noexcept
    : arguments_(arguments), reduction_(reduction) {
  const auto count = static_cast<std::size_t>(arguments.count);
  const void* const send = arguments.send == MPI_IN_PLACE ? arguments.receive : arguments.send;
  // In place on a buffer of the user's own layout: its copy spans from the lowest to the highest byte.
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Aint true_lower = 0;
  MPI_Aint true_extent = 0;
  PMPI_Type_get_extent(arguments.type, &lower, &extent);
  PMPI_Type_get_true_extent(arguments.type, &true_lower, &true_extent);
  const MPI_Aint last = extent * static_cast<MPI_Aint>(count - 1);
  const MPI_Aint lowest = true_lower + std::min<MPI_Aint>(last, 0);
  const auto span = static_cast<std::size_t>(true_extent + std::abs(last));
  std::vector<std::byte> result(span);
  std::byte* const origin = result.data() - lowest;
  std::memcpy(result.data(), static_cast<const std::byte*>(send) + lowest, span);
  done_ = PMPI_Allreduce(MPI_IN_PLACE, origin, static_cast<int>(count), arguments.type, arguments.op, comm) == MPI_SUCCESS;
  if (done_) expected_ = packed(reduction, origin, count);
}

void Verification::compare(const void* receive) noexcept {
  if (!done_) return;
  runtime().verified.fetch_add(1, std::memory_order_relaxed);
  const auto count = static_cast<std::size_t>(arguments_.count);
  if (!alike(arguments_.type, packed(reduction_, receive, count), expected_))
    runtime().verify_mismatches.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace papaya
