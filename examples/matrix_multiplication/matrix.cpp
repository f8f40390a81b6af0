#include "matrix.hpp"

#include <algorithm>

namespace matrix_multiplication {

namespace {

// Of a dimension, what one row or column of the grid has.
int local_size(Cut cut, int first, int step) noexcept {
  int size = 0;
  for (int index = first; index < cut.count(); index += step) size += cut.length(index);
  return size;
}

}  // namespace

Matrix::Matrix(const Layout& layout, int rank) : layout_(layout), rank_(rank), offsets_(layout.owners.size()) {
  std::size_t size = 0;
  layout_.each_of(rank, [&](int row, int column) {
    offsets_[static_cast<std::size_t>(layout_.index(row, column))] = size;
    size += layout_.elements(row, column);
  });
  data_.resize(size);
}

Matrix::Matrix(const Layout& layout, int rank, Grid grid)
    : layout_(layout), rank_(rank), offsets_(layout.owners.size()) {
  const int height = local_size(layout.rows, rank / grid.columns, grid.rows);
  const int width = local_size(layout.columns, rank % grid.columns, grid.columns);
  stride_ = std::max(1, height);
  layout_.each_of(rank, [&](int row, int column) {
    const auto first_row = static_cast<std::size_t>(row / grid.rows * layout_.rows.block);
    const auto first_column = static_cast<std::size_t>(column / grid.columns * layout_.columns.block);
    offsets_[static_cast<std::size_t>(layout_.index(row, column))] =
        first_column * static_cast<std::size_t>(stride_) + first_row;
  });
  data_.resize(static_cast<std::size_t>(stride_) * static_cast<std::size_t>(width));
}

void Matrix::generate(std::uint64_t seed, Name name) {
  layout_.each_of(rank_, [&](int row, int column) {
    const Block to = block(row, column);
    for (int j = 0; j < layout_.columns.length(column); ++j)
      for (int i = 0; i < layout_.rows.length(row); ++i) {
        const std::uint64_t number = random_number(seed, name, static_cast<std::uint64_t>(layout_.rows.begin(row) + i),
                                                   static_cast<std::uint64_t>(layout_.columns.begin(column) + j));
        to.data[static_cast<std::size_t>(j) * static_cast<std::size_t>(to.stride) + static_cast<std::size_t>(i)] =
            static_cast<double>(number >> 11) * 0x1p-53 - 0.5;
      }
  });
}

}  // namespace matrix_multiplication
