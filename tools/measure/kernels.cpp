// What the reduction kernels reach, in GB/s of memory read and written (two operands and the result), for
// each instruction set of this CPU: in the first-level cache, in the second, in memory; the result apart from
// the operands and in place of the left one. Medians.
//
//   measure_kernels [BYTES...]        bytes of one operand; 8192, 262144, 67108864 without
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "algorithms/kernels/reduce.hpp"
#include "algorithms/kernels/targets.hpp"

namespace {

using namespace papaya;
using kernels::ElementType;
using kernels::Operation;

struct Case {
  const char* name;
  ElementType type;
  Operation operation;
};
constexpr Case cases[] = {
    {"sum double", ElementType::f64, Operation::sum},
    {"sum float", ElementType::f32, Operation::sum},
    {"sum int32", ElementType::i32, Operation::sum},
    {"max double", ElementType::f64, Operation::max},
    {"max float", ElementType::f32, Operation::max},
    {"prod double", ElementType::f64, Operation::prod},
    {"prod int64", ElementType::i64, Operation::prod},
    {"prod double complex", ElementType::c64, Operation::prod},
    {"prod float complex", ElementType::c32, Operation::prod},
    {"minloc double int", ElementType::f64_int, Operation::minloc},
    {"minloc 2int", ElementType::int_int, Operation::minloc},
    {"band int64", ElementType::i64, Operation::band},
    {"land int32", ElementType::i32, Operation::land},
    {"sum half", ElementType::f16, Operation::sum},
    {"sum bfloat", ElementType::bf16, Operation::sum},
};

double gigabytes_per_second(Reduction::Combine combine, unsigned char* const buffers[3], std::size_t bytes,
                            std::size_t count, bool in_place) {
  using clock = std::chrono::steady_clock;
  void* const out = in_place ? buffers[0] : buffers[2];
  const Reduction reduction;
  const std::size_t repeats = std::max<std::size_t>(1, (std::size_t{1} << 22) / bytes);
  std::vector<double> rates;
  for (int block = 0; block < (bytes > (std::size_t{1} << 24) ? 7 : 31); ++block) {
    const auto begin = clock::now();
    for (std::size_t i = 0; i < repeats; ++i) combine(reduction, buffers[0], buffers[1], out, count);
    const std::chrono::duration<double> time = clock::now() - begin;
    rates.push_back(3e-9 * static_cast<double>(bytes) * static_cast<double>(repeats) / time.count());
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10) / 64 * 64);
  if (sizes.empty()) sizes = {8192, 262144, std::size_t{64} << 20};
  std::vector<kernels::Target> targets(kernels::targets().begin(), kernels::targets().end());
  if (targets.empty()) targets.push_back({"find()", kernels::find});
  for (const std::size_t bytes : sizes) {
    unsigned char* buffers[3];
    for (auto& buffer : buffers) buffer = static_cast<unsigned char*>(std::aligned_alloc(64, bytes));
    std::printf("%zu bytes, GB/s%*s", bytes, bytes < 100000 ? 7 : 3, "");
    for (const kernels::Target& target : targets) std::printf(" %10s %10s", target.name, "in place");
    std::printf("\n");
    for (const Case& c : cases) {
      if (kernels::find(c.type, c.operation) == nullptr) continue;
      std::printf("  %-20s", c.name);
      for (const kernels::Target& target : targets)
        for (const bool in_place : {false, true}) {
          // Zeros: sums and products stay what they are, and no number becomes subnormal.
          for (unsigned char* buffer : buffers) std::memset(buffer, 0, bytes);
          std::printf(" %10.1f", gigabytes_per_second(target.find(c.type, c.operation), buffers, bytes,
                                                      bytes / kernels::size_of(c.type), in_place));
        }
      std::printf("\n");
      std::fflush(stdout);
    }
    for (auto& buffer : buffers) std::free(buffer);
  }
  return 0;
}
