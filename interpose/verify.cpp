#include "interpose/verify.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "interpose/attention.hpp"
#include "interpose/blocks.hpp"
#include "interpose/oddities.hpp"
#include "interpose/results.hpp"
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

// The blocks of an allgatherv, or of one side of an alltoallv, one after the other.
struct Packed {
  std::vector<std::byte> bytes;
  std::vector<int> counts;
  std::vector<int> displacements;
};

// MPI's own function for the call, from `send` to `receive`.
int call_mpi(const Arguments& a, const Communicator& state, const void* send, void* receive) {
  const auto count = static_cast<int>(a.count);
  const auto sent = static_cast<int>(a.send_count);
  switch (a.collective) {
    case Collective::bcast:
      return PMPI_Bcast(receive, count, a.type, a.root, state.handle);
    case Collective::reduce:
      return PMPI_Reduce(send, receive, count, a.type, a.op, a.root, state.handle);
    case Collective::gather:
      return PMPI_Gather(send, sent, a.send_type, receive, count, a.type, a.root, state.handle);
    case Collective::scatter:
      return PMPI_Scatter(send, sent, a.send_type, receive, count, a.type, a.root, state.handle);
    case Collective::allgather:
      return PMPI_Allgather(send, sent, a.send_type, receive, count, a.type, state.handle);
    case Collective::alltoall:
      return PMPI_Alltoall(send, sent, a.send_type, receive, count, a.type, state.handle);
    case Collective::reduce_scatter: {
      std::vector<int> counts;
      for (int rank = 0; rank < state.size; ++rank) counts.push_back(static_cast<int>(a.lists.count(rank)));
      return PMPI_Reduce_scatter(send, receive, counts.data(), a.type, a.op, state.handle);
    }
    case Collective::reduce_scatter_block:
      return PMPI_Reduce_scatter_block(send, receive, count, a.type, a.op, state.handle);
    default:
      return PMPI_Allreduce(send, receive, count, a.type, a.op, state.handle);
  }
}

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

Packed packed_block(const void* buffer, MPI_Count count, MPI_Datatype type, bool on_device) {
  const auto elements = static_cast<std::size_t>(count);
  const auto element = static_cast<std::size_t>(element_bytes_of(type));
  const Staging staged(buffer, elements, type, element, Staging::Use::read, on_device && elements > 0);
  if (staged.lacks() != 0) end_for_lack_of_memory(staged.lacks());
  const std::size_t bytes = elements * element;
  return {{staged.bytes(), staged.bytes() + bytes}, {static_cast<int>(bytes)}, {0}};
}

constexpr bool has_lists(Collective collective) {
  return collective == Collective::alltoallv || collective == Collective::allgatherv;
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

}  // namespace

Verification::Verification(const Arguments& a, const Communicator& state, const Reduction& reduction,
                           bool on_device) noexcept
    : arguments_(a), reduction_(reduction), on_device_(on_device), ranks_(state.size) {
  if (a.collective == Collective::barrier) return;
  const nonblocking::InsideMpi inside_mpi;
  if (has_lists(a.collective)) {
    exchange_blocks(state);
    return;
  }
  const bool is_root = state.rank == a.root;
  const auto count = static_cast<std::size_t>(a.count);
  // In place, the operands are still where the result will be: native MPI gets them as send buffer. (MPICH 4.0.2
  // crashes in MPI_Reduce in place of more than 64 KiB with a root that is not 0.)
  const void* const send = reduces(a.collective) && a.send == MPI_IN_PLACE ? a.receive : a.send;
  const std::size_t sent = scatters_result(a.collective) ? operand_elements(state, a) : count;
  if (ElementType element{}; reduces(a.collective) && a.op != MPI_PROD && basic_type_of(a.type, element)) {
    const double mine = results::largest(element, contiguous(a, reduction, send, sent, on_device)) * state.size;
    // Who may leave a reduce early compares nothing, and must not wait here either.
    if (a.collective == Collective::reduce)
      PMPI_Reduce(&mine, &magnitude_, 1, MPI_DOUBLE, MPI_MAX, a.root, state.handle);
    else
      PMPI_Allreduce(&mine, &magnitude_, 1, MPI_DOUBLE, MPI_MAX, state.handle);
  }
  // Ranks that get no result.
  if (root_waits(a.collective) && !is_root) {
    call_mpi(a, state, send, nullptr);
    return;
  }
  if (a.collective == Collective::scatter && a.receive == MPI_IN_PLACE) {
    call_mpi(a, state, send, MPI_IN_PLACE);
    return;
  }
  const bool blocks = a.collective == Collective::allgather || a.collective == Collective::alltoall ||
                      a.collective == Collective::gather;
  elements_ = blocks                          ? count * static_cast<std::size_t>(state.size)
              : scatters_result(a.collective) ? result_elements(state, a)
                                              : count;
  // A buffer like the receive buffer, for the native result. Holes are neither read nor compared: they need not be
  // memory.
  const Span span = span_of(a.type, elements_);
  const Scratch image(std::max<std::size_t>(span.bytes, 1));
  if (image.data() == nullptr) end_for_lack_of_memory(span.bytes);
  std::byte* const copy = image.data() - span.lowest;
  const bool holds_operands =
      !reduces(a.collective) && (a.send == MPI_IN_PLACE || (a.collective == Collective::bcast && is_root));
  const auto element = static_cast<std::size_t>(element_bytes_of(a.type));
  if (holds_operands)
    unpack(contiguous(a, reduction, a.receive, elements_, on_device).data(), copy, elements_, a.type, element);
  done_ = call_mpi(a, state, send, copy) == MPI_SUCCESS;
  if (done_) expected_ = contiguous(a, reduction, copy, elements_, false);
}

