// The blocks that a rank has of a matrix. Elements are in the order of columns.
#pragma once

#include <cstddef>
#include <vector>

#include "layout.hpp"

namespace matrix_multiplication {

class Matrix {
 public:
  struct Block {
    double* data;
    int stride;  // from a column to the next
  };

  // Block after block.
  Matrix(const Layout& layout, int rank);
  // One array of all of them, as ScaLAPACK has it; the layout is cyclic.
  Matrix(const Layout& layout, int rank, Grid grid);

  const Layout& layout() const noexcept { return layout_; }
  int rank() const noexcept { return rank_; }
  // One of this rank's.
  Block block(int row, int column) noexcept {
    const auto index = static_cast<std::size_t>(layout_.index(row, column));
    return {data_.data() + offsets_[index], stride_ != 0 ? stride_ : layout_.rows.length(row)};
  }
  const double* data(int row, int column) const noexcept {
    return data_.data() + offsets_[static_cast<std::size_t>(layout_.index(row, column))];
  }
  double* array() noexcept { return data_.data(); }
  int stride() const noexcept { return stride_; }

  // Elements in [-0.5, 0.5), the same for any layout.
  void generate(std::uint64_t seed, Name name);

 private:
  Layout layout_;
  int rank_;
  int stride_ = 0;                    // 0: each block has its own
  std::vector<std::size_t> offsets_;  // by block, of this rank's
  std::vector<double> data_;
};

}  // namespace matrix_multiplication
