// What loops.cpp is compiled for, and what it needs from outside. Included by the kernels and their tests
// only.
#pragma once

#include <cstddef>
#include <span>

#include "algorithms/kernels/reduce.hpp"

namespace papaya::kernels {

struct Target {
  const char* name;
  Reduction::Combine (*find)(ElementType, Operation) noexcept;  // nullptr for long double, too
};

// Those that this CPU can run, the best one last. find() takes the last.
std::span<const Target> targets() noexcept;

// out = left * right by the rules of C, whose infinities need more than four products. The last argument says
// which.
void multiply_by_library(const void* left, const void* right, void* out, std::size_t count, float) noexcept;
void multiply_by_library(const void* left, const void* right, void* out, std::size_t count, double) noexcept;

// One for each target in meson.build.
#define PAPAYA_KERNEL_FIND(target)                          \
  namespace target {                                        \
  Reduction::Combine find(ElementType, Operation) noexcept; \
  }
PAPAYA_KERNEL_FIND(generic)
PAPAYA_KERNEL_FIND(avx2)
PAPAYA_KERNEL_FIND(avx512)
#undef PAPAYA_KERNEL_FIND

}  // namespace papaya::kernels