// Packed on both sides, since blocks may lie anywhere in memory.
void Verification::exchange_blocks(const Communicator& state) noexcept {
  const Arguments& a = arguments_;
  const bool in_place = a.send == MPI_IN_PLACE;
  const bool gathers = a.collective == Collective::allgatherv;
  Packed received = packed(a.receive, a.lists, a.type, ranks_, on_device_);
  Packed sent;
  if (in_place)
    sent = received;
  else if (gathers)
    sent = packed_block(a.send, a.send_count, a.send_type, on_device_);
  else
    sent = packed(a.send, a.send_lists, a.send_type, ranks_, on_device_);
  // MPI's own function counts these bytes in int; sizes are each rank's own.
  int fits = sent.bytes.size() <= most_packed && received.bytes.size() <= most_packed ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, state.handle);
  if (!fits) return;
  const auto own = static_cast<std::size_t>(in_place ? state.rank : 0);
  const int code = gathers ? PMPI_Allgatherv(sent.bytes.data() + sent.displacements[own], sent.counts[own], MPI_BYTE,
                                             received.bytes.data(), received.counts.data(),
                                             received.displacements.data(), MPI_BYTE, state.handle)
                           : PMPI_Alltoallv(sent.bytes.data(), sent.counts.data(), sent.displacements.data(), MPI_BYTE,
                                            received.bytes.data(), received.counts.data(),
                                            received.displacements.data(), MPI_BYTE, state.handle);
  done_ = code == MPI_SUCCESS;
  expected_ = std::move(received.bytes);
}

std::optional<verdicts::Found> Verification::compare() noexcept {
  if (!done_) return std::nullopt;
  const Arguments& a = arguments_;
  const std::vector<std::byte> ours = has_lists(a.collective)
                                          ? packed(a.receive, a.lists, a.type, ranks_, on_device_).bytes
                                          : contiguous(a, reduction_, a.receive, elements_, on_device_);
  ElementType element{};
  // What is not a kernel's is packed, pairs without their padding.
  const bool is_basic = basic_type_of(a.type, element) && (reduction_.by_table || !results::has_padding(element));
  std::optional<std::size_t> place = results::first_difference(ours, expected_);
  if (place && reduces(a.collective)) {
    // Rounding apart. What a user's operation does with several types is not known.
    if (!is_basic) return std::nullopt;
    place = results::first_difference(element, magnitude_, ours, expected_);
  }
  oddities::verified.fetch_add(1, std::memory_order_relaxed);
  if (!place) return std::nullopt;
  oddities::mismatches.fetch_add(1, std::memory_order_relaxed);
  const std::size_t unit = is_basic ? kernels::size_of(element) : 1;
  const std::size_t at = *place / unit * unit;
  const auto text = [&](const std::vector<std::byte>& bytes) {
    return is_basic ? results::text_of(element, bytes.data() + at) : results::text_of(bytes[at]);
  };
  return verdicts::Found{*place / unit, text(ours), text(expected_)};
}

void Verification::restore() noexcept {
  if (!done_) return;
  const Arguments& a = arguments_;
  const auto put = [&](void* buffer, std::size_t count, std::size_t element, const std::byte* from) {
    Staging staged(buffer, count, a.type, element, Staging::Use::write, on_device_);
    if (staged.lacks() != 0) end_for_lack_of_memory(staged.lacks());
    std::memcpy(staged.bytes(), from, count * element);
    staged.write_back();
  };
  if (!has_lists(a.collective)) {
    if (elements_ != 0) put(a.receive, elements_, expected_.size() / elements_, expected_.data());
    return;
  }
  const auto element = static_cast<std::size_t>(element_bytes_of(a.type));
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(a.type, &lower, &extent);
  const std::byte* from = expected_.data();
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto count = static_cast<std::size_t>(a.lists.count(rank));
    if (count * element == 0) continue;
    // By integers: MPI_BOTTOM is a null pointer.
    const auto at = reinterpret_cast<std::intptr_t>(a.receive) + a.lists.displacement(rank) * extent;
    put(reinterpret_cast<void*>(at), count, element, from);
    from += count * element;
  }
}

}  // namespace papaya
