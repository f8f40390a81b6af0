// The loops of the kernels. Compiled once for each target in meson.build, with that target's instructions, so
// nothing here may have a name that another target's object has too: the linker would keep one of the two,
// and it might be the one this CPU cannot run. Hence no functions of the standard library (std::complex,
// std::min), not even inline ones.
//
// Every target gives the same bits: element by element, the same operations, no fused multiply-add
// (-ffp-contract=off). Only which of two NaN operands a sum or product returns is the compiler's choice.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "algorithms/kernels/reduce.hpp"
#include "algorithms/kernels/targets.hpp"

#if !defined(PAPAYA_KERNEL_TARGET)
#error "compiled by algorithms/meson.build, once for each target"
#endif

// The output may be either operand, never a part of one, so that no element depends on another.
#if defined(__clang__)
#define PAPAYA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PAPAYA_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace papaya::kernels::PAPAYA_KERNEL_TARGET {

namespace {

// Buffers may lie anywhere.
template <class T>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  T value;
};

struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};
template <class Part>
struct Complex {
  Part real;
  Part imaginary;
};

inline float as_float(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
inline std::uint32_t as_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}

// A choice that stays arithmetic: given a branch, compilers do not vectorise. Signed, since SSE and AVX2
// compare nothing else.
inline std::int32_t choose(bool condition, std::int32_t yes, std::int32_t no) {
  return no ^ ((yes ^ no) & -static_cast<std::int32_t>(condition));
}

// Alike on all CPUs, and what F16C's instructions compute.
inline float widen(Half half) {
  const std::int32_t sign = (half.bits & 0x8000) << 16;
  const std::int32_t magnitude = (half.bits & 0x7fff) << 13;
  // A subnormal is a multiple of 2^-24: as the fraction of 2^-14, from which it is taken away again, it is no
  // subnormal float, which the program may have told the CPU to flush to zero.
  const std::int32_t subnormal = as_bits(as_float(magnitude + 0x38800000) - as_float(0x38800000));
  const std::int32_t quiet = choose(magnitude > 0x0f800000, 0x00400000, 0);
  const std::int32_t finite = choose(magnitude < 0x00800000, subnormal, magnitude + 0x38000000);
  return as_float(sign | choose(magnitude >= 0x0f800000, magnitude | 0x7f800000 | quiet, finite));
}

inline Half narrow(float value, Half) {
  const std::int32_t bits = as_bits(value);
  const std::int32_t sign = (bits >> 16) & 0x8000;
  const std::int32_t magnitude = bits & 0x7fffffff;
  // To the nearest, ties to even, by a carry. Of a NaN only `nan` counts, of what is too large only infinity.
  const std::int32_t in_range = choose(magnitude < 0x47800000, magnitude, 0x47800000);
  const std::int32_t normal = (in_range - 0x38000000 + 0x0fff + ((in_range >> 13) & 1)) >> 13;
  // Below 2^-14: adding 0.5 leaves the half's bits, rounded, in the lowest place.
  const std::int32_t subnormal = as_bits(as_float(in_range) + 0.5f) - 0x3f000000;
  const std::int32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  const std::int32_t finite = choose(magnitude < 0x38800000, subnormal, normal);
  return {static_cast<std::uint16_t>(sign | choose(magnitude > 0x7f800000, nan, finite))};
}

inline float widen(Bfloat value) {
  return as_float(static_cast<std::int32_t>(static_cast<std::uint32_t>(value.bits) << 16));
}

