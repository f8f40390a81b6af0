// How matrices are cut into blocks, and which rank has which block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace matrix_multiplication {

enum class Placement { cyclic, rows, random };
enum class Name { a, b, c };  // of a matrix

// Ranks by rows: rank = row * columns + column.
struct Grid {
  int rows = 1;
  int columns = 1;
};
// As square as it gets, with fewer rows than columns.
Grid grid_of(int ranks) noexcept;

// A dimension in blocks, the last of which may be smaller.
struct Cut {
  int size = 1;
  int block = 1;
  int count() const noexcept { return size / block + (size % block != 0 ? 1 : 0); }
  int begin(int index) const noexcept { return index * block; }
  int length(int index) const noexcept { return index + 1 < count() ? block : size - begin(index); }
};

struct Layout {
  Cut rows;
  Cut columns;
  std::vector<int> owners;  // by block

  int index(int row, int column) const noexcept { return column * rows.count() + row; }
  int owner(int row, int column) const noexcept { return owners[static_cast<std::size_t>(index(row, column))]; }
  std::size_t elements(int row, int column) const noexcept {
    return static_cast<std::size_t>(rows.length(row)) * static_cast<std::size_t>(columns.length(column));
  }
  std::uint64_t bytes_of(int rank) const noexcept;

  // act(row, column) for each block, column by column.
  template <class Act>
  void each(Act&& act) const {
    for (int column = 0; column < columns.count(); ++column)
      for (int row = 0; row < rows.count(); ++row) act(row, column);
  }
  template <class Act>
  void each_of(int rank, Act&& act) const {
    each([&](int row, int column) {
      if (owner(row, column) == rank) act(row, column);
    });
  }
};

// Two-dimensional block-cyclic.
Layout cyclic_layout(Cut rows, Cut columns, Grid grid);
// Blocks row by row, the first ranks the first of them, as many each.
Layout row_layout(Cut rows, Cut columns, int ranks);
// Each block of a random rank; another one for each matrix.
Layout random_layout(Cut rows, Cut columns, int ranks, std::uint64_t seed, Name name);

// A number that looks random, the same for the same arguments on any rank.
std::uint64_t random_number(std::uint64_t seed, Name name, std::uint64_t row, std::uint64_t column) noexcept;

}  // namespace matrix_multiplication
