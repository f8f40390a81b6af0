#include "interpose/verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "interpose/staging.hpp"

namespace papaya {

namespace {

std::vector<std::byte> contiguous(const Arguments& a, const Reduction& reduction, const void* buffer,
                                  std::size_t elements, MPI_Comm comm) {
  // A kernel's elements are compared as they lie in memory, padding left out below.
  const auto element =
      reduction.by_table ? reduction.element_bytes : static_cast<std::size_t>(type_bytes_of(a.type));
  std::vector<std::byte> bytes(elements * element);
  if (reduction.by_table)
    std::memcpy(bytes.data(), buffer, bytes.size());
  else
    pack(buffer, elements, a.type, element, bytes.data(), comm);
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
      case ElementType::c32:
        return near<float>(a, b, bytes, 1e-4f);
      case ElementType::f64:
      case ElementType::c64:
        return near<double>(a, b, bytes, 1e-10);
      case ElementType::f80:
      case ElementType::c80:
        return near<long double>(a, b, bytes, 1e-10L);
      case ElementType::f64_int:
        return same_pairs<double, int>(a, b, bytes);
      case ElementType::long_int:
        return same_pairs<long, int>(a, b, bytes);
      case ElementType::short_int:
        return same_pairs<short, int>(a, b, bytes);
      case ElementType::f80_int:
        return same_pairs<long double, int>(a, b, bytes);
      default:
        break;
    }
  }
  return std::memcmp(a, b, bytes) == 0;
}

}  // namespace

Verification::Verification(const Arguments& a, const Communicator& state, const Reduction& reduction) noexcept
    : arguments_(a), reduction_(reduction), comm_(state.handle) {
  const bool is_root = state.rank == a.root;
  const auto count = static_cast<std::size_t>(a.count);
  const auto n = static_cast<int>(a.count);
  if (a.collective == Collective::barrier) return;
  if (a.collective == Collective::reduce && !is_root) {
    PMPI_Reduce(a.send, nullptr, n, a.type, a.op, a.root, comm_);
    return;
  }
  const bool blocks = a.collective == Collective::allgather || a.collective == Collective::alltoall;
  elements_ = blocks ? count * static_cast<std::size_t>(state.size) : count;
  // The receive buffer's copy, from its lowest to its highest byte: in place it holds the operands.
  const Span span = span_of(a.type, elements_);
  std::vector<std::byte> image(span.bytes);
  std::memcpy(image.data(), static_cast<const std::byte*>(a.receive) + span.lowest, span.bytes);
  std::byte* const copy = image.data() - span.lowest;
  // In place, the operands are still where the result will be: native MPI gets them as send buffer. (MPICH 4.0.2 crashes in
  // MPI_Reduce in place of more than 64 KiB with a root that is not 0.)
  const void* const send = a.send == MPI_IN_PLACE ? a.receive : a.send;
  int code = MPI_SUCCESS;
  switch (a.collective) {
    case Collective::bcast:
      code = PMPI_Bcast(copy, n, a.type, a.root, comm_);
      break;
    case Collective::reduce:
      code = PMPI_Reduce(send, copy, n, a.type, a.op, a.root, comm_);
      break;
    case Collective::allgather:
      code = PMPI_Allgather(a.send, static_cast<int>(a.send_count), a.send_type, copy, n, a.type, comm_);
      break;
    case Collective::alltoall:
      code = PMPI_Alltoall(a.send, static_cast<int>(a.send_count), a.send_type, copy, n, a.type, comm_);
      break;
    default:
      code = PMPI_Allreduce(send, copy, n, a.type, a.op, comm_);
  }
  done_ = code == MPI_SUCCESS;
  if (done_) expected_ = contiguous(a, reduction, copy, elements_, comm_);
}

void Verification::compare() noexcept {
  if (!done_) return;
  runtime().verified.fetch_add(1, std::memory_order_relaxed);
  const std::vector<std::byte> ours =
      contiguous(arguments_, reduction_, arguments_.receive, elements_, comm_);
  const bool same =
      reduction_.combine != nullptr ? alike(arguments_.type, ours, expected_) : ours == expected_;
  if (!same) runtime().verify_mismatches.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace papaya
