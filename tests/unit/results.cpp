// What counts as the same result, and where it begins to differ.
#include "interpose/results.hpp"

#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/catch.hpp"

namespace papaya {

namespace {

using kernels::ElementType;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::optional<std::size_t> compared(ElementType type, const std::vector<T>& ours, const std::vector<T>& expected,
                                    double magnitude = 0) {
  return results::first_difference(type, magnitude, bytes_of(ours), bytes_of(expected));
}

}  // namespace

TEST_CASE("rounding is no difference, and what is begins at an element") {
  CHECK_FALSE(compared<double>(ElementType::f64, {1, 2, 3}, {1, 2 + 1e-11, 3}));
  CHECK(compared<double>(ElementType::f64, {1, 2, 3}, {1, 2, 3 + 1e-8}) == 16);
  CHECK_FALSE(compared<double>(ElementType::f64, {1, 2, 3}, {1, 2, 3 + 1e-8}, 1000));  // of what may add up to that
  CHECK_FALSE(compared<float>(ElementType::f32, {1, 2}, {1, 2.0001f}));
  CHECK(compared<float>(ElementType::f32, {1, 2}, {1, 2.01f}) == 4);
  CHECK_FALSE(compared<float>(ElementType::c32, {1, 1e-6f}, {1, 0}));  // one number of two parts
  CHECK(compared<float>(ElementType::f32, {1, 1e-6f}, {1, 0}) == 4);
  CHECK(compared<int>(ElementType::i32, {1, 2, 3, 4}, {1, 2, 4, 4}) == 8);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(compared<double>(ElementType::f64, {nan}, {nan}));
  CHECK(compared<double>(ElementType::f64, {nan}, {1}) == 0);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_FALSE(compared<double>(ElementType::f64, {infinity}, {infinity}));
  CHECK(compared<double>(ElementType::f64, {1, infinity}, {1, 3}) == 8);
  CHECK(compared<double>(ElementType::f64, {infinity}, {-infinity}) == 0);
  CHECK(compared<float>(ElementType::c32, {1, 2}, {1, std::numeric_limits<float>::infinity()}, 10) == 0);
}

TEST_CASE("the padding of a pair has no value") {
  struct Pair {
    double value;
    int index;
  };
  std::vector<std::byte> ours = bytes_of(std::vector<Pair>{{1, 2}, {3, 4}});
  std::vector<std::byte> expected = ours;
  expected[sizeof(Pair) - 1] ^= std::byte{0xff};
  CHECK(results::first_difference(ours, expected) == sizeof(Pair) - 1);
  CHECK_FALSE(results::first_difference(ElementType::f64_int, 0, ours, expected));
  const int index = 5;
  std::memcpy(expected.data() + sizeof(Pair) + sizeof(double), &index, sizeof index);
  CHECK(results::first_difference(ElementType::f64_int, 0, ours, expected) == sizeof(Pair));
  CHECK(results::text_of(ElementType::f64_int, expected.data() + sizeof(Pair)) == "(3, 5)");
}

TEST_CASE("the largest number, and values as text") {
  CHECK(results::largest(ElementType::f64, bytes_of<double>({1, -7, std::numeric_limits<double>::infinity()})) == 7);
  CHECK(results::largest(ElementType::i32, bytes_of<int>({8})) == 0);
  const double parts[] = {1.5, -2};
  const int value = -17;
  CHECK(results::text_of(ElementType::c64, reinterpret_cast<const std::byte*>(parts)) == "1.5-2i");
  CHECK(results::text_of(ElementType::f64, reinterpret_cast<const std::byte*>(parts)) == "1.5");
  CHECK(results::text_of(ElementType::i32, reinterpret_cast<const std::byte*>(&value)) == "-17");
  CHECK(results::text_of(ElementType::logical, reinterpret_cast<const std::byte*>(&value)) == "0xffffffef");
  CHECK(results::text_of(std::byte{7}) == "0x07");
}

}  // namespace papaya
