#include "tools/bench/kernels.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "algorithms/kernels/reduce.hpp"
#include "base/clock.hpp"
#include "tools/bench/output.hpp"

namespace papaya::bench {

namespace {

using kernels::ElementType;
using kernels::Operation;

template <class T>
struct Named {
  T value;
  std::string_view name;
};

constexpr std::array<Named<ElementType>, 25> types = {{
    {ElementType::i8, "i8"},
    {ElementType::i16, "i16"},
    {ElementType::i32, "i32"},
    {ElementType::i64, "i64"},
    {ElementType::u8, "u8"},
    {ElementType::u16, "u16"},
    {ElementType::u32, "u32"},
    {ElementType::u64, "u64"},
    {ElementType::f32, "f32"},
    {ElementType::f64, "f64"},
    {ElementType::f80, "f80"},
    {ElementType::c32, "c32"},
    {ElementType::c64, "c64"},
    {ElementType::c80, "c80"},
    {ElementType::boolean, "boolean"},
    {ElementType::byte, "byte"},
    {ElementType::f32_int, "f32_int"},
    {ElementType::f64_int, "f64_int"},
    {ElementType::long_int, "long_int"},
    {ElementType::int_int, "int_int"},
    {ElementType::short_int, "short_int"},
    {ElementType::f80_int, "f80_int"},
    {ElementType::f32_f32, "f32_f32"},
    {ElementType::f64_f64, "f64_f64"},
    {ElementType::logical, "logical"},
}};
constexpr std::array<Named<Operation>, 12> operations = {{
    {Operation::sum, "sum"},
    {Operation::prod, "prod"},
    {Operation::min, "min"},
    {Operation::max, "max"},
    {Operation::land, "land"},
    {Operation::lor, "lor"},
    {Operation::lxor, "lxor"},
    {Operation::band, "band"},
    {Operation::bor, "bor"},
    {Operation::bxor, "bxor"},
    {Operation::minloc, "minloc"},
    {Operation::maxloc, "maxloc"},
}};

constexpr double sample_ns = 5e5;
constexpr int samples = 5;
constexpr int long_samples = 2;  // where one pass takes longer than a sample

// Three buffers of `bytes` each: in the first cache, in the second, and beyond all of them.
struct Level {
  const char* name;
  std::size_t bytes;
};

std::size_t cache_bytes(int level, std::size_t fallback) {
  const long found = sysconf(level);
  return found > 0 ? static_cast<std::size_t>(found) : fallback;
}

std::array<Level, 3> levels() {
  const std::size_t first = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32768);
  const std::size_t second = std::max(cache_bytes(_SC_LEVEL2_CACHE_SIZE, 262144), 2 * first);
  const std::size_t third = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 8u << 20);
  // Multiples of 480 bytes hold whole elements of every size there is (2, 4, 5, 6, 8, 12, 16, 32 and so on).
  const auto whole = [](std::size_t bytes) { return bytes / 480 * 480; };
  return {{{"L1", whole(first / 4)},
           {"L2", whole(second / 5)},
           {"memory", whole(std::clamp<std::size_t>(third / 4 * 3, 16u << 20, 64u << 20))}}};
}

class Buffers {
 public:
  explicit Buffers(std::size_t bytes) {
    for (auto& memory : memory_) {
      memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes / 4096 + 1) * 4096)));
      // Ones in every byte are a small number, or true, in every type but floats, where they are tiny and
      // normal.
      if (memory != nullptr) std::memset(memory.get(), 1, bytes);
    }
  }
  bool is_there() const { return memory_[0] && memory_[1] && memory_[2]; }
  std::byte* operator[](std::size_t i) const { return memory_[i].get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_[3];
};

