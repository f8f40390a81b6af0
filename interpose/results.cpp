#include "interpose/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace papaya::results {

namespace {

using kernels::ElementType;

template <class T>
T at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

template <class T>
double largest_of(const std::vector<std::byte>& bytes) {
  double largest = 0;
  for (std::size_t place = 0; place + sizeof(T) <= bytes.size(); place += sizeof(T)) {
    const T value = at<T>(bytes.data() + place);
    if (std::isfinite(value)) largest = std::max(largest, static_cast<double>(std::abs(value)));
  }
  return largest;
}

// `values` of them make one number: 2 for complex ones, whose parts may cancel out.
template <class T>
bool is_near(const std::byte* left, const std::byte* right, T tolerance, int values, double magnitude) {
  T size = static_cast<T>(magnitude);
  T difference = 0;
  for (int part = 0; part < values; ++part) {
    const T a = at<T>(left + static_cast<std::size_t>(part) * sizeof(T));
    const T b = at<T>(right + static_cast<std::size_t>(part) * sizeof(T));
    size = std::max({size, std::abs(a), std::abs(b)});
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    // An infinite size would make every difference small beside it.
    if (!std::isfinite(a) || !std::isfinite(b)) return false;
    difference = std::max(difference, std::abs(a - b));
  }
  return difference <= tolerance * size;
}

template <class Value, class Index>
bool is_same_pair(const std::byte* left, const std::byte* right) {
  const auto a = at<Pair<Value, Index>>(left);
  const auto b = at<Pair<Value, Index>>(right);
  return a.value == b.value && a.index == b.index;
}

bool is_same(ElementType type, double magnitude, const std::byte* a, const std::byte* b, std::size_t bytes) {
  switch (type) {
    case ElementType::f32:
      return is_near<float>(a, b, 1e-4f, 1, magnitude);
    case ElementType::c32:
      return is_near<float>(a, b, 1e-4f, 2, magnitude);
    case ElementType::f64:
      return is_near<double>(a, b, 1e-10, 1, magnitude);
    case ElementType::c64:
      return is_near<double>(a, b, 1e-10, 2, magnitude);
    case ElementType::f80:
      return is_near<long double>(a, b, 1e-10L, 1, magnitude);
    case ElementType::c80:
      return is_near<long double>(a, b, 1e-10L, 2, magnitude);
    case ElementType::f64_int:
      return is_same_pair<double, int>(a, b);
    case ElementType::long_int:
      return is_same_pair<long, int>(a, b);
    case ElementType::short_int:
      return is_same_pair<short, int>(a, b);
    case ElementType::f80_int:
      return is_same_pair<long double, int>(a, b);
    default:
      return std::memcmp(a, b, bytes) == 0;
  }
}

template <class T>
std::string number(const std::byte* element) {
  return fmt::format("{}", at<T>(element));
}

template <class T>
std::string complex_number(const std::byte* element) {
  return fmt::format("{}{:+}i", at<T>(element), at<T>(element + sizeof(T)));
}

template <class Value, class Index>
std::string pair(const std::byte* element) {
  const auto one = at<Pair<Value, Index>>(element);
  return fmt::format("({}, {})", one.value, one.index);
}

}  // namespace

double largest(ElementType type, const std::vector<std::byte>& bytes) {
  switch (type) {
    case ElementType::f32:
    case ElementType::c32:
      return largest_of<float>(bytes);
    case ElementType::f64:
    case ElementType::c64:
      return largest_of<double>(bytes);
    case ElementType::f80:
    case ElementType::c80:
      return largest_of<long double>(bytes);
    default:
      return 0;
  }
}

std::optional<std::size_t> first_difference(const std::vector<std::byte>& ours,
                                            const std::vector<std::byte>& expected) {
  const auto [mine, other] = std::mismatch(ours.begin(), ours.end(), expected.begin(), expected.end());
  if (mine == ours.end()) return std::nullopt;
  return static_cast<std::size_t>(mine - ours.begin());
}

std::optional<std::size_t> first_difference(ElementType type, double magnitude, const std::vector<std::byte>& ours,
                                            const std::vector<std::byte>& expected) {
  const std::size_t bytes = kernels::size_of(type);
  for (std::size_t place = 0; place + bytes <= std::min(ours.size(), expected.size()); place += bytes)
    if (!is_same(type, magnitude, ours.data() + place, expected.data() + place, bytes)) return place;
  return std::nullopt;
}

std::string text_of(ElementType type, const std::byte* element) {
  switch (type) {
    case ElementType::i8:
      return fmt::format("{}", static_cast<int>(at<std::int8_t>(element)));
    case ElementType::i16:
      return number<std::int16_t>(element);
    case ElementType::i32:
      return number<std::int32_t>(element);
    case ElementType::i64:
      return number<std::int64_t>(element);
    case ElementType::u8:
      return fmt::format("{}", static_cast<unsigned>(at<std::uint8_t>(element)));
    case ElementType::u16:
      return number<std::uint16_t>(element);
    case ElementType::u32:
      return number<std::uint32_t>(element);
    case ElementType::u64:
      return number<std::uint64_t>(element);
    case ElementType::f32:
      return number<float>(element);
    case ElementType::f64:
      return number<double>(element);
    case ElementType::f80:
      return number<long double>(element);
    case ElementType::c32:
      return complex_number<float>(element);
    case ElementType::c64:
      return complex_number<double>(element);
    case ElementType::c80:
      return complex_number<long double>(element);
    case ElementType::f32_int:
      return pair<float, int>(element);
    case ElementType::f64_int:
      return pair<double, int>(element);
    case ElementType::long_int:
      return pair<long, int>(element);
    case ElementType::int_int:
      return pair<int, int>(element);
    case ElementType::short_int:
      return pair<short, int>(element);
    case ElementType::f80_int:
      return pair<long double, int>(element);
    case ElementType::f32_f32:
      return pair<float, float>(element);
    case ElementType::f64_f64:
      return pair<double, double>(element);
    default: {
      std::string text = "0x";
      for (std::size_t i = kernels::size_of(type); i-- > 0;)
        text += fmt::format("{:02x}", at<std::uint8_t>(element + i));
      return text;
    }
  }
}

bool has_padding(ElementType type) noexcept {
  return type == ElementType::f64_int || type == ElementType::long_int || type == ElementType::short_int ||
         type == ElementType::f80_int;
}

std::string text_of(std::byte byte) {
  return fmt::format("0x{:02x}", static_cast<unsigned>(byte));
}

}  // namespace papaya::results