inline Bfloat narrow(float value, Bfloat) {
  const auto bits = static_cast<std::uint32_t>(as_bits(value));
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

template <class T>
inline constexpr bool is_narrow_float = false;
template <>
inline constexpr bool is_narrow_float<Half> = true;
template <>
inline constexpr bool is_narrow_float<Bfloat> = true;

// Wraps around as two's complement, which every MPI does and C++ defines for unsigned types only; not
// narrower than int, to which the operands would be promoted.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <Operation operation, class T>
inline T apply(T a, T b) {
  if constexpr (is_narrow_float<T>) {
    const float x = widen(a);
    const float y = widen(b);
    if constexpr (operation == Operation::sum) return narrow(x + y, T{});
    if constexpr (operation == Operation::prod) return narrow(x * y, T{});
    const bool left = operation == Operation::min ? x < y : x > y;
    return T{left ? a.bits : b.bits};
  } else if constexpr (operation == Operation::sum) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    else
      return a + b;
  } else if constexpr (operation == Operation::prod) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    else
      return a * b;
  } else if constexpr (operation == Operation::min) {
    return a < b ? a : b;
  } else if constexpr (operation == Operation::max) {
    return a > b ? a : b;
  } else if constexpr (operation == Operation::land) {
    return static_cast<T>((a != 0) & (b != 0));
  } else if constexpr (operation == Operation::lor) {
    return static_cast<T>((a != 0) | (b != 0));
  } else if constexpr (operation == Operation::lxor) {
    return static_cast<T>((a != 0) != (b != 0));
  } else if constexpr (operation == Operation::band) {
    return static_cast<T>(a & b);
  } else if constexpr (operation == Operation::bor) {
    return static_cast<T>(a | b);
  } else {
    static_assert(operation == Operation::bxor);
    return static_cast<T>(a ^ b);
  }
}

template <Operation operation, class T>
void combine(const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
  const auto* a = static_cast<const Unaligned<T>*>(left);
  const auto* b = static_cast<const Unaligned<T>*>(right);
  auto* c = static_cast<Unaligned<T>*>(out);
  PAPAYA_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) c[i].value = apply<operation, T>(a[i].value, b[i].value);
}

template <class Part>
void add_complex(const Reduction& reduction, const void* left, const void* right, void* out, std::size_t count) {
  combine<Operation::sum, Part>(reduction, left, right, out, 2 * count);
}

// (ac - bd) + (ad + bc)i. Where both parts become NaN, C's rules may still make them infinite: that block
// once more, by the library's function.
template <class Part>
void multiply_complex(const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
  constexpr std::size_t block = 32;
  const auto* a = static_cast<const Unaligned<Complex<Part>>*>(left);
  const auto* b = static_cast<const Unaligned<Complex<Part>>*>(right);
  auto* c = static_cast<Unaligned<Complex<Part>>*>(out);
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t n = count - first < block ? count - first : block;
    Part real[block];
    Part imaginary[block];
    std::conditional_t<sizeof(Part) == 8, std::uint64_t, std::uint32_t> undefined = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Complex<Part> x = a[first + i].value;
      const Complex<Part> y = b[first + i].value;
      const Part re = x.real * y.real - x.imaginary * y.imaginary;
      const Part im = x.real * y.imaginary + x.imaginary * y.real;
      real[i] = re;
      imaginary[i] = im;
      undefined |= (re != re) & (im != im);
    }
    if (undefined != 0) {
      multiply_by_library(a + first, b + first, c + first, n, Part{});
      continue;
    }
    for (std::size_t i = 0; i < n; ++i) c[first + i].value = {real[i], imaginary[i]};
  }
}

// Pairs as two lanes of one width, copied whole. In the lanes, value and index stand in the low bits, padding
// above.
template <class Lane, class Value, class Index>
struct Pair {
  Lane first;
  Lane second;
};

template <class T, class Lane>
inline auto ordered(Lane lane) {
  if constexpr (std::is_floating_point_v<T>) {
    return __builtin_bit_cast(T, lane);
  } else {
    // Padding is shifted out; the order stays.
    constexpr int padding = 8 * (sizeof(Lane) - sizeof(T));
    return static_cast<std::make_signed_t<Lane>>(lane << padding);
  }
}

template <Operation operation, class Lane, class Value, class Index>
void locate(const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
  using P = Pair<Lane, Value, Index>;
  const auto* a = static_cast<const Unaligned<P>*>(left);
  const auto* b = static_cast<const Unaligned<P>*>(right);
  auto* c = static_cast<Unaligned<P>*>(out);
  PAPAYA_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    const P x = a[i].value;
    const P y = b[i].value;
    const auto x_value = ordered<Value>(x.first);
    const auto y_value = ordered<Value>(y.first);
    const bool better = operation == Operation::minloc ? x_value < y_value : x_value > y_value;
    const bool lower = ordered<Index>(x.second) < ordered<Index>(y.second);
    const bool is_left = better | ((x_value == y_value) & lower);
    c[i].value.first = is_left ? x.first : y.first;
    c[i].value.second = is_left ? x.second : y.second;
  }
}

