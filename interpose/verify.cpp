#include "interpose/verify.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "interpose/attention.hpp"
#include "interpose/oddities.hpp"
#include "interpose/staging.hpp"

namespace papaya {

namespace {

using kernels::ElementType;

// The elements as they are compared: a kernel's as they lie in memory, others packed.
std::vector<std::byte> contiguous(const Arguments& a, const Reduction& reduction, const void* buffer,
                                  std::size_t elements, bool on_device) {
  const std::size_t element =
      reduction.by_table ? reduction.element_bytes : static_cast<std::size_t>(element_bytes_of(a.type));
  const Staging staged(buffer, elements, a.type, element, Staging::Use::read, on_device);
  if (staged.lacks() != 0) end_for_lack_of_memory(staged.lacks());
  return {staged.bytes(), staged.bytes() + elements * element};
}

// The blocks of one side of an alltoallv, one after the other.
struct Packed {
  std::vector<std::byte> bytes;
  std::vector<int> counts;
  std::vector<int> displacements;
};
constexpr std::size_t most_packed = std::numeric_limits<int>::max();

Packed packed(const void* buffer, const Lists& lists, MPI_Datatype type, int ranks, bool on_device) {
  Packed all;
  const auto element = static_cast<std::size_t>(element_bytes_of(type));
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto count = static_cast<std::size_t>(lists.count(rank));
    const std::size_t bytes = count * element;
    all.displacements.push_back(static_cast<int>(all.bytes.size()));
    all.counts.push_back(static_cast<int>(bytes));
    if (bytes == 0) continue;
    // By integers: MPI_BOTTOM is a null pointer.
    const auto at = reinterpret_cast<std::intptr_t>(buffer) + lists.displacement(rank) * extent;
    const Staging staged(reinterpret_cast<const void*>(at), count, type, element, Staging::Use::read, on_device);
    if (staged.lacks() != 0) end_for_lack_of_memory(staged.lacks());
    all.bytes.insert(all.bytes.end(), staged.bytes(), staged.bytes() + bytes);
  }
  return all;
}

// The one predefined type that a type is made of; false if there are several, or one that no kernel knows.
bool basic_type_of(MPI_Datatype type, ElementType& basic) {
  if (element_type_of(type, basic)) return true;
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
      combiner == MPI_COMBINER_NAMED || types == 0)
    return false;
  std::vector<int> some_integers(static_cast<std::size_t>(integers) + 1);
  std::vector<MPI_Aint> some_addresses(static_cast<std::size_t>(addresses) + 1);
  std::vector<MPI_Datatype> parts(static_cast<std::size_t>(types));
  if (PMPI_Type_get_contents(type, integers, addresses, types, some_integers.data(), some_addresses.data(),
                             parts.data()) != MPI_SUCCESS)
    return false;
  bool one = true;
  bool first = true;
  for (MPI_Datatype& part : parts) {
    ElementType mine{};
    one = one && basic_type_of(part, mine) && (first || mine == basic);
    basic = mine;
    first = false;
    release_part(part);
  }
  return one;
}

template <class T>
double largest_of(const std::byte* bytes, std::size_t size) {
  double largest = 0;
  for (std::size_t at = 0; at + sizeof(T) <= size; at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes + at, sizeof value);
    if (std::isfinite(value)) largest = std::max(largest, static_cast<double>(std::abs(value)));
  }
  return largest;
}

double largest_of(ElementType type, const std::vector<std::byte>& bytes) {
  switch (type) {
    case ElementType::f32:
    case ElementType::c32:
      return largest_of<float>(bytes.data(), bytes.size());
    case ElementType::f64:
    case ElementType::c64:
      return largest_of<double>(bytes.data(), bytes.size());
    case ElementType::f80:
    case ElementType::c80:
      return largest_of<long double>(bytes.data(), bytes.size());
    default:
      return 0;
  }
}

