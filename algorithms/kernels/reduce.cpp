#include "algorithms/kernels/reduce.hpp"

#include <complex>
#include <type_traits>

namespace papaya::kernels {

namespace {

template <class Value, class Index = int>
struct Pair {
  Value value;
  Index index;
};

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

// Integers wrap around as two's complement, which every MPI does and C++ defines for unsigned types only.
template <class T>
using Wrapping = std::make_unsigned_t<T>;

template <Operation operation, class T>
T apply(const T& a, const T& b) {
  if constexpr (operation == Operation::sum) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    else
      return a + b;
  } else if constexpr (operation == Operation::prod) {
    if constexpr (std::is_integral_v<T>) {
      // Through 64 bits: unsigned short operands would be promoted to int and could overflow there.
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  } else if constexpr (operation == Operation::min) {
    return a < b ? a : b;
  } else if constexpr (operation == Operation::max) {
    return a > b ? a : b;
  } else if constexpr (operation == Operation::land) {
    return static_cast<T>((a != T{}) && (b != T{}));
  } else if constexpr (operation == Operation::lor) {
    return static_cast<T>((a != T{}) || (b != T{}));
  } else if constexpr (operation == Operation::lxor) {
    return static_cast<T>((a != T{}) != (b != T{}));
  } else if constexpr (operation == Operation::band) {
    return static_cast<T>(a & b);
  } else if constexpr (operation == Operation::bor) {
    return static_cast<T>(a | b);
  } else if constexpr (operation == Operation::bxor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (operation == Operation::minloc) {
    if (a.value == b.value) return a.index < b.index ? a : b;
    return a.value < b.value ? a : b;
  } else {
    static_assert(operation == Operation::maxloc);
    if (a.value == b.value) return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
  }
}

template <Operation operation, class T>
void combine(const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
  const auto* a = static_cast<const T*>(left);
  const auto* b = static_cast<const T*>(right);
  auto* c = static_cast<T*>(out);
  for (std::size_t i = 0; i < count; ++i) c[i] = apply<operation, T>(a[i], b[i]);
}

template <class T>
Reduction::Combine find_for(Operation operation) noexcept {
  constexpr bool ordered = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
  constexpr bool logical = std::is_integral_v<T>;
  constexpr bool bits = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  switch (operation) {
    case Operation::sum:
      if constexpr (ordered || is_complex<T>) return combine<Operation::sum, T>;
      break;
    case Operation::prod:
      if constexpr (ordered || is_complex<T>) return combine<Operation::prod, T>;
      break;
    case Operation::min:
      if constexpr (ordered) return combine<Operation::min, T>;
      break;
    case Operation::max:
      if constexpr (ordered) return combine<Operation::max, T>;
      break;
    case Operation::land:
      if constexpr (logical) return combine<Operation::land, T>;
      break;
    case Operation::lor:
      if constexpr (logical) return combine<Operation::lor, T>;
      break;
    case Operation::lxor:
      if constexpr (logical) return combine<Operation::lxor, T>;
      break;
    case Operation::band:
      if constexpr (bits) return combine<Operation::band, T>;
      break;
    case Operation::bor:
      if constexpr (bits) return combine<Operation::bor, T>;
      break;
    case Operation::bxor:
      if constexpr (bits) return combine<Operation::bxor, T>;
      break;
    case Operation::minloc:
    case Operation::maxloc:
      break;
  }
  return nullptr;
}

Reduction::Combine find_for_byte(Operation operation) noexcept {
  switch (operation) {
    case Operation::band:
      return combine<Operation::band, std::uint8_t>;
    case Operation::bor:
      return combine<Operation::bor, std::uint8_t>;
    case Operation::bxor:
      return combine<Operation::bxor, std::uint8_t>;
    default:
      return nullptr;
  }
}

Reduction::Combine find_for_logical(Operation operation) noexcept {
  const bool logical = operation == Operation::land || operation == Operation::lor || operation == Operation::lxor;
  return logical ? find_for<std::int32_t>(operation) : nullptr;
}

template <class Value, class Index = int>
Reduction::Combine find_for_pair(Operation operation) noexcept {
  if (operation == Operation::minloc) return combine<Operation::minloc, Pair<Value, Index>>;
  if (operation == Operation::maxloc) return combine<Operation::maxloc, Pair<Value, Index>>;
  return nullptr;
}

}  // namespace

Reduction::Combine find(ElementType type, Operation operation) noexcept {
  switch (type) {
    case ElementType::i8: return find_for<std::int8_t>(operation);
    case ElementType::i16: return find_for<std::int16_t>(operation);
    case ElementType::i32: return find_for<std::int32_t>(operation);
    case ElementType::i64: return find_for<std::int64_t>(operation);
    case ElementType::u8: return find_for<std::uint8_t>(operation);
    case ElementType::u16: return find_for<std::uint16_t>(operation);
    case ElementType::u32: return find_for<std::uint32_t>(operation);
    case ElementType::u64: return find_for<std::uint64_t>(operation);
    case ElementType::f32: return find_for<float>(operation);
    case ElementType::f64: return find_for<double>(operation);
    case ElementType::f80: return find_for<long double>(operation);
    case ElementType::c32: return find_for<std::complex<float>>(operation);
    case ElementType::c64: return find_for<std::complex<double>>(operation);
    case ElementType::c80: return find_for<std::complex<long double>>(operation);
    case ElementType::boolean: return find_for<bool>(operation);
    case ElementType::byte: return find_for_byte(operation);
    case ElementType::f32_int: return find_for_pair<float>(operation);
    case ElementType::f64_int: return find_for_pair<double>(operation);
    case ElementType::long_int: return find_for_pair<long>(operation);
    case ElementType::int_int: return find_for_pair<int>(operation);
    case ElementType::short_int: return find_for_pair<short>(operation);
    case ElementType::f80_int: return find_for_pair<long double>(operation);
    case ElementType::f32_f32: return find_for_pair<float, float>(operation);
    case ElementType::f64_f64: return find_for_pair<double, double>(operation);
    case ElementType::logical: return find_for_logical(operation);
  }
  return nullptr;
}

std::size_t size_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::boolean:
    case ElementType::byte: return 1;
    case ElementType::i16:
    case ElementType::u16: return 2;
    case ElementType::i32:
    case ElementType::u32:
    case ElementType::f32: return 4;
    case ElementType::i64:
    case ElementType::u64:
    case ElementType::f64:
    case ElementType::c32: return 8;
    case ElementType::f80: return sizeof(long double);
    case ElementType::c64: return 16;
    case ElementType::c80: return 2 * sizeof(long double);
    case ElementType::f32_int: return sizeof(Pair<float>);
    case ElementType::f64_int: return sizeof(Pair<double>);
    case ElementType::long_int: return sizeof(Pair<long>);
    case ElementType::int_int: return sizeof(Pair<int>);
    case ElementType::short_int: return sizeof(Pair<short>);
    case ElementType::f80_int: return sizeof(Pair<long double>);
    case ElementType::f32_f32: return sizeof(Pair<float, float>);
    case ElementType::f64_f64: return sizeof(Pair<double, double>);
    case ElementType::logical: return sizeof(std::int32_t);
  }
  return 0;
}

}  // namespace papaya::kernels
