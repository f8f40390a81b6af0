#include "layout.hpp"

namespace matrix_multiplication {

namespace {

// The output function of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t number) noexcept {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

template <class OwnerOf>
Layout make(Cut rows, Cut columns, OwnerOf&& owner_of) {
  Layout layout{rows, columns, {}};
  layout.owners.resize(static_cast<std::size_t>(rows.count()) * static_cast<std::size_t>(columns.count()));
  layout.each([&](int row, int column) {
    layout.owners[static_cast<std::size_t>(layout.index(row, column))] = owner_of(row, column);
  });
  return layout;
}

}  // namespace

Grid grid_of(int ranks) noexcept {
  Grid grid{1, ranks};
  for (int rows = 1; rows * rows <= ranks; ++rows)
    if (ranks % rows == 0) grid = {rows, ranks / rows};
  return grid;
}

std::uint64_t Layout::bytes_of(int rank) const noexcept {
  std::uint64_t bytes = 0;
  each_of(rank, [&](int row, int column) { bytes += elements(row, column) * sizeof(double); });
  return bytes;
}

Layout cyclic_layout(Cut rows, Cut columns, Grid grid) {
  return make(rows, columns,
              [&](int row, int column) { return row % grid.rows * grid.columns + column % grid.columns; });
}

Layout row_layout(Cut rows, Cut columns, int ranks) {
  const auto in_row = static_cast<std::int64_t>(columns.count());
  const std::int64_t all = in_row * rows.count();
  return make(rows, columns,
              [&](int row, int column) { return static_cast<int>((row * in_row + column) * ranks / all); });
}

Layout random_layout(Cut rows, Cut columns, int ranks, std::uint64_t seed, Name name) {
  return make(rows, columns, [&](int row, int column) {
    return static_cast<int>(
        random_number(~seed, name, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(column)) %
        static_cast<std::uint64_t>(ranks));
  });
}

std::uint64_t random_number(std::uint64_t seed, Name name, std::uint64_t row, std::uint64_t column) noexcept {
  return mix(mix(mix(seed + static_cast<std::uint64_t>(name)) ^ row) ^ column);
}

}  // namespace matrix_multiplication
