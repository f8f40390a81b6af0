// The reduction kernels against plain code: every type, operation, count, alignment, aliasing, and every
// instruction set of this CPU.
#include <cfloat>
#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "algorithms/kernels/reduce.hpp"
#include "algorithms/kernels/targets.hpp"
#include "tests/catch.hpp"

namespace papaya {

namespace {

using kernels::ElementType;
using kernels::Operation;

constexpr Operation operations[] = {Operation::sum,  Operation::prod, Operation::min,    Operation::max,
                                    Operation::land, Operation::lor,  Operation::lxor,   Operation::band,
                                    Operation::bor,  Operation::bxor, Operation::minloc, Operation::maxloc};

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

// 16 bits, by way of long double arithmetic: exact, rounded once.
struct Narrow {
  std::uint16_t bits;
};

long double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 0x3ff;
  long double value = exponent == 0 ? std::ldexp(static_cast<long double>(fraction), -24)
                                    : std::ldexp(static_cast<long double>(fraction + 1024), exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -value : value;
}

long double bfloat_value(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return static_cast<long double>(value);
}

// The nearest of all values, even on a tie: by search, in ascending order of bits.
std::uint16_t nearest(long double value, long double (*value_of)(std::uint16_t), std::uint16_t infinity) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(value);
  std::uint16_t low = 0;
  std::uint16_t high = infinity;
  while (low < high) {  // the largest not above
    const auto middle = static_cast<std::uint16_t>((low + high + 1) / 2);
    if (value_of(middle) <= value)
      low = middle;
    else
      high = static_cast<std::uint16_t>(middle - 1);
  }
  if (low < infinity) {
    const auto above = static_cast<std::uint16_t>(low + 1);
    // Beyond the largest, infinity stands where the next number would.
    const long double step = value_of(low) - value_of(static_cast<std::uint16_t>(low == 0 ? 0 : low - 1));
    const long double next = above == infinity ? value_of(low) + step : value_of(above);
    const long double middle = (value_of(low) + next) / 2;
    if (value > middle || (value == middle && low % 2 == 1)) low = above;
  }
  return sign | low;
}

template <class T>
struct Located {
  using Index = int;
  T value;
  int index;
};
template <class T>
struct Twice {
  using Index = T;
  T value;
  T index;
};

template <class T>
bool is_nan(const T& x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(x);
  else if constexpr (is_complex<T>)
    return std::isnan(x.real()) || std::isnan(x.imag());
  else
    return false;
}

// A sum or product of NaNs may be any NaN; everything else must have the same bits.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (is_complex<T>)
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  else if constexpr (std::is_floating_point_v<T>)
    return (is_nan(a) && is_nan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  else if constexpr (requires { a.index; })
    return std::memcmp(&a.value, &b.value, sizeof a.value > 10 ? 10 : sizeof a.value) == 0 &&
           std::memcmp(&a.index, &b.index, sizeof a.index) == 0;
  else
    return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
bool plain(Operation operation, const T& a, const T& b, T& c) {
  if constexpr (requires { a.index; }) {
    if (operation != Operation::minloc && operation != Operation::maxloc) return false;
    if (a.value == b.value)
      c = a.index < b.index ? a : b;
    else if (operation == Operation::minloc)
      c = a.value < b.value ? a : b;
    else
      c = a.value > b.value ? a : b;
    return true;
  } else {
    constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
    constexpr bool is_number = is_integer || std::is_floating_point_v<T>;
    switch (operation) {
      case Operation::sum:
        if constexpr (is_integer)
          return c = static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)), true;
        else if constexpr (is_number || is_complex<T>)
          return c = a + b, true;
        break;
      case Operation::prod:
        if constexpr (is_integer)
          return c = static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)), true;
        else if constexpr (is_number || is_complex<T>)
          return c = a * b, true;
        break;
      case Operation::min:
        if constexpr (is_number) return c = a < b ? a : b, true;
        break;
      case Operation::max:
        if constexpr (is_number) return c = a > b ? a : b, true;
        break;
      case Operation::land:
        if constexpr (std::is_integral_v<T>) return c = static_cast<T>(a != T{} && b != T{}), true;
        break;
      case Operation::lor:
        if constexpr (std::is_integral_v<T>) return c = static_cast<T>(a != T{} || b != T{}), true;
        break;
      case Operation::lxor:
        if constexpr (std::is_integral_v<T>) return c = static_cast<T>((a != T{}) != (b != T{})), true;
        break;
      case Operation::band:
        if constexpr (is_integer) return c = static_cast<T>(a & b), true;
        break;
      case Operation::bor:
        if constexpr (is_integer) return c = static_cast<T>(a | b), true;
        break;
      case Operation::bxor:
        if constexpr (is_integer) return c = static_cast<T>(a ^ b), true;
        break;
      default:
        break;
    }
    return false;
  }
}

