#include "interpose/approx_error.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "interpose/attention.hpp"
#include "interpose/run.hpp"
#include "interpose/staging.hpp"

namespace papaya::approx {

namespace {

using kernels::ElementType;

std::size_t element_bytes(const Arguments& a, const Reduction& reduction) noexcept {
  return reduces(a.collective) ? reduction.element_bytes : static_cast<std::size_t>(element_bytes_of(a.type));
}

std::vector<std::byte> packed(const Arguments& a, const Reduction& reduction, const void* buffer, bool on_device) {
  const std::size_t element = element_bytes(a, reduction);
  const auto count = static_cast<std::size_t>(a.count);
  const Staging staged(buffer, count, a.type, element, Staging::Use::read, on_device);
  if (staged.lacks() != 0) end_for_lack_of_memory(staged.lacks());
  return {staged.bytes(), staged.bytes() + count * element};
}

// Sums of squares.
struct Norms {
  long double difference = 0;
  long double exact = 0;
};

template <class T>
Norms norms_of(const std::vector<std::byte>& ours, const std::vector<std::byte>& exact) {
  Norms norms;
  for (std::size_t at = 0; at + sizeof(T) <= exact.size(); at += sizeof(T)) {
    T one{};
    T other{};
    std::memcpy(&one, ours.data() + at, sizeof one);
    std::memcpy(&other, exact.data() + at, sizeof other);
    const auto difference = static_cast<long double>(one) - static_cast<long double>(other);
    norms.difference += difference * difference;
    norms.exact += static_cast<long double>(other) * static_cast<long double>(other);
  }
  return norms;
}

bool norms_of(ElementType type, const std::vector<std::byte>& ours, const std::vector<std::byte>& exact, Norms& norms) {
  switch (type) {
    case ElementType::i8:
      norms = norms_of<std::int8_t>(ours, exact);
      return true;
    case ElementType::i16:
      norms = norms_of<std::int16_t>(ours, exact);
      return true;
    case ElementType::i32:
      norms = norms_of<std::int32_t>(ours, exact);
      return true;
    case ElementType::i64:
      norms = norms_of<std::int64_t>(ours, exact);
      return true;
    case ElementType::u8:
    case ElementType::byte:
      norms = norms_of<std::uint8_t>(ours, exact);
      return true;
    case ElementType::u16:
      norms = norms_of<std::uint16_t>(ours, exact);
      return true;
    case ElementType::u32:
      norms = norms_of<std::uint32_t>(ours, exact);
      return true;
    case ElementType::u64:
      norms = norms_of<std::uint64_t>(ours, exact);
      return true;
    // Complex numbers have the norm of their parts.
    case ElementType::f32:
    case ElementType::c32:
      norms = norms_of<float>(ours, exact);
      return true;
    case ElementType::f64:
    case ElementType::c64:
      norms = norms_of<double>(ours, exact);
      return true;
    case ElementType::f80:
    case ElementType::c80:
      norms = norms_of<long double>(ours, exact);
      return true;
    default:
      return false;
  }
}

}  // namespace

ExactResult::ExactResult(const Arguments& a, const Communicator& state, const Reduction& reduction, bool on_device) {
  const nonblocking::InsideMpi inside_mpi;
  const auto n = static_cast<int>(a.count);
  if (a.collective == Collective::bcast) {
    bytes_ = packed(a, reduction, a.receive, on_device);
    PMPI_Bcast(bytes_.data(), static_cast<int>(bytes_.size()), MPI_BYTE, a.root, state.handle);
    return;
  }
  const std::vector<std::byte> mine = packed(a, reduction, a.send == MPI_IN_PLACE ? a.receive : a.send, on_device);
  if (receives(state, a)) bytes_.resize(mine.size());
  if (a.collective == Collective::reduce)
    PMPI_Reduce(mine.data(), bytes_.data(), n, a.type, a.op, a.root, state.handle);
  else
    PMPI_Allreduce(mine.data(), bytes_.data(), n, a.type, a.op, state.handle);
}

bool ExactResult::error_of(const Arguments& a, const Reduction& reduction, bool on_device, double& error) const {
  ElementType type{};
  Norms norms;
  if (bytes_.empty() || !element_type_of(a.type, type) ||
      !norms_of(type, packed(a, reduction, a.receive, on_device), bytes_, norms))
    return false;
  error = norms.difference == 0 ? 0 : static_cast<double>(std::sqrt(norms.difference / norms.exact));
  if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
  return true;
}

}  // namespace papaya::approx
