// How far two results of a collective may differ and still be the same. It knows no MPI; results are contiguous.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/kernels/reduce.hpp"

namespace papaya::results {

// The largest finite number in it; 0 for types without rounding.
double largest(kernels::ElementType type, const std::vector<std::byte>& bytes);

// The byte at which they begin to differ, both of the same length.
std::optional<std::size_t> first_difference(const std::vector<std::byte>& ours, const std::vector<std::byte>& expected);

// The first byte of the first number, or pair, that differs by more than another order of the same reduction explains:
// 1e-4 for float and 1e-10 for double, of the numbers themselves or of `magnitude`. A pair's padding has no value.
std::optional<std::size_t> first_difference(kernels::ElementType type, double magnitude,
                                            const std::vector<std::byte>& ours, const std::vector<std::byte>& expected);

// A pair whose parts do not fill it.
bool has_padding(kernels::ElementType type) noexcept;

// The value of an element; of a byte.
std::string text_of(kernels::ElementType type, const std::byte* element);
std::string text_of(std::byte byte);

}  // namespace papaya::results