bool plain_narrow(Operation operation, Narrow a, Narrow b, Narrow& c, bool is_half) {
  const auto value_of = is_half ? half_value : bfloat_value;
  const long double x = value_of(a.bits);
  const long double y = value_of(b.bits);
  const std::uint16_t infinity = is_half ? 0x7c00 : 0x7f80;
  if (operation == Operation::min) return c = x < y ? a : b, true;
  if (operation == Operation::max) return c = x > y ? a : b, true;
  if (operation != Operation::sum && operation != Operation::prod) return false;
  // In float first, as documented: for binary16 that changes nothing.
  const float result = operation == Operation::sum ? static_cast<float>(x) + static_cast<float>(y)
                                                   : static_cast<float>(x) * static_cast<float>(y);
  c.bits = std::isnan(result) ? 0xffff : nearest(static_cast<long double>(result), value_of, infinity);
  return true;
}

template <class T>
T random_value(std::mt19937_64& random) {
  if constexpr (is_complex<T>) {
    return {random_value<typename T::value_type>(random), random_value<typename T::value_type>(random)};
  } else if constexpr (requires(T t) { t.index; }) {
    T t;
    std::memset(static_cast<void*>(&t), 0, sizeof t);
    // Equal values often.
    t.value = random() % 9 == 0 ? random_value<decltype(t.value)>(random)
                                : static_cast<decltype(t.value)>(static_cast<int>(random() % 3) - 1);
    t.index = static_cast<typename T::Index>(static_cast<int>(random() % 7) - 3);
    return t;
  } else if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    constexpr T special[] = {T{0},
                             -T{0},
                             Limits::infinity(),
                             -Limits::infinity(),
                             Limits::quiet_NaN(),
                             Limits::denorm_min(),
                             Limits::min(),
                             Limits::max(),
                             -Limits::max(),
                             T{1}};
    if (random() % 8 == 0) return special[random() % 10];
    return std::ldexp(static_cast<T>(static_cast<double>(random() >> 11)) - T(1ull << 52),
                      static_cast<int>(random() % 40) - 70);
  } else if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else {
    T t;
    const std::uint64_t bits = random() % 4 == 0 ? 0 : random();
    std::memcpy(&t, &bits, sizeof t);
    return t;
  }
}

struct Shifts {
  std::size_t left, right, out;
};

template <class T, class Plain>
void check(const kernels::Target& target, ElementType type, Plain expected_of) {
  CHECK(kernels::size_of(type) == sizeof(T));
  std::mt19937_64 random(17);
  std::vector<std::size_t> counts;
  for (std::size_t n = 0; n <= 70; ++n) counts.push_back(n);
  counts.push_back(1000);
  constexpr std::size_t guard = 64;
  long wrong = 0;
  std::string first;
  for (const Operation operation : operations) {
    const Reduction::Combine combine = target.find(type, operation);
    T unused{};
    REQUIRE((combine != nullptr) == expected_of(operation, T{}, T{}, unused));
    if (combine == nullptr) continue;
    for (const std::size_t count : counts) {
      std::vector<T> left(count), right(count), expected(count);
      // vector<bool> has no bytes of its own; the caller passes unsigned char for it.
      for (std::size_t i = 0; i < count; ++i) {
        left[i] = random_value<T>(random);
        right[i] = random_value<T>(random);
      }
      for (const bool is_same_operand : {false, true}) {
        for (std::size_t i = 0; i < count; ++i)
          expected_of(operation, left[i], is_same_operand ? left[i] : right[i], expected[i]);
        for (const Shifts shift : {Shifts{0, 0, 0}, Shifts{1, 2, 3}, Shifts{4, 8, 12}, Shifts{8, 0, 4},
                                   Shifts{0, 32, 7}, Shifts{16, 16, 16}})
          for (int way = 0; way < 3; ++way) {  // the output apart, the left operand, the right operand
            if (is_same_operand && way == 0 && shift.left != 0) continue;
            const std::size_t bytes = count * sizeof(T);
            std::vector<unsigned char> storage[3];
            for (auto& s : storage) s.assign(bytes + 2 * guard, 0xa5);
            unsigned char* const a = storage[0].data() + guard / 2 + shift.left;
            unsigned char* const b = is_same_operand ? a : storage[1].data() + guard / 2 + shift.right;
            unsigned char* const c = way == 1 ? a : way == 2 ? b : storage[2].data() + guard / 2 + shift.out;
            if (count > 0) {
              if (!is_same_operand) std::memcpy(b, right.data(), bytes);
              std::memcpy(a, left.data(), bytes);
            }
            combine(Reduction{}, a, b, c, count);
            bool right_bits = true;
            for (std::size_t i = 0; i < count; ++i) {
              T got;
              std::memcpy(&got, c + i * sizeof(T), sizeof(T));
              if constexpr (std::is_same_v<T, Narrow>)
                right_bits = right_bits && (expected[i].bits == 0xffff
                                                ? (got.bits & 0x7fff) > (type == ElementType::f16 ? 0x7c00 : 0x7f80)
                                                : got.bits == expected[i].bits);
              else
                right_bits = right_bits && same(got, expected[i]);
            }
            for (std::size_t i = 0; i < guard / 2; ++i)
              right_bits =
                  right_bits && c[-1 - static_cast<std::ptrdiff_t>(i % 8)] == 0xa5 && (i >= 8 || c[bytes + i] == 0xa5);
            if (way != 1 && c != a && count > 0) right_bits = right_bits && std::memcmp(a, left.data(), bytes) == 0;
            if (!right_bits && ++wrong == 1)
              first = std::string(target.name) + " type " + std::to_string(static_cast<int>(type)) + " operation " +
                      std::to_string(static_cast<int>(operation)) + " count " + std::to_string(count) + " way " +
                      std::to_string(way);
          }
      }
    }
  }
  INFO(first);
  CHECK(wrong == 0);
}