// Bytes of one operand per second; the best of some samples.
template <class Once>
double bytes_per_second(std::size_t bytes, Once&& once) {
  once();
  double best = 0;
  for (int sample = 0; sample < samples; ++sample) {
    const std::uint64_t begin = clock::monotonic_ns();
    std::uint64_t now = begin;
    double done = 0;
    const std::size_t batch = std::max<std::size_t>(1, 32768 / bytes);
    for (; static_cast<double>(now - begin) < sample_ns; now = clock::monotonic_ns()) {
      for (std::size_t i = 0; i < batch; ++i) once();
      done += static_cast<double>(batch * bytes);
    }
    best = std::max(best, done * 1e9 / static_cast<double>(now - begin));
    if (static_cast<double>(now - begin) > 4 * sample_ns && sample + 1 >= long_samples) break;
  }
  return best;
}

struct KernelRow {
  std::string_view type;
  std::string_view operation;
  double rates[3];
};

}  // namespace

int run_kernels(const Options& options) {
  const auto sizes = levels();
  const Buffers buffers(sizes[2].bytes);
  if (!buffers.is_there()) {
    std::fprintf(stderr, "papaya bench: no memory for the buffers.\n");
    return 1;
  }
  double copies[3];
  for (std::size_t level = 0; level < 3; ++level)
    copies[level] = bytes_per_second(sizes[level].bytes, [&] {
      std::memcpy(buffers[2], buffers[0], sizes[level].bytes);
      __asm__ volatile("" ::"r"(buffers[2]) : "memory");
    });

  fmt::print("out = left op right on one core, in GB/s of one operand; in brackets the share of a copy's rate.\n");
  fmt::print("{:<10}{:<8}", "", "");
  for (const Level& level : sizes)
    fmt::print("{:>20}", fmt::format("{} ({} each)", level.name,
                                     level.bytes < (10u << 20) ? fmt::format("{}K", level.bytes >> 10)
                                                               : fmt::format("{}M", (level.bytes + (1u << 19)) >> 20)));
  fmt::print("\n{:<18}", "copy");
  for (const double rate : copies) fmt::print("{:>13.2f}{:7}", rate * 1e-9, "");
  fmt::print("\n");
  std::vector<KernelRow> rows;
  for (const auto& type : types)
    for (const auto& operation : operations) {
      const Reduction::Combine combine = kernels::find(type.value, operation.value);
      if (combine == nullptr) continue;
      Reduction reduction;
      reduction.element_bytes = kernels::size_of(type.value);
      KernelRow row{type.name, operation.name, {}};
      fmt::print("{:<10}{:<8}", type.name, operation.name);
      for (std::size_t level = 0; level < 3; ++level) {
        const std::size_t count = sizes[level].bytes / reduction.element_bytes;
        row.rates[level] = bytes_per_second(count * reduction.element_bytes,
                                            [&] { combine(reduction, buffers[0], buffers[1], buffers[2], count); });
        fmt::print("{:>13.2f} {:<6}", row.rates[level] * 1e-9,
                   fmt::format("({:.2f})", row.rates[level] / copies[level]));
      }
      fmt::print("\n");
      std::fflush(stdout);
      rows.push_back(row);
    }

  nlohmann::ordered_json json = {{"kernels", nlohmann::ordered_json::array()}};
  std::string csv = "type,operation,bytes,bytes_per_second,of_copy\n";
  for (const KernelRow& row : rows)
    for (std::size_t level = 0; level < 3; ++level) {
      json["kernels"].push_back({{"type", row.type},
                                 {"operation", row.operation},
                                 {"bytes", sizes[level].bytes},
                                 {"bytes_per_second", row.rates[level]},
                                 {"copy_bytes_per_second", copies[level]}});
      csv += fmt::format("{},{},{},{:.6g},{:.4g}\n", row.type, row.operation, sizes[level].bytes, row.rates[level],
                         row.rates[level] / copies[level]);
    }
  return write_file(options.json, json.dump(2) + "\n") && write_file(options.csv, csv) ? 0 : 1;
}

}  // namespace papaya::bench