template <class T>
Reduction::Combine find_ordered(Operation operation) noexcept {
  switch (operation) {
    case Operation::sum:
      return combine<Operation::sum, T>;
    case Operation::prod:
      return combine<Operation::prod, T>;
    case Operation::min:
      return combine<Operation::min, T>;
    case Operation::max:
      return combine<Operation::max, T>;
    default:
      return nullptr;
  }
}

template <class T>
Reduction::Combine find_logical(Operation operation) noexcept {
  switch (operation) {
    case Operation::land:
      return combine<Operation::land, T>;
    case Operation::lor:
      return combine<Operation::lor, T>;
    case Operation::lxor:
      return combine<Operation::lxor, T>;
    default:
      return nullptr;
  }
}

template <class T>
Reduction::Combine find_bits(Operation operation) noexcept {
  switch (operation) {
    case Operation::band:
      return combine<Operation::band, T>;
    case Operation::bor:
      return combine<Operation::bor, T>;
    case Operation::bxor:
      return combine<Operation::bxor, T>;
    default:
      return nullptr;
  }
}

template <class T>
Reduction::Combine find_integer(Operation operation) noexcept {
  if (const auto found = find_ordered<T>(operation)) return found;
  if (const auto found = find_logical<T>(operation)) return found;
  return find_bits<T>(operation);
}

template <class Part>
Reduction::Combine find_complex(Operation operation) noexcept {
  if (operation == Operation::sum) return add_complex<Part>;
  if (operation == Operation::prod) return multiply_complex<Part>;
  return nullptr;
}

template <class Lane, class Value, class Index>
Reduction::Combine find_pair(Operation operation) noexcept {
  if (operation == Operation::minloc) return locate<Operation::minloc, Lane, Value, Index>;
  if (operation == Operation::maxloc) return locate<Operation::maxloc, Lane, Value, Index>;
  return nullptr;
}

}  // namespace

Reduction::Combine find(ElementType type, Operation operation) noexcept {
  switch (type) {
    case ElementType::i8:
      return find_integer<std::int8_t>(operation);
    case ElementType::i16:
      return find_integer<std::int16_t>(operation);
    case ElementType::i32:
      return find_integer<std::int32_t>(operation);
    case ElementType::i64:
      return find_integer<std::int64_t>(operation);
    case ElementType::u8:
      return find_integer<std::uint8_t>(operation);
    case ElementType::u16:
      return find_integer<std::uint16_t>(operation);
    case ElementType::u32:
      return find_integer<std::uint32_t>(operation);
    case ElementType::u64:
      return find_integer<std::uint64_t>(operation);
    case ElementType::f16:
      return find_ordered<Half>(operation);
    case ElementType::bf16:
      return find_ordered<Bfloat>(operation);
    case ElementType::f32:
      return find_ordered<float>(operation);
    case ElementType::f64:
      return find_ordered<double>(operation);
    case ElementType::c32:
      return find_complex<float>(operation);
    case ElementType::c64:
      return find_complex<double>(operation);
    case ElementType::boolean:
      return find_logical<std::uint8_t>(operation);
    case ElementType::byte:
      return find_bits<std::uint8_t>(operation);
    case ElementType::logical:
      return find_logical<std::int32_t>(operation);
    case ElementType::f32_int:
      return find_pair<std::uint32_t, float, std::int32_t>(operation);
    case ElementType::f64_int:
      return find_pair<std::uint64_t, double, std::int32_t>(operation);
    case ElementType::long_int:
      if constexpr (sizeof(long) == 8) return find_pair<std::uint64_t, long, std::int32_t>(operation);
      return find_pair<std::uint32_t, std::int32_t, std::int32_t>(operation);
    case ElementType::int_int:
      return find_pair<std::uint32_t, std::int32_t, std::int32_t>(operation);
    case ElementType::short_int:
      return find_pair<std::uint32_t, std::int16_t, std::int32_t>(operation);
    case ElementType::f32_f32:
      return find_pair<std::uint32_t, float, float>(operation);
    case ElementType::f64_f64:
      return find_pair<std::uint64_t, double, double>(operation);
    case ElementType::f80:
    case ElementType::c80:
    case ElementType::f80_int:
      break;  // no vectors of long double: in reduce.cpp
  }
  return nullptr;
}

}  // namespace papaya::kernels::PAPAYA_KERNEL_TARGET