template <class T>
void check(const kernels::Target& target, ElementType type) {
  check<T>(target, type, plain<T>);
}

// What `type` takes is the same, and so are its results.
void check_all(const kernels::Target& target) {
  check<std::int8_t>(target, ElementType::i8);
  check<std::int16_t>(target, ElementType::i16);
  check<std::int32_t>(target, ElementType::i32);
  check<std::int64_t>(target, ElementType::i64);
  check<std::uint8_t>(target, ElementType::u8);
  check<std::uint16_t>(target, ElementType::u16);
  check<std::uint32_t>(target, ElementType::u32);
  check<std::uint64_t>(target, ElementType::u64);
  check<float>(target, ElementType::f32);
  check<double>(target, ElementType::f64);
  check<std::complex<float>>(target, ElementType::c32);
  check<std::complex<double>>(target, ElementType::c64);
  check<Located<float>>(target, ElementType::f32_int);
  check<Located<double>>(target, ElementType::f64_int);
  check<Located<long>>(target, ElementType::long_int);
  check<Located<int>>(target, ElementType::int_int);
  check<Located<short>>(target, ElementType::short_int);
  check<Twice<float>>(target, ElementType::f32_f32);
  check<Twice<double>>(target, ElementType::f64_f64);
  const auto is_logical = [](Operation o) {
    return o == Operation::land || o == Operation::lor || o == Operation::lxor;
  };
  const auto is_bits = [](Operation o) { return o == Operation::band || o == Operation::bor || o == Operation::bxor; };
  check<std::uint8_t>(target, ElementType::boolean, [&](Operation o, std::uint8_t a, std::uint8_t b, std::uint8_t& c) {
    return is_logical(o) && plain<std::uint8_t>(o, a, b, c);
  });
  check<std::uint8_t>(target, ElementType::byte, [&](Operation o, std::uint8_t a, std::uint8_t b, std::uint8_t& c) {
    return is_bits(o) && plain<std::uint8_t>(o, a, b, c);
  });
  check<std::int32_t>(target, ElementType::logical, [&](Operation o, std::int32_t a, std::int32_t b, std::int32_t& c) {
    return is_logical(o) && plain<std::int32_t>(o, a, b, c);
  });
  check<Narrow>(target, ElementType::f16,
                [](Operation o, Narrow a, Narrow b, Narrow& c) { return plain_narrow(o, a, b, c, true); });
  check<Narrow>(target, ElementType::bf16,
                [](Operation o, Narrow a, Narrow b, Narrow& c) { return plain_narrow(o, a, b, c, false); });
}

}  // namespace

TEST_CASE("every instruction set's kernels compute what plain code does") {
  REQUIRE_FALSE(kernels::targets().empty());
  for (const kernels::Target& target : kernels::targets()) check_all(target);
}

TEST_CASE("the kernels that find() chooses serve long double as well") {
  const kernels::Target chosen{"chosen", kernels::find};
  check_all(chosen);
  check<long double>(chosen, ElementType::f80);
  check<std::complex<long double>>(chosen, ElementType::c80);
  check<Located<long double>>(chosen, ElementType::f80_int);
}

TEST_CASE("all pairs of special halves and every half with itself") {
  for (const kernels::Target& target : kernels::targets())
    for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
      long wrong = 0;
      std::vector<std::uint16_t> all(65536), ones(65536, type == ElementType::f16 ? 0x3c00 : 0x3f80), out(65536);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
      // Times one: widened and narrowed, nothing may change but a signalling NaN's quiet bit.
      target.find(type, Operation::prod)({}, all.data(), ones.data(), out.data(), all.size());
      const unsigned infinity = type == ElementType::f16 ? 0x7c00 : 0x7f80;
      const unsigned quiet = type == ElementType::f16 ? 0x200 : 0x40;
      for (std::size_t i = 0; i < all.size(); ++i) wrong += out[i] != ((i & 0x7fff) > infinity ? (i | quiet) : i);
      target.find(type, Operation::sum)({}, all.data(), all.data(), out.data(), all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        Narrow c;
        const Narrow a{all[i]};
        plain_narrow(Operation::sum, a, a, c, type == ElementType::f16);
        wrong += c.bits == 0xffff ? (out[i] & 0x7fff) <= infinity : out[i] != c.bits;
      }
      CHECK(wrong == 0);
    }
}

}  // namespace papaya