// `values` of them make one number: 2 for complex ones, whose parts may cancel out.
template <class T>
bool near(const std::byte* left, const std::byte* right, std::size_t bytes, T tolerance, int values, double magnitude) {
  const std::size_t unit = sizeof(T) * static_cast<std::size_t>(values);
  for (std::size_t at = 0; at + unit <= bytes; at += unit) {
    T size = static_cast<T>(magnitude);
    T difference = 0;
    for (int part = 0; part < values; ++part) {
      T a;
      T b;
      std::memcpy(&a, left + at + static_cast<std::size_t>(part) * sizeof(T), sizeof a);
      std::memcpy(&b, right + at + static_cast<std::size_t>(part) * sizeof(T), sizeof b);
      size = std::max({size, std::abs(a), std::abs(b)});
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      difference = std::max(difference, std::abs(a - b));
      if (std::isnan(a - b)) return false;
    }
    if (!(difference <= tolerance * size)) return false;
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

bool alike(ElementType element, double magnitude, const std::vector<std::byte>& left,
           const std::vector<std::byte>& right) {
  const std::byte* const a = left.data();
  const std::byte* const b = right.data();
  const std::size_t bytes = left.size();
  switch (element) {
    case ElementType::f32:
      return near<float>(a, b, bytes, 1e-4f, 1, magnitude);
    case ElementType::c32:
      return near<float>(a, b, bytes, 1e-4f, 2, magnitude);
    case ElementType::f64:
      return near<double>(a, b, bytes, 1e-10, 1, magnitude);
    case ElementType::c64:
      return near<double>(a, b, bytes, 1e-10, 2, magnitude);
    case ElementType::f80:
      return near<long double>(a, b, bytes, 1e-10L, 1, magnitude);
    case ElementType::c80:
      return near<long double>(a, b, bytes, 1e-10L, 2, magnitude);
    case ElementType::f64_int:
      return same_pairs<double, int>(a, b, bytes);
    case ElementType::long_int:
      return same_pairs<long, int>(a, b, bytes);
    case ElementType::short_int:
      return same_pairs<short, int>(a, b, bytes);
    case ElementType::f80_int:
      return same_pairs<long double, int>(a, b, bytes);
    default:
      return std::memcmp(a, b, bytes) == 0;
  }
}

}  // namespace

Verification::Verification(const Arguments& a, const Communicator& state, const Reduction& reduction,
                           bool on_device) noexcept
    : arguments_(a), reduction_(reduction), on_device_(on_device), ranks_(state.size) {
  if (a.collective == Collective::barrier) return;
  const nonblocking::InsideMpi inside_mpi;
  if (a.collective == Collective::alltoallv) {
    exchange_blocks(state);
    return;
  }
  const bool is_root = state.rank == a.root;
  const auto count = static_cast<std::size_t>(a.count);
  const auto n = static_cast<int>(a.count);
  // In place, the operands are still where the result will be: native MPI gets them as send buffer. (MPICH 4.0.2
  // crashes in MPI_Reduce in place of more than 64 KiB with a root that is not 0.)
  const void* const send = reduces(a.collective) && a.send == MPI_IN_PLACE ? a.receive : a.send;
  if (ElementType element{}; reduces(a.collective) && a.op != MPI_PROD && basic_type_of(a.type, element)) {
    const double mine = largest_of(element, contiguous(a, reduction, send, count, on_device)) * state.size;
    // Who may leave a reduce early compares nothing, and must not wait here either.
    if (a.collective == Collective::reduce)
      PMPI_Reduce(&mine, &magnitude_, 1, MPI_DOUBLE, MPI_MAX, a.root, state.handle);
    else
      PMPI_Allreduce(&mine, &magnitude_, 1, MPI_DOUBLE, MPI_MAX, state.handle);
  }
  if (a.collective == Collective::reduce && !is_root) {
    PMPI_Reduce(send, nullptr, n, a.type, a.op, a.root, state.handle);
    return;
  }
  const bool blocks = a.collective == Collective::allgather || a.collective == Collective::alltoall;
  elements_ = blocks ? count * static_cast<std::size_t>(state.size) : count;
  // A buffer like the receive buffer, for the native result. Holes are neither read nor compared: they need not be
  // memory.
  const Span span = span_of(a.type, elements_);
  const Scratch image(span.bytes);
  if (image.data() == nullptr) end_for_lack_of_memory(span.bytes);
  std::byte* const copy = image.data() - span.lowest;
  const bool holds_operands =
      !reduces(a.collective) && (a.send == MPI_IN_PLACE || (a.collective == Collective::bcast && is_root));
  const auto element = static_cast<std::size_t>(element_bytes_of(a.type));
  if (holds_operands)
    unpack(contiguous(a, reduction, a.receive, elements_, on_device).data(), copy, elements_, a.type, element);
  int code = MPI_SUCCESS;
  switch (a.collective) {
    case Collective::bcast:
      code = PMPI_Bcast(copy, n, a.type, a.root, state.handle);
      break;
    case Collective::reduce:
      code = PMPI_Reduce(send, copy, n, a.type, a.op, a.root, state.handle);
      break;
    case Collective::allgather:
      code = PMPI_Allgather(a.send, static_cast<int>(a.send_count), a.send_type, copy, n, a.type, state.handle);
      break;
    case Collective::alltoall:
      code = PMPI_Alltoall(a.send, static_cast<int>(a.send_count), a.send_type, copy, n, a.type, state.handle);
      break;
    default:
      code = PMPI_Allreduce(send, copy, n, a.type, a.op, state.handle);
  }
  done_ = code == MPI_SUCCESS;
  if (done_) expected_ = contiguous(a, reduction, copy, elements_, false);
}

// Packed on both sides, since blocks may lie anywhere in memory.
void Verification::exchange_blocks(const Communicator& state) noexcept {
  const Arguments& a = arguments_;
  const bool in_place = a.send == MPI_IN_PLACE;
  Packed received = packed(a.receive, a.lists, a.type, ranks_, on_device_);
  const Packed sent = in_place ? received : packed(a.send, a.send_lists, a.send_type, ranks_, on_device_);
  // MPI's own function counts these bytes in int; sizes are each rank's own.
  int fits = sent.bytes.size() <= most_packed && received.bytes.size() <= most_packed ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, state.handle);
  if (!fits) return;
  done_ =
      PMPI_Alltoallv(sent.bytes.data(), sent.counts.data(), sent.displacements.data(), MPI_BYTE, received.bytes.data(),
                     received.counts.data(), received.displacements.data(), MPI_BYTE, state.handle) == MPI_SUCCESS;
  expected_ = std::move(received.bytes);
}

void Verification::compare() noexcept {
  if (!done_) return;
  const std::vector<std::byte> ours =
      arguments_.collective == Collective::alltoallv
          ? packed(arguments_.receive, arguments_.lists, arguments_.type, ranks_, on_device_).bytes
          : contiguous(arguments_, reduction_, arguments_.receive, elements_, on_device_);
  bool same = ours == expected_;
  if (!same && reduces(arguments_.collective)) {
    // Rounding apart. What a user's operation does with several types is not known.
    ElementType element{};
    if (!basic_type_of(arguments_.type, element)) return;
    same = alike(element, magnitude_, ours, expected_);
  }
  oddities::verified.fetch_add(1, std::memory_order_relaxed);
  if (!same) oddities::mismatches.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace papaya
