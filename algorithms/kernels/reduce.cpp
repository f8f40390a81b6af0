#include "algorithms/kernels/reduce.hpp"

#include <array>
#include <complex>
#include <cstring>

#include "algorithms/kernels/targets.hpp"

namespace papaya::kernels {

namespace {

template <class Value, class Index = int>
struct Pair {
  Value value;
  Index index;
};

template <class T>
T load(const void* at, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(at) + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(void* at, std::size_t i, const T& value) {
  std::memcpy(static_cast<char*>(at) + i * sizeof(T), &value, sizeof(T));
}

template <class T, T (*apply)(const T&, const T&)>
void each(const Reduction&, const void* left, const void* right, void* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) store<T>(out, i, apply(load<T>(left, i), load<T>(right, i)));
}

template <class T>
T add(const T& a, const T& b) {
  return a + b;
}
template <class T>
T multiply(const T& a, const T& b) {
  return a * b;
}
template <class T>
T lesser(const T& a, const T& b) {
  return a < b ? a : b;
}
template <class T>
T greater(const T& a, const T& b) {
  return a > b ? a : b;
}
template <class T>
T least(const T& a, const T& b) {
  return a.value < b.value || (a.value == b.value && a.index < b.index) ? a : b;
}
template <class T>
T greatest(const T& a, const T& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
}

// What no instruction set has vectors for.
Reduction::Combine find_long_double(ElementType type, Operation operation) noexcept {
  using Real = long double;
  using Located = Pair<long double>;
  if (type == ElementType::f80) {
    if (operation == Operation::sum) return each<Real, add<Real>>;
    if (operation == Operation::prod) return each<Real, multiply<Real>>;
    if (operation == Operation::min) return each<Real, lesser<Real>>;
    if (operation == Operation::max) return each<Real, greater<Real>>;
  } else if (type == ElementType::c80) {
    if (operation == Operation::sum) return each<std::complex<Real>, add<std::complex<Real>>>;
    if (operation == Operation::prod) return each<std::complex<Real>, multiply<std::complex<Real>>>;
  } else if (type == ElementType::f80_int) {
    if (operation == Operation::minloc) return each<Located, least<Located>>;
    if (operation == Operation::maxloc) return each<Located, greatest<Located>>;
  }
  return nullptr;
}

// Asked at run time, since the library is preloaded into programs on whatever CPU; not by an ifunc, whose
// resolver runs before a sanitizer is ready.
struct Targets {
  std::array<Target, 3> all;
  std::size_t count = 0;

  Targets() noexcept {
    all[count++] = {"generic", generic::find};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) all[count++] = {"avx2", avx2::find};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      all[count++] = {"avx512", avx512::find};
#endif
  }
};

}  // namespace

std::span<const Target> targets() noexcept {
  static const Targets of_this_cpu;
  return {of_this_cpu.all.data(), of_this_cpu.count};
}

void multiply_by_library(const void* left, const void* right, void* out, std::size_t count, float) noexcept {
  each<std::complex<float>, multiply<std::complex<float>>>({}, left, right, out, count);
}

void multiply_by_library(const void* left, const void* right, void* out, std::size_t count, double) noexcept {
  each<std::complex<double>, multiply<std::complex<double>>>({}, left, right, out, count);
}

Reduction::Combine find(ElementType type, Operation operation) noexcept {
  const Reduction::Combine found = targets().back().find(type, operation);
  return found != nullptr ? found : find_long_double(type, operation);
}

std::size_t size_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::boolean:
    case ElementType::byte:
      return 1;
    case ElementType::i16:
    case ElementType::u16:
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::i32:
    case ElementType::u32:
    case ElementType::f32:
      return 4;
    case ElementType::i64:
    case ElementType::u64:
    case ElementType::f64:
    case ElementType::c32:
      return 8;
    case ElementType::f80:
      return sizeof(long double);
    case ElementType::c64:
      return 16;
    case ElementType::c80:
      return 2 * sizeof(long double);
    case ElementType::f32_int:
      return sizeof(Pair<float>);
    case ElementType::f64_int:
      return sizeof(Pair<double>);
    case ElementType::long_int:
      return sizeof(Pair<long>);
    case ElementType::int_int:
      return sizeof(Pair<int>);
    case ElementType::short_int:
      return sizeof(Pair<short>);
    case ElementType::f80_int:
      return sizeof(Pair<long double>);
    case ElementType::f32_f32:
      return sizeof(Pair<float, float>);
    case ElementType::f64_f64:
      return sizeof(Pair<double, double>);
    case ElementType::logical:
      return sizeof(std::int32_t);
  }
  return 0;
}

}  // namespace papaya::kernels
